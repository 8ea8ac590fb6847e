#include "runtime/comm/inproc.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "runtime/base/status.h"

namespace weft {
namespace {

// A wait looks this often before it sleeps.
constexpr int kSpins = 2000;

int64_t elementsOf(const CollectiveTensor& tensor) {
  int64_t elements = 1;
  for (const int64_t size : tensor.shape) {
    elements *= size;
  }
  return elements;
}

// The input seen as [outer, length, inner] around one dimension.
struct Around {
  int64_t outer = 1;
  int64_t length = 1;
  int64_t inner = 1;
};

Around around(const std::vector<int64_t>& shape, int64_t dim) {
  Around result;
  for (int64_t d = 0; d < static_cast<int64_t>(shape.size()); ++d) {
    (d < dim ? result.outer : d == dim ? result.length : result.inner) *= shape[d];
  }
  return result;
}

template <typename T>
void foldInto(T* out, const T* in, int64_t count, Reduction reduction) {
  switch (reduction) {
    case Reduction::kSum:
      for (int64_t i = 0; i < count; ++i) {
        out[i] = out[i] + in[i];
      }
      break;
    case Reduction::kMax:
      for (int64_t i = 0; i < count; ++i) {
        out[i] = in[i] > out[i] ? in[i] : out[i];
      }
      break;
    case Reduction::kMin:
      for (int64_t i = 0; i < count; ++i) {
        out[i] = in[i] < out[i] ? in[i] : out[i];
      }
      break;
  }
}

absl::Status fold(DType type, void* out, const void* in, int64_t count, Reduction reduction) {
  switch (type) {
    case DType::kF32:
      foldInto(static_cast<float*>(out), static_cast<const float*>(in), count, reduction);
      return absl::OkStatus();
    case DType::kF64:
      foldInto(static_cast<double*>(out), static_cast<const double*>(in), count, reduction);
      return absl::OkStatus();
    case DType::kI32:
      foldInto(static_cast<int32_t*>(out), static_cast<const int32_t*>(in), count, reduction);
      return absl::OkStatus();
    case DType::kI64:
      foldInto(static_cast<int64_t*>(out), static_cast<const int64_t*>(in), count, reduction);
      return absl::OkStatus();
    case DType::kBool:
      // 0 and 1: max is or, min is and; a sum saturates as or.
      foldInto(static_cast<uint8_t*>(out), static_cast<const uint8_t*>(in), count,
               reduction == Reduction::kSum ? Reduction::kMax : reduction);
      return absl::OkStatus();
    case DType::kBF16:
    case DType::kF16:
      break;
  }
  return absl::UnimplementedError(absl::StrCat("reducing ", dtypeName(type), " tensors between ranks"));
}

// Elements folded at a time, so that the partial result stays in the first-level cache.
constexpr int64_t kFoldBlock = 2048;

const char* bytesAt(const void* base, int64_t offset) {
  return static_cast<const char*>(base) + offset;
}
char* bytesAt(void* base, int64_t offset) {
  return static_cast<char*>(base) + offset;
}

int64_t aligned(int64_t bytes) {
  return (bytes + 63) / 64 * 64;
}

// out = ((x0 op x1) op x2) ..., `count` elements; member m's elements begin at inputOf(m).
template <typename InputOf>
absl::Status foldMembers(const CollectiveTensor& tensor, char* out, int64_t count, int64_t members, Reduction reduction,
                         const InputOf& inputOf) {
  const int64_t width = byteSize(tensor.type);
  for (int64_t at = 0; at < count; at += kFoldBlock) {
    const int64_t block = std::min(kFoldBlock, count - at);
    std::memcpy(out + at * width, inputOf(0) + at * width, block * width);
    for (int64_t m = 1; m < members; ++m) {
      WEFT_RETURN_IF_ERROR(fold(tensor.type, out + at * width, inputOf(m) + at * width, block, reduction));
    }
  }
  return absl::OkStatus();
}

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
  struct Ends {
    const char* in;
    int64_t part;
    int64_t slot;
  };
  struct View {
    int64_t offset;
    int64_t volume;
  };

  void copy(int64_t d, const Ends& ends, View from, View to) const {
    const int64_t width = byteSize(tensor_.type);
    if (d > last_) {
      std::memcpy(bytesAt(tensor_.output, to.offset * width), ends.in + from.offset * width, from.volume * width);
      return;
    }
    const int64_t size = tensor_.shape[d];
    const int64_t sent = d == tensor_.splitDim ? size / members_ : size;
    const int64_t received = d == tensor_.dim ? sent * members_ : sent;
    from.volume /= size;
    to.volume /= received;
    from.offset += (d == tensor_.splitDim ? ends.part * sent : 0) * from.volume;
    to.offset += (d == tensor_.dim ? ends.slot * sent : 0) * to.volume;
    for (int64_t i = 0; i < sent; ++i) {
      copy(d + 1, ends, {from.offset + i * from.volume, from.volume}, {to.offset + i * to.volume, to.volume});
    }
  }

  const CollectiveTensor& tensor_;
  int64_t members_;
  int64_t last_;
};

}  // namespace

InprocWorld::InprocWorld(int64_t ranks) : all_(ranks) {
  std::iota(all_.begin(), all_.end(), 0);
  prepare(all_, 0);
}

void InprocWorld::prepare(const std::vector<int64_t>& group, int64_t scratchBytes) {
  std::unique_ptr<Meeting>& meeting = meetings_[group];
  if (!meeting) {
    meeting = std::make_unique<Meeting>();
    meeting->inputs.resize(group.size());
  }
  if (static_cast<int64_t>(meeting->scratch.size()) < scratchBytes) {
    meeting->scratch.resize(scratchBytes);
  }
}

InprocWorld::Meeting* InprocWorld::find(const std::vector<int64_t>& group) {
  const auto it = meetings_.find(group);
  return it == meetings_.end() ? nullptr : it->second.get();
}

void InprocWorld::abort() {
  aborted_ = true;
  for (auto& [group, meeting] : meetings_) {
    const std::lock_guard<std::mutex> lock(meeting->mutex);
    meeting->wake.notify_all();
  }
}

absl::Status InprocWorld::wait(Meeting& meeting, int64_t members) {
  const uint64_t round = meeting.round.load(std::memory_order_acquire);
  if (aborted_) {
    return absl::AbortedError("another rank failed");
  }
  if (meeting.arrived.fetch_add(1, std::memory_order_acq_rel) + 1 == members) {
    meeting.arrived.store(0, std::memory_order_relaxed);
    {
      const std::lock_guard<std::mutex> lock(meeting.mutex);
      meeting.round.store(round + 1, std::memory_order_release);
    }
    meeting.wake.notify_all();
    return absl::OkStatus();
  }
  const auto over = [&] { return meeting.round.load(std::memory_order_acquire) != round; };
  for (int i = 0; i < kSpins && !over() && !aborted_; ++i) {
  }
  if (!over()) {
    std::unique_lock<std::mutex> lock(meeting.mutex);
    meeting.wake.wait(lock, [&] { return over() || aborted_; });
  }
  // A rank whose round completed goes on; its next wait stops it.
  return over() ? absl::OkStatus() : absl::AbortedError("another rank failed");
}

void InprocCommunicator::reserve(size_t tensors, int64_t stagingBytes) {
  inputs_.reserve(tensors);
  if (static_cast<int64_t>(staging_.size()) < stagingBytes) {
    staging_.resize(stagingBytes);
  }
}

void InprocCommunicator::stage(const std::vector<CollectiveTensor>& tensors, int64_t growth) {
  const auto overlaps = [&](const CollectiveTensor& tensor, int64_t bytes) {
    const char* in = bytesAt(tensor.input, 0);
    const char* out = bytesAt(static_cast<const void*>(tensor.output), 0);
    return in < out + bytes * growth && out < in + bytes;
  };
  int64_t needed = 0;
  for (const CollectiveTensor& tensor : tensors) {
    const int64_t bytes = elementsOf(tensor) * byteSize(tensor.type);
    needed += overlaps(tensor, bytes) ? aligned(bytes) : 0;
  }
  reserve(tensors.size(), needed);
  int64_t base = 0;
  inputs_.clear();
  for (const CollectiveTensor& tensor : tensors) {
    const int64_t bytes = elementsOf(tensor) * byteSize(tensor.type);
    if (!overlaps(tensor, bytes)) {
      inputs_.push_back(tensor.input);
      continue;
    }
    inputs_.push_back(staging_.data() + base);
    std::memcpy(staging_.data() + base, tensor.input, bytes);
    base += aligned(bytes);
  }
}

absl::StatusOr<InprocCommunicator::Call> InprocCommunicator::enter(const std::vector<int64_t>& group,
                                                                   const std::vector<CollectiveTensor>& tensors,
                                                                   int64_t growth) {
  Call call;
  call.meeting = world_.find(group);
  call.members = static_cast<int64_t>(group.size());
  call.place = std::find(group.begin(), group.end(), rank_) - group.begin();
  if (call.meeting == nullptr || call.place == call.members) {
    return absl::InternalError(absl::StrCat("rank ", rank_, " calls a collective of a group that was not prepared"));
  }
  stage(tensors, growth);
  call.meeting->inputs[call.place] = inputs_.data();
  WEFT_RETURN_IF_ERROR(world_.wait(*call.meeting, call.members));
  return call;
}

absl::Status InprocCommunicator::allReduce(const std::vector<int64_t>& group,
                                           const std::vector<CollectiveTensor>& tensors, Reduction reduction) {
  // Results go through the scratch, so overlapping memory needs no staging: growth 0 means no overlap.
  WEFT_ASSIGN_OR_RETURN(const Call call, enter(group, tensors, 0));
  int64_t total = 0;
  for (const CollectiveTensor& tensor : tensors) {
    total += aligned(elementsOf(tensor) * byteSize(tensor.type));
  }
  if (total > static_cast<int64_t>(call.meeting->scratch.size())) {
    return absl::InternalError(
        absl::StrCat("an all_reduce of ", total, " bytes in a group prepared for ", call.meeting->scratch.size()));
  }
  char* base = call.meeting->scratch.data();
  for (size_t t = 0; t < tensors.size(); ++t) {
    const int64_t elements = elementsOf(tensors[t]);
    const int64_t width = byteSize(tensors[t].type);
    const int64_t begin = elements * call.place / call.members;
    const int64_t count = elements * (call.place + 1) / call.members - begin;
    WEFT_RETURN_IF_ERROR(foldMembers(tensors[t], base + begin * width, count, call.members, reduction,
                                     [&](int64_t m) { return bytesAt(call.input(m, t), begin * width); }));
    base += aligned(elements * width);
  }
  WEFT_RETURN_IF_ERROR(world_.wait(*call.meeting, call.members));
  base = call.meeting->scratch.data();
  for (const CollectiveTensor& tensor : tensors) {
    const int64_t bytes = elementsOf(tensor) * byteSize(tensor.type);
    std::memcpy(tensor.output, base, bytes);
    base += aligned(bytes);
  }
  return leave(call);
}

absl::Status InprocCommunicator::allGather(const std::vector<int64_t>& group,
                                           const std::vector<CollectiveTensor>& tensors) {
  WEFT_ASSIGN_OR_RETURN(const Call call, enter(group, tensors, static_cast<int64_t>(group.size())));
  for (size_t t = 0; t < tensors.size(); ++t) {
    const Around view = around(tensors[t].shape, tensors[t].dim);
    const int64_t run = view.length * view.inner * byteSize(tensors[t].type);
    for (int64_t m = 0; m < call.members; ++m) {
      for (int64_t o = 0; o < view.outer; ++o) {
        std::memcpy(bytesAt(tensors[t].output, (o * call.members + m) * run), bytesAt(call.input(m, t), o * run), run);
      }
    }
  }
  return leave(call);
}

absl::Status InprocCommunicator::reduceScatter(const std::vector<int64_t>& group,
                                               const std::vector<CollectiveTensor>& tensors, Reduction reduction) {
  WEFT_ASSIGN_OR_RETURN(const Call call, enter(group, tensors, 1));
  for (size_t t = 0; t < tensors.size(); ++t) {
    const Around view = around(tensors[t].shape, tensors[t].dim);
    const int64_t count = view.length / call.members * view.inner;
    const int64_t run = count * byteSize(tensors[t].type);
    for (int64_t o = 0; o < view.outer; ++o) {
      const int64_t from = (o * call.members + call.place) * run;
      WEFT_RETURN_IF_ERROR(foldMembers(tensors[t], bytesAt(tensors[t].output, o * run), count, call.members, reduction,
                                       [&](int64_t m) { return bytesAt(call.input(m, t), from); }));
    }
  }
  return leave(call);
}

absl::Status InprocCommunicator::allToAll(const std::vector<int64_t>& group,
                                          const std::vector<CollectiveTensor>& tensors) {
  WEFT_ASSIGN_OR_RETURN(const Call call, enter(group, tensors, 1));
  for (size_t t = 0; t < tensors.size(); ++t) {
    const BlockCopy copy(tensors[t], call.members);
    for (int64_t m = 0; m < call.members; ++m) {
      copy.run(bytesAt(call.input(m, t), 0), call.place, m);
    }
  }
  return leave(call);
}

absl::Status InprocCommunicator::permute(int64_t source, const std::vector<CollectiveTensor>& tensors) {
  WEFT_ASSIGN_OR_RETURN(const Call call, enter(world_.all_, tensors, 1));
  for (size_t t = 0; t < tensors.size(); ++t) {
    const int64_t bytes = elementsOf(tensors[t]) * byteSize(tensors[t].type);
    std::memcpy(tensors[t].output, call.input(source, t), bytes);
  }
  return leave(call);
}

}  // namespace weft
