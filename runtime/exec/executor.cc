#include "runtime/exec/executor.h"

#include <dlfcn.h>

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <fstream>
#include <mutex>
#include <set>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "nlohmann/json.hpp"
#include "runtime/base/status.h"
#include "runtime/comm/inproc.h"
#include "runtime/exec/rank.h"
#include "runtime/exec/slices.h"
#include "runtime/plan/plan_file.h"

namespace weft {
namespace {

// Libraries that use OpenMP (oneDNN) run with this many threads on the calling thread. OpenMP is reached through the
// dynamic linker: a runtime without it needs no setting.
void setLibraryThreads(int threads) {
  using SetThreads = void (*)(int);
  if (auto set = reinterpret_cast<SetThreads>(dlsym(RTLD_DEFAULT, "omp_set_num_threads"))) {
    set(threads);
  }
}

std::string joined(const google::protobuf::RepeatedField<int64_t>& numbers) {
  return "[" + absl::StrJoin(numbers, ", ") + "]";
}

// How a rank holds a named tensor, for comparison and for people: "f32 [4, 8] stored as [2, 8] from [0, 0], valid [2,
// 8]".
std::string placeOf(const plan::Plan& plan, const plan::NamedTensor& tensor, int64_t rank) {
  if (rank >= tensor.slices_size()) {
    return "nothing (it has no such rank)";
  }
  const plan::Slice& slice = tensor.slices(static_cast<int>(rank));
  return absl::StrCat(dtypeName(dtypeOf(tensor.type())), " ", joined(tensor.shape()), " stored as ",
                      joined(plan.buffers(static_cast<int>(tensor.buffer())).shape()), " from ", joined(slice.offset()),
                      ", valid ", joined(slice.valid()));
}

}  // namespace

struct Executor::Impl {
  enum class Work { kNone, kPrepare, kInit, kStep, kStop };

  plan::Plan plan;
  ExecutorOptions options;
  const KernelRegistry* kernels = nullptr;
  std::unique_ptr<InprocWorld> world;
  std::vector<std::unique_ptr<InprocCommunicator>> communicators;
  std::vector<std::unique_ptr<Rank>> ranks;
  std::vector<std::thread> threads;
  int64_t mostTensors = 0;
  int64_t mostStaging = 0;

  // Work is handed to all threads at once; they report when done.
  std::mutex mutex;
  std::condition_variable start;
  std::condition_variable finished;
  Work work = Work::kNone;
  uint64_t turn = 0;
  int64_t running = 0;
  absl::Status error;

  ~Impl() {
    if (!threads.empty()) {
      dispatch(Work::kStop).IgnoreError();
      for (std::thread& thread : threads) {
        thread.join();
      }
    }
  }

  // Room for every collective of the plan, so that none allocates while a step runs.
  void prepareGroups() {
    std::vector<int64_t> scratch(plan.group_sets_size(), 0);
    for (const plan::Function& function : plan.functions()) {
      for (const plan::Instruction& instruction : function.instructions()) {
        if (!instruction.has_collective()) {
          continue;
        }
        int64_t bytes = 0;
        for (const plan::Operand& operand : instruction.inputs()) {
          bytes += (plan.buffers(static_cast<int>(operand.buffer())).bytes() + 63) / 64 * 64;
        }
        mostTensors = std::max<int64_t>(mostTensors, instruction.inputs_size());
        if (instruction.collective().kind() == plan::ALL_REDUCE) {
          int64_t& most = scratch[instruction.collective().group_set()];
          most = std::max(most, bytes);
        } else if (overlaps(instruction)) {
          mostStaging = std::max(mostStaging, bytes);
        }
      }
    }
    for (int i = 0; i < plan.group_sets_size(); ++i) {
      for (const auto& group : plan.group_sets(i).groups()) {
        world->prepare({group.ranks().begin(), group.ranks().end()}, scratch[i]);
      }
    }
  }

  // May an input and its output share memory? Strides and slots aside: both lie in one class.
  bool overlaps(const plan::Instruction& instruction) const {
    for (int i = 0; i < instruction.inputs_size(); ++i) {
      const plan::Buffer& in = plan.buffers(static_cast<int>(instruction.inputs(i).buffer()));
      const plan::Buffer& out = plan.buffers(static_cast<int>(instruction.outputs(i).buffer()));
      if (in.memory() == out.memory() && in.offset() < out.offset() + out.bytes() &&
          out.offset() < in.offset() + in.bytes()) {
        return true;
      }
    }
    return false;
  }

  void startThreads() {
    const int cores = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
    const int share = std::max(1, cores / static_cast<int>(plan.ranks()));
    const int threadsPerRank = options.threadsPerRank > 0 ? options.threadsPerRank : share;
    for (int64_t rank = 0; rank < plan.ranks(); ++rank) {
      threads.emplace_back([this, rank, threadsPerRank] {
        setLibraryThreads(threadsPerRank);
        serve(rank);
      });
    }
  }

  void serve(int64_t rank) {
    uint64_t seen = 0;
    for (;;) {
      Work mine;
      {
        std::unique_lock<std::mutex> lock(mutex);
        start.wait(lock, [&] { return turn != seen; });
        seen = turn;
        mine = work;
      }
      absl::Status status = mine == Work::kStop ? absl::OkStatus() : perform(rank, mine);
      {
        const std::lock_guard<std::mutex> lock(mutex);
        // What other ranks see of the first failure is no error of its own.
        if (!status.ok() && (error.ok() || absl::IsAborted(error))) {
          error = status;
        }
        --running;
      }
      if (!status.ok()) {
        world->abort();
      }
      finished.notify_one();
      if (mine == Work::kStop) {
        return;
      }
    }
  }

  absl::Status perform(int64_t rank, Work mine) {
    const plan::RankSchedule& schedule = plan.schedules(static_cast<int>(rank));
    switch (mine) {
      case Work::kPrepare:
        return ranks[rank]->prepare(*kernels);
      case Work::kInit:
        return ranks[rank]->run(schedule.init());
      default:
        return ranks[rank]->run(schedule.step());
    }
  }

  absl::Status dispatch(Work what) {
    std::unique_lock<std::mutex> lock(mutex);
    if (!error.ok() && what != Work::kStop) {
      return error;
    }
    work = what;
    running = static_cast<int64_t>(threads.size());
    ++turn;
    start.notify_all();
    finished.wait(lock, [&] { return running == 0; });
    return error;
  }

  // Memory of the store's tensors for one rank of this plan.
  absl::StatusOr<std::map<uint32_t, char*>> sharedBuffers(int64_t rank) const {
    std::map<uint32_t, char*> shared;
    if (options.store == nullptr) {
      return shared;
    }
    for (const plan::NamedTensor& tensor : plan.tensors()) {
      if (tensor.kind() != plan::TENSOR_PARAMETER && tensor.kind() != plan::TENSOR_STATE) {
        continue;
      }
      const plan::NamedTensor* other = options.store->findTensor(tensor.name());
      if (other == nullptr) {
        continue;
      }
      const std::string mine = placeOf(plan, tensor, rank);
      const std::string theirs = placeOf(options.store->plan(), *other, rank);
      if (mine != theirs) {
        return absl::FailedPreconditionError(absl::StrCat(
            "'", tensor.name(), "' lies on rank ", rank, " as ", mine, " in program '", plan.program(), "' (",
            plan.mesh(), ") but as ", theirs, " in the store's program '", options.store->plan().program(), "' (",
            options.store->plan().mesh(), "); give it the same layout in both (CompileOptions::layouts)"));
      }
      shared[tensor.buffer()] = static_cast<char*>(options.store->rankBuffer(*other, rank));
    }
    return shared;
  }
};

Executor::Executor(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Executor::~Executor() = default;

absl::StatusOr<std::unique_ptr<Executor>> Executor::create(plan::Plan plan, const KernelRegistry& kernels,
                                                           const ExecutorOptions& options) {
  WEFT_RETURN_IF_ERROR(validatePlan(plan));
  auto impl = std::make_unique<Impl>();
  impl->plan = std::move(plan);
  impl->options = options;
  impl->kernels = &kernels;
  impl->world = std::make_unique<InprocWorld>(impl->plan.ranks());
  impl->prepareGroups();
  for (int64_t rank = 0; rank < impl->plan.ranks(); ++rank) {
    impl->communicators.push_back(std::make_unique<InprocCommunicator>(*impl->world, rank));
    impl->ranks.push_back(std::make_unique<Rank>(impl->plan, rank, *impl->communicators.back(), options.profile));
    impl->communicators.back()->reserve(impl->mostTensors, impl->mostStaging);
    WEFT_ASSIGN_OR_RETURN(const auto shared, impl->sharedBuffers(rank));
    WEFT_RETURN_IF_ERROR(impl->ranks.back()->allocate(shared));
  }
  impl->startThreads();
  WEFT_RETURN_IF_ERROR(impl->dispatch(Impl::Work::kPrepare));
  return std::unique_ptr<Executor>(new Executor(std::move(impl)));
}

absl::Status Executor::runInit() {
  return impl_->dispatch(Impl::Work::kInit);
}
absl::Status Executor::runStep() {
  return impl_->dispatch(Impl::Work::kStep);
}

const plan::Plan& Executor::plan() const {
  return impl_->plan;
}

const plan::NamedTensor* Executor::findTensor(const std::string& name) const {
  for (const plan::NamedTensor& tensor : impl_->plan.tensors()) {
    if (tensor.name() == name) {
      return &tensor;
    }
  }
  return nullptr;
}

void* Executor::rankBuffer(const plan::NamedTensor& tensor, int64_t rank) const {
  return impl_->ranks[rank]->buffer(tensor.buffer());
}

int64_t Executor::allocatedBytes() const {
  int64_t bytes = 0;
  for (const auto& rank : impl_->ranks) {
    bytes += rank->allocatedBytes();
  }
  return bytes;
}

static absl::Status unknownTensor(const plan::Plan& plan, const std::string& name) {
  std::string known;
  for (const plan::NamedTensor& tensor : plan.tensors()) {
    absl::StrAppend(&known, known.empty() ? "" : ", ", tensor.name());
  }
  return absl::NotFoundError(absl::StrCat("no tensor '", name, "' in this program; it has ", known));
}

absl::Status Executor::writeTensor(const std::string& name, const void* data, size_t bytes) {
  const plan::NamedTensor* tensor = findTensor(name);
  if (tensor == nullptr) {
    return unknownTensor(impl_->plan, name);
  }
  if (static_cast<int64_t>(bytes) != globalBytes(*tensor)) {
    return absl::InvalidArgumentError(
        absl::StrCat("tensor '", name, "' has ", globalBytes(*tensor), " bytes, ", bytes, " were given"));
  }
  for (int64_t rank = 0; rank < impl_->plan.ranks(); ++rank) {
    scatterSlice(*tensor, impl_->plan.buffers(static_cast<int>(tensor->buffer())), rank, data,
                 static_cast<char*>(rankBuffer(*tensor, rank)));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<char>> Executor::readTensor(const std::string& name) const {
  const plan::NamedTensor* tensor = findTensor(name);
  if (tensor == nullptr) {
    return unknownTensor(impl_->plan, name);
  }
  std::vector<char> data(globalBytes(*tensor));
  std::set<std::vector<int64_t>> done;
  for (int64_t rank = 0; rank < impl_->plan.ranks(); ++rank) {
    const plan::Slice& slice = tensor->slices(static_cast<int>(rank));
    // Replicas hold the same elements; the first is taken.
    if (done.insert({slice.offset().begin(), slice.offset().end()}).second) {
      gatherSlice(*tensor, impl_->plan.buffers(static_cast<int>(tensor->buffer())), rank,
                  static_cast<const char*>(rankBuffer(*tensor, rank)), data.data());
    }
  }
  return data;
}

absl::StatusOr<double> Executor::readScalar(const std::string& name) const {
  WEFT_ASSIGN_OR_RETURN(const std::vector<char> data, readTensor(name));
  const DType type = dtypeOf(findTensor(name)->type());
  if (static_cast<int64_t>(data.size()) != byteSize(type)) {
    return absl::InvalidArgumentError(absl::StrCat("tensor '", name, "' has ", data.size(), " bytes; it is no scalar"));
  }
  switch (type) {
    case DType::kF32:
      return *reinterpret_cast<const float*>(data.data());
    case DType::kF64:
      return *reinterpret_cast<const double*>(data.data());
    case DType::kI32:
      return *reinterpret_cast<const int32_t*>(data.data());
    case DType::kI64:
      return static_cast<double>(*reinterpret_cast<const int64_t*>(data.data()));
    case DType::kBool:
      return data[0] != 0 ? 1.0 : 0.0;
    default:
      return absl::UnimplementedError(absl::StrCat("scalar '", name, "' of type ", dtypeName(type)));
  }
}

absl::Status Executor::writeTrace(const std::string& path) const {
  nlohmann::json events = nlohmann::json::array();
  for (size_t rank = 0; rank < impl_->ranks.size(); ++rank) {
    const std::vector<ProfileEvent>& profile = impl_->ranks[rank]->profile();
    for (const ProfileEvent& event : profile) {
      const auto micros = [](auto duration) { return std::chrono::duration<double, std::micro>(duration).count(); };
      const bool collective = event.instruction->has_collective();
      events.push_back({{"name", event.instruction->label()},
                        {"cat", collective ? "collective" : event.instruction->kernel()},
                        {"ph", "X"},
                        {"pid", 0},
                        {"tid", rank},
                        {"ts", micros(event.begin.time_since_epoch())},
                        {"dur", micros(event.end - event.begin)},
                        {"args", {{"piece", event.piece}}}});
    }
  }
  std::ofstream stream(path);
  stream << nlohmann::json{{"traceEvents", events}}.dump();
  stream.flush();
  return stream ? absl::OkStatus() : absl::UnavailableError(absl::StrCat("cannot write ", path));
}

}  // namespace weft
