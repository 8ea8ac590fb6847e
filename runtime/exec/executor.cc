#include "runtime/exec/executor.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>
#include <set>
#include <thread>

#include "absl/strings/str_cat.h"
#include "runtime/base/arithmetic.h"
#include "runtime/base/guarded.h"
#include "runtime/base/status.h"
#include "runtime/comm/inproc.h"
#include "runtime/device/device.h"
#include "runtime/exec/input_tracker.h"
#include "runtime/exec/rank.h"
#include "runtime/exec/rank_threads.h"
#include "runtime/exec/slices.h"
#include "runtime/exec/trace.h"
#include "runtime/plan/collectives.h"
#include "runtime/plan/plan_file.h"
#include "runtime/plan/routes.h"

namespace weft {
namespace {

constexpr size_t kMaxHostEvents = 20000;
// Host memory of a prepared instruction with its kernel, about.
constexpr int64_t kInstructionBytes = 1024;

absl::Status unknownTensor(const plan::Plan& plan, const std::string& name) {
  std::string known;
  for (const plan::NamedTensor& tensor : plan.tensors()) {
    absl::StrAppend(&known, known.empty() ? "" : ", ", tensor.name());
  }
  return absl::NotFoundError(absl::StrCat("no tensor '", name, "' in this program; it has ", known));
}

// One submesh's ranks: all of them, or those that own a pipeline stage.
struct Submesh {
  Submesh(const plan::Plan& ofSubmesh, int64_t first, const InprocOptions& options)
      : plan(ofSubmesh), firstRank(first), groups(ofSubmesh), world(ofSubmesh.ranks(), options) {
    for (int i = 0; i < plan.tensors_size(); ++i) {
      tensors[plan.tensors(i).name()] = i;
    }
  }

  const plan::NamedTensor* find(const std::string& name) const {
    const auto it = tensors.find(name);
    return it == tensors.end() ? nullptr : &plan.tensors(it->second);
  }
  const plan::Buffer& bufferOf(const plan::NamedTensor& tensor) const {
    return plan.buffers(static_cast<int>(tensor.buffer()));
  }

  // Meeting places for every group, and what room the collectives need besides, so that none allocates in a step.
  void prepareGroups() {
    for (int group = 0; group < groups.count(); ++group) {
      world.prepare(groups.members(group));
    }
    for (const plan::Function& function : plan.functions()) {
      for (const plan::Instruction& instruction : function.instructions()) {
        if (instruction.has_collective()) {
          mostTensors = std::max<int64_t>(mostTensors, instruction.inputs_size());
          mostStaging = std::max(mostStaging, stagingOf(instruction));
        }
      }
    }
  }

  // Bytes of the inputs that overlap their outputs other than in place.
  int64_t stagingOf(const plan::Instruction& instruction) const {
    int64_t bytes = 0;
    for (int i = 0; i < instruction.inputs_size(); ++i) {
      const ByteRange in = byteRangeOf(instruction.inputs(i));
      const ByteRange out = byteRangeOf(instruction.outputs(i));
      const bool inPlace = mayRunInPlace(instruction.collective().kind()) && in.begin == out.begin;
      if (in.memory == out.memory && in.begin < out.end && out.begin < in.end && !inPlace) {
        const int64_t input = plan.buffers(static_cast<int>(instruction.inputs(i).buffer())).bytes();
        bytes = boundedSum(bytes, alignUp(input));
      }
    }
    return bytes;
  }

  // The bytes of a region that an operand names. Slots aside: both ends of a call are in one slot.
  struct ByteRange {
    plan::MemoryClass memory;
    int64_t begin;
    int64_t end;
  };
  ByteRange byteRangeOf(const plan::Operand& operand) const {
    const plan::Buffer& buffer = plan.buffers(static_cast<int>(operand.buffer()));
    return {buffer.memory(), buffer.offset(), buffer.offset() + buffer.bytes()};
  }

  // What the ranks need besides the plan's regions: prepared instructions, and what collectives copy.
  int64_t otherBytes() const {
    int64_t instructions = 0;
    for (const plan::Function& function : plan.functions()) {
      instructions += function.instructions_size();
    }
    return boundedProduct(plan.ranks(), boundedSum(mostStaging, instructions * kInstructionBytes));
  }

  const plan::Plan& plan;
  int64_t firstRank;
  RankGroups groups;
  InprocWorld world;
  int64_t mostTensors = 0;
  int64_t mostStaging = 0;
  std::map<std::string, int> tensors;  // index by name
};

}  // namespace

struct Executor::Impl {
  enum class Work { kPrepare, kInit, kStep };

  plan::Plan plan;
  ExecutorOptions options;
  const KernelRegistry* kernels = nullptr;
  std::vector<std::unique_ptr<Submesh>> submeshes;
  Channels channels;
  std::vector<std::unique_ptr<InprocCommunicator>> communicators;
  std::vector<std::unique_ptr<Rank>> ranks;
  std::map<std::string, int> tensors;  // of the whole plan: index by name
  std::unique_ptr<InputTracker> inputs;
  std::vector<HostEvent> hostEvents;  // only with options.profile

  std::shared_ptr<RankThreads> threads;
  std::mutex mutex;  // guards error
  absl::Status error;

  absl::Status takeThreads() {
    const int share = std::max<int>(1, static_cast<int>(hostCores() / plan.ranks()));
    const int perRank = options.threadsPerRank > 0 ? options.threadsPerRank : share;
    WEFT_ASSIGN_OR_RETURN(threads, options.store->threadsFor(plan.ranks(), perRank));
    return absl::OkStatus();
  }

  // One rank's part, on its thread. The first failure ends all others.
  void serve(int64_t rank, Work mine) {
    absl::Status status = perform(rank, mine);
    if (status.ok()) {
      return;
    }
    if (absl::IsDeadlineExceeded(status)) {
      status = absl::DeadlineExceededError(absl::StrCat(std::string(status.message()), "; ", standings(rank)));
    }
    {
      const std::lock_guard<std::mutex> lock(mutex);
      // What other ranks see of the first failure is no error of its own.
      if (error.ok() || absl::IsAborted(error)) {
        error = status;
      }
    }
    abort();
  }

  void abort() {
    for (const auto& submesh : submeshes) {
      submesh->world.abort();
    }
    channels.abort();
  }

  const Submesh& submeshOf(int64_t rank) const {
    size_t submesh = 0;
    while (submesh + 1 < submeshes.size() && rank >= submeshes[submesh + 1]->firstRank) {
      ++submesh;
    }
    return *submeshes[submesh];
  }

  absl::Status perform(int64_t rank, Work mine) {
    const Submesh& submesh = submeshOf(rank);
    const plan::RankSchedule& schedule = submesh.plan.schedules(static_cast<int>(rank - submesh.firstRank));
    switch (mine) {
      case Work::kPrepare:
        return ranks[rank]->prepare(*kernels);
      case Work::kInit:
        return ranks[rank]->run(schedule.init(), /*init=*/true);
      default:
        return ranks[rank]->run(schedule.step(), /*init=*/false);
    }
  }

  // Where all ranks but one are.
  std::string standings(int64_t but) const {
    std::string text;
    for (size_t rank = 0; rank < ranks.size(); ++rank) {
      if (static_cast<int64_t>(rank) != but) {
        absl::StrAppend(&text, text.empty() ? "" : "; ", ranks[rank]->standing());
      }
    }
    return text;
  }

  absl::Status dispatch(Work what) {
    if (error.ok()) {
      threads->run([this, what](int64_t rank) { serve(rank, what); });
    }
    return error;
  }

  absl::Status dispatchRecorded(Work what, const char* name) {
    if (!options.profile || hostEvents.size() == kMaxHostEvents) {
      return dispatch(what);
    }
    const auto begin = std::chrono::steady_clock::now();
    const absl::Status status = dispatch(what);
    hostEvents.push_back({name, begin, std::chrono::steady_clock::now()});
    return status;
  }

  absl::Status allocate() {
    const InprocOptions inproc = {.timeout = options.timeout};
    if (plan.submeshes_size() == 0) {
      submeshes.push_back(std::make_unique<Submesh>(plan, 0, inproc));
    }
    for (const plan::Plan& submesh : plan.submeshes()) {
      const int64_t before = submeshes.empty() ? 0 : submeshes.back()->firstRank + submeshes.back()->plan.ranks();
      submeshes.push_back(std::make_unique<Submesh>(submesh, before, inproc));
    }
    const std::unique_ptr<Device> device = cpuDevice();
    for (const auto& submesh : submeshes) {
      submesh->prepareGroups();
      WEFT_RETURN_IF_ERROR(device->claim(submesh->otherBytes()));
      for (int64_t rank = 0; rank < submesh->plan.ranks(); ++rank) {
        communicators.push_back(std::make_unique<InprocCommunicator>(submesh->world, rank));
        communicators.back()->reserve(submesh->mostTensors, submesh->mostStaging);
        const RankContext context = {communicators.back().get(), &channels,       &submesh->groups,
                                     submesh->firstRank,         options.timeout, options.checkFinite};
        ranks.push_back(std::make_unique<Rank>(submesh->plan, rank, context, options.profile));
        WEFT_RETURN_IF_ERROR(ranks.back()->memory().allocate(*device, *options.store, options.allowNew));
      }
    }
    addChannels();
    return absl::OkStatus();
  }

  void addChannels() {
    std::map<uint32_t, const plan::Buffer*> sent;  // what goes into each channel
    for (const auto& submesh : submeshes) {
      forTransfers(*submesh, [&](const plan::Instruction& instruction) {
        if (instruction.transfer().send()) {
          sent[instruction.transfer().channel()] =
              &submesh->plan.buffers(static_cast<int>(instruction.inputs(0).buffer()));
        }
      });
    }
    for (const auto& submesh : submeshes) {
      forTransfers(*submesh, [&](const plan::Instruction& instruction) {
        if (!instruction.transfer().send()) {
          addChannel(*submesh, instruction, *sent.at(instruction.transfer().channel()));
        }
      });
    }
  }

  template <typename Visit>
  static void forTransfers(const Submesh& submesh, const Visit& visit) {
    for (const plan::Function& function : submesh.plan.functions()) {
      for (const plan::Instruction& instruction : function.instructions()) {
        if (instruction.has_transfer()) {
          visit(instruction);
        }
      }
    }
  }

  // The receivers own the mailboxes; a message there lies as the receiver's tensor.
  void addChannel(const Submesh& submesh, const plan::Instruction& receive, const plan::Buffer& sent) {
    const plan::Transfer& transfer = receive.transfer();
    const plan::Buffer& output = submesh.plan.buffers(static_cast<int>(receive.outputs(0).buffer()));
    for (int64_t rank = 0; rank < submesh.plan.ranks(); ++rank) {
      char* const mailbox = ranks[submesh.firstRank + rank]->memory().buffer(transfer.mailbox());
      channels.add(transfer.channel(), rank, std::make_unique<Channel>(mailbox, output.bytes(), transfer.capacity()));
    }
    forEachRoute(transfer, submesh.plan.ranks(), [&](int64_t source, int64_t target, const plan::Transfer::Box* box) {
      channels.connect(transfer.channel(), source, target,
                       box == nullptr ? BoxCopy(output.bytes()) : boxCopyOf(*box, sent, output));
    });
  }

  static BoxCopy boxCopyOf(const plan::Transfer::Box& box, const plan::Buffer& sent, const plan::Buffer& output) {
    const auto list = [](const auto& numbers) { return std::vector<int64_t>(numbers.begin(), numbers.end()); };
    return BoxCopy({list(sent.shape()), list(output.shape()), list(box.source_offset()), list(box.target_offset()),
                    list(box.size())},
                   byteSize(dtypeOf(sent.type())));
  }

  char* bufferOf(const Submesh& submesh, const plan::NamedTensor& tensor, int64_t rank) const {
    return ranks[submesh.firstRank + rank]->memory().buffer(tensor.buffer());
  }

  absl::Status writeZeros(const plan::NamedTensor& tensor) {
    for (const auto& submesh : submeshes) {
      const plan::NamedTensor* local = submesh->find(tensor.name());
      for (int64_t rank = 0; local != nullptr && rank < submesh->plan.ranks(); ++rank) {
        std::memset(bufferOf(*submesh, *local, rank), 0, submesh->bufferOf(*local).bytes());
      }
    }
    return absl::OkStatus();
  }

  // Every rank gets its slice.
  absl::Status writeWhole(const plan::NamedTensor& tensor, const void* data, size_t bytes) {
    if (static_cast<int64_t>(bytes) != globalBytes(tensor)) {
      return absl::InvalidArgumentError(
          absl::StrCat("tensor '", tensor.name(), "' has ", globalBytes(tensor), " bytes, ", bytes, " were given"));
    }
    for (const auto& submesh : submeshes) {
      const plan::NamedTensor* local = submesh->find(tensor.name());
      for (int64_t rank = 0; local != nullptr && rank < submesh->plan.ranks(); ++rank) {
        scatterSlice(*local, submesh->bufferOf(*local), rank, data, bufferOf(*submesh, *local, rank));
      }
    }
    return absl::OkStatus();
  }
};

Executor::Executor(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Executor::~Executor() = default;

absl::StatusOr<std::unique_ptr<Executor>> Executor::create(plan::Plan plan, const KernelRegistry& kernels,
                                                           const ExecutorOptions& options) {
  WEFT_RETURN_IF_ERROR(validatePlan(plan));
  if (options.threadsPerRank < 0 || options.threadsPerRank > kMostThreadsPerRank) {
    return absl::InvalidArgumentError(absl::StrCat("threadsPerRank = ", options.threadsPerRank,
                                                   "; give a number from 1 to ", kMostThreadsPerRank,
                                                   ", or 0 to share the cores"));
  }
  auto impl = std::make_unique<Impl>();
  impl->plan = std::move(plan);
  impl->options = options;
  impl->kernels = &kernels;
  if (impl->options.store == nullptr) {
    impl->options.store = std::make_shared<ParameterStore>();
  }
  for (int i = 0; i < impl->plan.tensors_size(); ++i) {
    impl->tensors[impl->plan.tensors(i).name()] = i;
  }
  WEFT_RETURN_IF_ERROR(guarded([&] { return impl->allocate(); }));
  impl->inputs = std::make_unique<InputTracker>(impl->plan);
  impl->hostEvents.reserve(options.profile ? kMaxHostEvents : 0);
  WEFT_RETURN_IF_ERROR(impl->takeThreads());
  WEFT_RETURN_IF_ERROR(impl->dispatch(Impl::Work::kPrepare));
  impl->kernels = nullptr;
  for (const auto& rank : impl->ranks) {
    rank->memory().share(*impl->options.store);
  }
  return std::unique_ptr<Executor>(new Executor(std::move(impl)));
}

absl::Status Executor::runInit() {
  return impl_->dispatchRecorded(Impl::Work::kInit, "init");
}
absl::Status Executor::runStep() {
  WEFT_RETURN_IF_ERROR(impl_->error);
  WEFT_RETURN_IF_ERROR(
      impl_->inputs->beforeStep(*impl_->options.store, [this](const plan::NamedTensor& tensor, const KeptInput& kept) {
        return kept.isZero ? impl_->writeZeros(tensor) : impl_->writeWhole(tensor, kept.data.data(), kept.data.size());
      }));
  const absl::Status status = impl_->dispatchRecorded(Impl::Work::kStep, "step");
  impl_->inputs->afterStep();
  return status;
}

const plan::Plan& Executor::plan() const {
  return impl_->plan;
}

const plan::NamedTensor* Executor::findTensor(const std::string& name) const {
  const auto it = impl_->tensors.find(name);
  return it == impl_->tensors.end() ? nullptr : &impl_->plan.tensors(it->second);
}

void* Executor::rankBuffer(const plan::NamedTensor& tensor, int64_t rank) const {
  const Submesh& submesh = impl_->submeshOf(rank);
  const plan::NamedTensor* local = submesh.find(tensor.name());
  return local == nullptr ? nullptr : impl_->bufferOf(submesh, *local, rank - submesh.firstRank);
}

std::shared_ptr<ParameterStore> Executor::store() const {
  return impl_->options.store;
}

int64_t Executor::allocatedBytes() const {
  int64_t bytes = 0;
  for (size_t rank = 0; rank < impl_->ranks.size(); ++rank) {
    bytes += impl_->ranks[rank]->memory().allocatedBytes() + impl_->communicators[rank]->stagingBytes();
  }
  return bytes;
}

absl::Status Executor::writeTensor(const std::string& name, const void* data, size_t bytes) {
  const plan::NamedTensor* tensor = findTensor(name);
  if (tensor == nullptr) {
    return unknownTensor(impl_->plan, name);
  }
  WEFT_RETURN_IF_ERROR(impl_->writeWhole(*tensor, data, bytes));
  impl_->inputs->wroteWhole(*tensor);
  return absl::OkStatus();
}

absl::StatusOr<plan::Slice> Executor::slice(const std::string& name, int64_t rank) const {
  const plan::NamedTensor* tensor = findTensor(name);
  if (tensor == nullptr) {
    return unknownTensor(impl_->plan, name);
  }
  if (rank < 0 || rank >= impl_->plan.ranks()) {
    return absl::OutOfRangeError(absl::StrCat("no rank ", rank, " among ", impl_->plan.ranks()));
  }
  return tensor->slices(static_cast<int>(rank));
}

absl::Status Executor::writeSlice(const std::string& name, int64_t rank, const void* data, size_t bytes) {
  WEFT_RETURN_IF_ERROR(slice(name, rank).status());
  const plan::NamedTensor& tensor = *findTensor(name);
  if (static_cast<int64_t>(bytes) != sliceBytes(tensor, rank)) {
    return absl::InvalidArgumentError(absl::StrCat("rank ", rank, " holds ", sliceBytes(tensor, rank),
                                                   " bytes of tensor '", name, "', ", bytes, " were given"));
  }
  const Submesh& submesh = impl_->submeshOf(rank);
  const plan::NamedTensor* local = submesh.find(name);
  if (local != nullptr) {
    const int64_t place = rank - submesh.firstRank;
    writeLocal(*local, submesh.bufferOf(*local), place, data, impl_->bufferOf(submesh, *local, place));
  }
  impl_->inputs->wroteSlice(tensor, rank);
  return absl::OkStatus();
}

absl::StatusOr<std::vector<char>> Executor::readTensor(const std::string& name) const {
  const plan::NamedTensor* tensor = findTensor(name);
  if (tensor == nullptr) {
    return unknownTensor(impl_->plan, name);
  }
  std::vector<char> data;
  WEFT_RETURN_IF_ERROR(guarded([&] {
    data.resize(globalBytes(*tensor));
    return absl::OkStatus();
  }));
  // Replicas hold the same elements; the first is taken, of the first submesh that has the tensor.
  for (const auto& submesh : impl_->submeshes) {
    const plan::NamedTensor* local = submesh->find(name);
    if (local == nullptr) {
      continue;
    }
    std::set<std::vector<int64_t>> done;
    for (int64_t rank = 0; rank < submesh->plan.ranks(); ++rank) {
      const plan::Slice& slice = local->slices(static_cast<int>(rank));
      if (done.insert({slice.offset().begin(), slice.offset().end()}).second) {
        gatherSlice(*local, submesh->bufferOf(*local), rank, impl_->bufferOf(*submesh, *local, rank), data.data());
      }
    }
    return data;
  }
  return absl::InternalError(absl::StrCat("no submesh holds tensor '", name, "'"));
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

namespace {

absl::Status noProfile() {
  return absl::FailedPreconditionError("nothing was recorded; create the executor with options.profile");
}

}  // namespace

absl::Status Executor::writeTrace(const std::string& path) const {
  return impl_->options.profile ? writeChromeTrace(impl_->ranks, impl_->hostEvents, path) : noProfile();
}

absl::Status Executor::checkRecorded(int64_t rank) const {
  if (!impl_->options.profile) {
    return noProfile();
  }
  return rank >= 0 && rank < impl_->plan.ranks()
             ? absl::OkStatus()
             : absl::OutOfRangeError(absl::StrCat("no rank ", rank, " among ", impl_->plan.ranks()));
}

absl::StatusOr<std::vector<ExecutedAction>> Executor::executedActions(int64_t rank) const {
  WEFT_RETURN_IF_ERROR(checkRecorded(rank));
  std::vector<ExecutedAction> executed;
  for (const ActionEvent& event : impl_->ranks[rank]->profile().actions) {
    executed.push_back({event.function->kind(), event.function->stage(), event.microBatch});
  }
  return executed;
}

absl::StatusOr<std::vector<ExecutedInstruction>> Executor::executedInstructions(int64_t rank) const {
  WEFT_RETURN_IF_ERROR(checkRecorded(rank));
  std::vector<ExecutedInstruction> executed;
  for (const ProfileEvent& event : impl_->ranks[rank]->profile().instructions) {
    executed.push_back({event.instruction, std::chrono::duration<double>(event.end - event.begin).count()});
  }
  return executed;
}

void keepZeroInputs(Executor& executor) {
  for (const plan::NamedTensor& tensor : executor.plan().tensors()) {
    if (tensor.kind() == plan::TENSOR_INPUT) {
      executor.store()->keepZeroInput(tensor.name());
    }
  }
}

}  // namespace weft
