#include "runtime/comm/inproc.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/base/arithmetic.h"
#include "runtime/base/status.h"
#include "runtime/comm/fold.h"

namespace weft {
namespace {

int64_t elementsOf(const CollectiveTensor& tensor) {
  int64_t elements = 1;
  for (const int64_t size : tensor.shape) {
    elements *= size;
  }
  return elements;
}

// The input seen as [outer, length, inner] around one dimension.
struct DimView {
  int64_t outer = 1;
  int64_t length = 1;
  int64_t inner = 1;
};

DimView dimView(const std::vector<int64_t>& shape, int64_t dim) {
  DimView result;
  for (int64_t d = 0; d < static_cast<int64_t>(shape.size()); ++d) {
    (d < dim ? result.outer : d == dim ? result.length : result.inner) *= shape[d];
  }
  return result;
}

// Bytes folded at a time, so that the partial result stays in the first-level cache.
constexpr int64_t kFoldBytes = 8192;

const char* bytesAt(const void* base, int64_t offset) {
  return static_cast<const char*>(base) + offset;
}
char* bytesAt(void* base, int64_t offset) {
  return static_cast<char*>(base) + offset;
}

void copyBytes(void* to, const void* from, int64_t bytes) {
  if (bytes > 0 && to != from) {
    std::memcpy(to, from, bytes);
  }
}

// out = ((x0 op x1) op x2) ..., `count` elements; member m's elements begin at inputOf(m). `out` may be one of them: a
// block of it is written last, when all members' elements of that block are read.
template <typename InputOf>
void foldMembers(DType type, char* out, int64_t count, int64_t members, Reduction reduction, const InputOf& inputOf) {
  const int64_t width = byteSize(type);
  if (members == 1) {
    return copyBytes(out, inputOf(0), count * width);
  }
  alignas(64) char partial[kFoldBytes];
  for (int64_t at = 0; at < count; at += kFoldBytes / width) {
    const int64_t block = std::min(kFoldBytes / width, count - at);
    const char* sum = inputOf(0) + at * width;
    for (int64_t m = 1; m < members; ++m) {
      char* to = m + 1 < members ? partial : out + at * width;
      fold(type, to, sum, inputOf(m) + at * width, block, reduction);
      sum = to;
    }
  }
}

absl::Status checkReducible(const std::vector<CollectiveTensor>& tensors) {
  for (const CollectiveTensor& tensor : tensors) {
    if (!isReducible(tensor.type)) {
      return absl::UnimplementedError(
          absl::StrCat("reducing ", dtypeName(tensor.type), " tensors between ranks; convert them to f32 before"));
    }
  }
  return absl::OkStatus();
}

// The elements of a tensor that one member of an all_reduce folds.
struct SliceOf {
  SliceOf(int64_t elements, int64_t place, int64_t members)
      : begin(elements * place / members), count(elements * (place + 1) / members - begin) {}
  int64_t begin;
  int64_t count;
};

// Copies the part that one member of an all_to_all sends to another: a block of the sender's input along the split
// dimension becomes a block of the receiver's output along `dim`.
class BlockCopy {
 public:
  BlockCopy(const CollectiveTensor& tensor, int64_t members) : tensor_(tensor), members_(members) {
    last_ = std::max(tensor.dim, tensor.splitDim);
  }

  // Part `part` of `in` becomes part `slot` of the output. Offsets in elements; the volumes of the two sub-arrays below
  // dimension d shrink as d grows, both begin as all elements of the tensor.
  void run(const char* in, int64_t part, int64_t slot) const {
    const int64_t elements = elementsOf(tensor_);
    if (elements > 0) {
      copy(0, {in, part, slot}, {0, elements}, {0, elements});
    }
  }

 private:
  struct CopyEnds {
    const char* in;
    int64_t part;
    int64_t slot;
  };
  struct View {
    int64_t offset;
    int64_t volume;
  };

  void copy(int64_t d, const CopyEnds& ends, View from, View to) const {
    const int64_t size = tensor_.shape[d];
    const int64_t sent = d == tensor_.splitDim ? size / members_ : size;
    const int64_t received = d == tensor_.dim ? sent * members_ : sent;
    from.volume /= size;
    to.volume /= received;
    from.offset += (d == tensor_.splitDim ? ends.part * sent : 0) * from.volume;
    to.offset += (d == tensor_.dim ? ends.slot * sent : 0) * to.volume;
    if (d == last_) {  // what follows is alike on both sides
      const int64_t width = byteSize(tensor_.type);
      std::memcpy(bytesAt(tensor_.output, to.offset * width), ends.in + from.offset * width,
                  sent * from.volume * width);
      return;
    }
    for (int64_t i = 0; i < sent; ++i) {
      copy(d + 1, ends, {from.offset + i * from.volume, from.volume}, {to.offset + i * to.volume, to.volume});
    }
  }

  const CollectiveTensor& tensor_;
  int64_t members_;
  int64_t last_;
};

}  // namespace

InprocWorld::InprocWorld(int64_t ranks, const InprocOptions& options) : all_(ranks), options_(options) {
  std::iota(all_.begin(), all_.end(), 0);
  prepare(all_);
}

void InprocWorld::prepare(const std::vector<int64_t>& group) {
  std::unique_ptr<Barrier>& barrier = barriers_[group];
  if (!barrier) {
    barrier = std::make_unique<Barrier>(group);
  }
}

InprocWorld::Barrier* InprocWorld::find(const std::vector<int64_t>& group) {
  const auto it = barriers_.find(group);
  return it == barriers_.end() ? nullptr : it->second.get();
}

void InprocWorld::abort() {
  for (auto& [group, barrier] : barriers_) {
    barrier->changed.update([&] { aborted_ = true; });
  }
}

absl::Status InprocWorld::wait(Barrier& barrier, int64_t place) {
  const uint64_t round = barrier.round.load(std::memory_order_acquire);
  if (aborted_) {
    return absl::AbortedError("another rank failed");
  }
  const auto members = static_cast<int64_t>(barrier.ranks.size());
  barrier.waits[place].store(round + 1, std::memory_order_relaxed);
  if (barrier.arrived.fetch_add(1, std::memory_order_acq_rel) + 1 == members) {
    barrier.arrived.store(0, std::memory_order_relaxed);
    barrier.changed.update([&] { barrier.round.store(round + 1, std::memory_order_release); });
    return absl::OkStatus();
  }
  const auto over = [&] { return barrier.round.load(std::memory_order_acquire) != round; };
  if (!barrier.changed.wait([&] { return over() || aborted_; }, options_.timeout)) {
    const absl::Status status = timedOut(barrier, round);
    abort();
    return status;
  }
  // A rank whose round completed goes on; its next wait stops it.
  return over() ? absl::OkStatus() : absl::AbortedError("another rank failed");
}

absl::Status InprocWorld::timedOut(const Barrier& barrier, uint64_t round) const {
  std::vector<int64_t> missing;
  for (size_t place = 0; place < barrier.ranks.size(); ++place) {
    if (barrier.waits[place].load(std::memory_order_relaxed) <= round) {
      missing.push_back(barrier.ranks[place]);
    }
  }
  return absl::DeadlineExceededError(absl::StrCat(
      "waited ", options_.timeout.count(), " ms in the group of ranks ", absl::StrJoin(barrier.ranks, ", "),
      "; not there: rank ", absl::StrJoin(missing, ", rank "), "; if it is only slow, allow a longer timeout"));
}

void InprocCommunicator::reserve(size_t tensors, int64_t stagingBytes) {
  inputs_.reserve(tensors);
  outputs_.reserve(tensors);
  if (static_cast<int64_t>(staging_.size()) < stagingBytes) {
    staging_.resize(stagingBytes);
  }
}

void InprocCommunicator::stage(const std::vector<CollectiveTensor>& tensors, const Overlap& overlap) {
  const auto mustCopy = [&](const CollectiveTensor& tensor, int64_t bytes) {
    const char* in = bytesAt(tensor.input, 0);
    const char* out = bytesAt(static_cast<const void*>(tensor.output), 0);
    return in < out + bytes * overlap.growth / overlap.shrink && out < in + bytes && !(overlap.inPlace && in == out);
  };
  int64_t needed = 0;
  for (const CollectiveTensor& tensor : tensors) {
    const int64_t bytes = elementsOf(tensor) * byteSize(tensor.type);
    needed += mustCopy(tensor, bytes) ? alignUp(bytes) : 0;
  }
  reserve(tensors.size(), needed);
  int64_t base = 0;
  inputs_.clear();
  outputs_.clear();
  for (const CollectiveTensor& tensor : tensors) {
    const int64_t bytes = elementsOf(tensor) * byteSize(tensor.type);
    inputs_.push_back(tensor.input);
    outputs_.push_back(tensor.output);
    if (mustCopy(tensor, bytes)) {
      inputs_.back() = staging_.data() + base;
      copyBytes(staging_.data() + base, tensor.input, bytes);
      base += alignUp(bytes);
    }
  }
}

absl::StatusOr<InprocCommunicator::Call> InprocCommunicator::enter(const std::vector<int64_t>& group,
                                                                   const std::vector<CollectiveTensor>& tensors,
                                                                   const Overlap& overlap) {
  Call call;
  call.barrier = world_.find(group);
  call.members = static_cast<int64_t>(group.size());
  call.place = std::find(group.begin(), group.end(), rank_) - group.begin();
  if (call.barrier == nullptr || call.place == call.members) {
    return absl::InternalError(absl::StrCat("rank ", rank_, " calls a collective of a group that was not prepared"));
  }
  stage(tensors, overlap);
  call.barrier->inputs[call.place] = inputs_.data();
  call.barrier->outputs[call.place] = outputs_.data();
  WEFT_RETURN_IF_ERROR(world_.wait(*call.barrier, call.place));
  return call;
}

void InprocCommunicator::foldSlice(const Call& call, const CollectiveTensor& tensor, size_t index,
                                   Reduction reduction) {
  const SliceOf slice(elementsOf(tensor), call.place, call.members);
  const int64_t begin = slice.begin * byteSize(tensor.type);
  foldMembers(tensor.type, bytesAt(tensor.output, begin), slice.count, call.members, reduction,
              [&](int64_t m) { return call.input(m, index) + begin; });
}

void InprocCommunicator::copySlices(const Call& call, const CollectiveTensor& tensor, size_t index) {
  const int64_t width = byteSize(tensor.type);
  for (int64_t m = 0; m < call.members; ++m) {
    const SliceOf slice(elementsOf(tensor), m, call.members);
    if (m != call.place) {
      copyBytes(bytesAt(tensor.output, slice.begin * width), call.output(m, index) + slice.begin * width,
                slice.count * width);
    }
  }
}

absl::Status InprocCommunicator::allReduce(const std::vector<int64_t>& group,
                                           const std::vector<CollectiveTensor>& tensors, Reduction reduction) {
  WEFT_RETURN_IF_ERROR(checkReducible(tensors));
  WEFT_ASSIGN_OR_RETURN(const Call call, enter(group, tensors, {.inPlace = true}));
  for (size_t t = 0; t < tensors.size(); ++t) {
    foldSlice(call, tensors[t], t, reduction);
  }
  WEFT_RETURN_IF_ERROR(world_.wait(*call.barrier, call.place));
  for (size_t t = 0; t < tensors.size(); ++t) {
    copySlices(call, tensors[t], t);
  }
  return leave(call);
}

absl::Status InprocCommunicator::allGather(const std::vector<int64_t>& group,
                                           const std::vector<CollectiveTensor>& tensors) {
  WEFT_ASSIGN_OR_RETURN(const Call call, enter(group, tensors, {.growth = static_cast<int64_t>(group.size())}));
  for (size_t t = 0; t < tensors.size(); ++t) {
    const DimView view = dimView(tensors[t].shape, tensors[t].dim);
    const int64_t run = view.length * view.inner * byteSize(tensors[t].type);
    for (int64_t m = 0; m < call.members; ++m) {
      for (int64_t o = 0; o < view.outer; ++o) {
        copyBytes(bytesAt(tensors[t].output, (o * call.members + m) * run), call.input(m, t) + o * run, run);
      }
    }
  }
  return leave(call);
}

absl::Status InprocCommunicator::reduceScatter(const std::vector<int64_t>& group,
                                               const std::vector<CollectiveTensor>& tensors, Reduction reduction) {
  WEFT_RETURN_IF_ERROR(checkReducible(tensors));
  WEFT_ASSIGN_OR_RETURN(const Call call, enter(group, tensors, {.shrink = static_cast<int64_t>(group.size())}));
  for (size_t t = 0; t < tensors.size(); ++t) {
    const DimView view = dimView(tensors[t].shape, tensors[t].dim);
    const int64_t count = view.length / call.members * view.inner;
    const int64_t run = count * byteSize(tensors[t].type);
    for (int64_t o = 0; o < view.outer; ++o) {
      const int64_t from = (o * call.members + call.place) * run;
      foldMembers(tensors[t].type, bytesAt(tensors[t].output, o * run), count, call.members, reduction,
                  [&](int64_t m) { return call.input(m, t) + from; });
    }
  }
  return leave(call);
}

absl::Status InprocCommunicator::allToAll(const std::vector<int64_t>& group,
                                          const std::vector<CollectiveTensor>& tensors) {
  WEFT_ASSIGN_OR_RETURN(const Call call, enter(group, tensors, {}));
  for (size_t t = 0; t < tensors.size(); ++t) {
    const BlockCopy copy(tensors[t], call.members);
    for (int64_t m = 0; m < call.members; ++m) {
      copy.run(call.input(m, t), call.place, m);
    }
  }
  return leave(call);
}

absl::Status InprocCommunicator::permute(int64_t source, const std::vector<CollectiveTensor>& tensors) {
  WEFT_ASSIGN_OR_RETURN(const Call call, enter(world_.all_, tensors, {}));
  for (size_t t = 0; t < tensors.size(); ++t) {
    const int64_t bytes = elementsOf(tensors[t]) * byteSize(tensors[t].type);
    copyBytes(tensors[t].output, call.input(source, t), bytes);
  }
  return leave(call);
}

}  // namespace weft
