#include "runtime/exec/rank.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "runtime/base/guarded.h"
#include "runtime/base/status.h"
#include "runtime/exec/finite_check.h"
#include "runtime/exec/instruction_spec.h"
#include "runtime/plan/describe.h"
#include "runtime/plan/plan_file.h"

namespace weft {
namespace {

// Events kept for the trace; a step of a large model has a few thousand.
constexpr size_t kMaxProfileEvents = 200000;
constexpr size_t kMaxActionEvents = 20000;

using Clock = std::chrono::steady_clock;

Reduction reductionOf(plan::Reduction reduction) {
  return reduction == plan::MAX ? Reduction::kMax : reduction == plan::MIN ? Reduction::kMin : Reduction::kSum;
}

}  // namespace

Rank::Rank(const plan::Plan& plan, int64_t rank, const RankContext& context, bool profile)
    : plan_(plan), rank_(rank), context_(context), memory_(plan, rank, context.firstRank + rank), profiling_(profile) {}

int64_t Rank::tableValue(int64_t column) const {
  return plan_.rank_table().values(static_cast<int>(rank_ * plan_.rank_table().columns() + column));
}

Rank::Address Rank::addressOf(const plan::Operand& operand) const {
  return {memory_.buffer(operand.buffer()), memory_.slotsOf(plan_.buffers(static_cast<int>(operand.buffer())))};
}

// Throwing kernels, too, leave the instruction they are in as the current one.
template <typename Body>
absl::Status Rank::located(const Body& body) {
  const absl::Status status = guarded(body);
  const plan::Instruction* const instruction = current_.load(std::memory_order_relaxed);
  if (status.ok() || absl::IsAborted(status) || instruction == nullptr) {
    return status;
  }
  return absl::Status(status.code(), absl::StrCat("rank ", globalRank(), ", operator ", describe(plan_, *instruction),
                                                  ": ", std::string(status.message())));
}

absl::Status Rank::prepare(const KernelRegistry& kernels) {
  const absl::Status status = located([&] { return prepareAll(kernels); });
  current_.store(nullptr, std::memory_order_relaxed);
  return status;
}

absl::Status Rank::run(const google::protobuf::RepeatedPtrField<plan::Action>& actions, bool init) {
  return located([&] { return runAll(actions, init); });
}

absl::Status Rank::prepareAll(const KernelRegistry& kernels) {
  for (const plan::Function& function : plan_.functions()) {
    std::vector<Prepared>& list = functions_.emplace_back(function.instructions_size());
    for (int i = 0; i < function.instructions_size(); ++i) {
      current_.store(&function.instructions(i), std::memory_order_relaxed);
      WEFT_RETURN_IF_ERROR(prepareInstruction(function.instructions(i), kernels, list[i]));
    }
  }
  current_.store(nullptr, std::memory_order_relaxed);
  if (profiling_) {
    profile_.instructions.reserve(kMaxProfileEvents);
    profile_.actions.reserve(kMaxActionEvents);
  }
  return absl::OkStatus();
}

absl::Status Rank::prepareInstruction(const plan::Instruction& instruction, const KernelRegistry& kernels,
                                      Prepared& prepared) {
  prepared.source = &instruction;
  prepareOperands(instruction, prepared);
  if (instruction.has_collective()) {
    prepareCollective(instruction, prepared);
    return absl::OkStatus();
  }
  if (instruction.has_transfer()) {
    const plan::Transfer& transfer = instruction.transfer();
    const Channels* const channels = context_.channels;
    if (channels != nullptr && transfer.send()) {
      prepared.outlets = channels->outlets(transfer.channel(), rank_);
      return absl::OkStatus();
    }
    prepared.channel = channels == nullptr ? nullptr : channels->find(transfer.channel(), rank_);
    return prepared.channel != nullptr ? absl::OkStatus()
                                       : absl::InternalError(absl::StrCat("no channel ", transfer.channel()));
  }
  return prepareKernel(instruction, kernels, prepared);
}

void Rank::prepareOperands(const plan::Instruction& instruction, Prepared& prepared) const {
  for (const plan::Operand& operand : instruction.inputs()) {
    prepared.inputs.push_back(addressOf(operand));
  }
  prepared.writesSharedOnly = instruction.outputs_size() > 0;
  for (const plan::Operand& operand : instruction.outputs()) {
    prepared.outputs.push_back(addressOf(operand));
    prepared.writesSharedOnly = prepared.writesSharedOnly && memory_.isShared(operand.buffer());
  }
  prepared.inputPointers.resize(prepared.inputs.size());
  prepared.outputPointers.resize(prepared.outputs.size());
}

absl::Status Rank::prepareKernel(const plan::Instruction& instruction, const KernelRegistry& kernels,
                                 Prepared& prepared) {
  const KernelSpec spec = specOf(plan_, instruction);
  for (const plan::Scalar& scalar : instruction.scalars()) {
    prepared.scalarBases.push_back(scalar.immediate() + (scalar.column() >= 0 ? tableValue(scalar.column()) : 0));
    prepared.microBatchFactors.push_back(scalar.micro_batch_factor());
  }
  prepared.scalars.resize(prepared.scalarBases.size());
  WEFT_ASSIGN_OR_RETURN(prepared.kernel, kernels.create(spec));
  if (prepared.kernel->workspaceBytes() > memory_.workspaceBytes()) {
    return absl::FailedPreconditionError(
        absl::StrCat("the kernel needs ", prepared.kernel->workspaceBytes(), " bytes of workspace, the plan reserves ",
                     memory_.workspaceBytes(), "; compile the plan with this version"));
  }
  return absl::OkStatus();
}

void Rank::prepareCollective(const plan::Instruction& instruction, Prepared& prepared) {
  const plan::Collective& collective = instruction.collective();
  for (const plan::Operand& operand : instruction.inputs()) {
    const plan::Buffer& buffer = plan_.buffers(static_cast<int>(operand.buffer()));
    const TensorSpec spec = specOf(buffer);
    prepared.tensors.push_back({nullptr, nullptr, spec.type, spec.shape, collective.dim(), collective.split_dim()});
  }
  if (collective.kind() == plan::PERMUTE) {
    prepared.permuteSource = tableValue(collective.source_column());
    return;
  }
  prepared.group = context_.groups->members(context_.groups->of(collective, rank_));
}

bool Rank::hasRoomFor(const google::protobuf::RepeatedPtrField<plan::Action>& actions) const {
  size_t instructions = profile_.instructions.size();
  for (const plan::Action& action : actions) {
    instructions += functions_[action.function()].size();
  }
  return instructions <= kMaxProfileEvents && profile_.actions.size() + actions.size() <= kMaxActionEvents;
}

absl::Status Rank::runAll(const google::protobuf::RepeatedPtrField<plan::Action>& actions, bool init) {
  // Only whole steps are recorded, so that a trace ends with one.
  profiling_ = profiling_ && hasRoomFor(actions);
  for (const plan::Action& action : actions) {
    const Clock::time_point begin = profiling_ ? Clock::now() : Clock::time_point();
    WEFT_RETURN_IF_ERROR(runAction(action, init));
    if (profiling_) {
      const plan::Function& function = plan_.functions(static_cast<int>(action.function()));
      profile_.actions.push_back({&function, action.micro_batch(), begin, Clock::now()});
    }
  }
  current_.store(nullptr, std::memory_order_relaxed);
  return absl::OkStatus();
}

absl::Status Rank::runAction(const plan::Action& action, bool init) {
  for (Prepared& prepared : functions_[action.function()]) {
    if (init && prepared.writesSharedOnly) {
      continue;
    }
    current_.store(prepared.source, std::memory_order_relaxed);
    const Clock::time_point begin = profiling_ ? Clock::now() : Clock::time_point();
    WEFT_RETURN_IF_ERROR(runInstruction(prepared, action));
    if (profiling_) {
      profile_.instructions.push_back({prepared.source, action.micro_batch(), begin, Clock::now()});
    }
  }
  return absl::OkStatus();
}

absl::Status Rank::runInstruction(Prepared& prepared, const plan::Action& action) {
  for (size_t i = 0; i < prepared.inputs.size(); ++i) {
    prepared.inputPointers[i] = prepared.inputs[i].at(action.micro_batch());
  }
  for (size_t i = 0; i < prepared.outputs.size(); ++i) {
    prepared.outputPointers[i] = prepared.outputs[i].at(action.micro_batch());
  }
  if (!context_.checkFinite) {
    return runPrepared(prepared, action);
  }
  const FiniteCheck check(plan_, *prepared.source, prepared.inputPointers.data());
  WEFT_RETURN_IF_ERROR(runPrepared(prepared, action));
  return check.after(prepared.outputPointers.data());
}

absl::Status Rank::runPrepared(Prepared& prepared, const plan::Action& action) {
  if (prepared.source->has_collective()) {
    return runCollective(prepared);
  }
  if (prepared.source->has_transfer()) {
    return runTransfer(prepared);
  }
  for (size_t i = 0; i < prepared.scalars.size(); ++i) {
    prepared.scalars[i] = prepared.scalarBases[i] + action.micro_batch() * prepared.microBatchFactors[i];
  }
  KernelArguments arguments;
  arguments.inputs = prepared.inputPointers.data();
  arguments.outputs = prepared.outputPointers.data();
  arguments.scalars = prepared.scalars.data();
  arguments.workspace = memory_.workspace();
  return prepared.kernel->run(arguments);
}

absl::Status Rank::runTransfer(Prepared& prepared) {
  if (prepared.channel != nullptr) {
    return prepared.channel->receive(prepared.outputPointers[0], context_.timeout);
  }
  for (const Outlet& outlet : prepared.outlets) {
    WEFT_RETURN_IF_ERROR(outlet.channel->send(outlet.sender, prepared.inputPointers[0], context_.timeout));
  }
  return absl::OkStatus();
}

absl::Status Rank::runCollective(Prepared& prepared) {
  for (size_t i = 0; i < prepared.tensors.size(); ++i) {
    prepared.tensors[i].input = prepared.inputPointers[i];
    prepared.tensors[i].output = prepared.outputPointers[i];
  }
  const plan::Collective& collective = prepared.source->collective();
  switch (collective.kind()) {
    case plan::ALL_REDUCE:
      return context_.communicator->allReduce(prepared.group, prepared.tensors, reductionOf(collective.reduction()));
    case plan::ALL_GATHER:
      return context_.communicator->allGather(prepared.group, prepared.tensors);
    case plan::REDUCE_SCATTER:
      return context_.communicator->reduceScatter(prepared.group, prepared.tensors,
                                                  reductionOf(collective.reduction()));
    case plan::ALL_TO_ALL:
      return context_.communicator->allToAll(prepared.group, prepared.tensors);
    default:
      return context_.communicator->permute(prepared.permuteSource, prepared.tensors);
  }
}

std::string Rank::standing() const {
  const plan::Instruction* instruction = current_.load(std::memory_order_relaxed);
  return instruction == nullptr
             ? absl::StrCat("rank ", globalRank(), " is not in a step")
             : absl::StrCat("rank ", globalRank(), " is at operator ", describe(plan_, *instruction));
}

}  // namespace weft
