#include "runtime/exec/rank.h"

#include <sys/mman.h>

#include <cstring>

#include "absl/strings/str_cat.h"
#include "runtime/base/status.h"
#include "runtime/plan/plan_file.h"

namespace weft {
namespace {

// Events kept for the trace; a step of a large model has a few thousand.
constexpr size_t kMaxProfileEvents = 200000;

TensorSpec specOf(const plan::Buffer& buffer) {
  return {dtypeOf(buffer.type()), std::vector<int64_t>(buffer.shape().begin(), buffer.shape().end())};
}

Attribute attributeOf(const plan::Attribute& attribute) {
  switch (attribute.value_case()) {
    case plan::Attribute::kReal:
      return attribute.real();
    case plan::Attribute::kText:
      return attribute.text();
    case plan::Attribute::kIntegers:
      return std::vector<int64_t>(attribute.integers().values().begin(), attribute.integers().values().end());
    case plan::Attribute::kFloats:
      return std::vector<double>(attribute.floats().values().begin(), attribute.floats().values().end());
    default:
      return attribute.integer();
  }
}

Reduction reductionOf(plan::Reduction reduction) {
  return reduction == plan::MAX ? Reduction::kMax : reduction == plan::MIN ? Reduction::kMin : Reduction::kSum;
}

}  // namespace

RegionMemory::RegionMemory(int64_t bytes) : bytes_(bytes) {
  void* memory = mmap(nullptr, std::max<int64_t>(bytes, 1), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory != MAP_FAILED) {
    data_ = static_cast<char*>(memory);
    // Touched now, so that resident memory is the planned memory from the start.
    std::memset(data_, 0, bytes);
  }
}

RegionMemory::~RegionMemory() {
  if (data_ != nullptr) {
    munmap(data_, std::max<int64_t>(bytes_, 1));
  }
}

Rank::Rank(const plan::Plan& plan, int64_t rank, Communicator& communicator, bool profile)
    : plan_(plan), rank_(rank), communicator_(communicator), profiling_(profile) {}

absl::Status Rank::allocate(const std::map<uint32_t, char*>& shared) {
  bool ownsParameters = shared.empty();
  for (const plan::NamedTensor& tensor : plan_.tensors()) {
    const bool stored = tensor.kind() == plan::TENSOR_PARAMETER || tensor.kind() == plan::TENSOR_STATE;
    ownsParameters |= stored && shared.count(tensor.buffer()) == 0;
  }
  WEFT_RETURN_IF_ERROR(allocateRegions(ownsParameters));
  placeBuffers(shared);
  if (profiling_) {
    profile_.reserve(kMaxProfileEvents);
  }
  return absl::OkStatus();
}

absl::Status Rank::allocateRegions(bool ownsParameters) {
  for (int memory = 0; memory < plan::MemoryClass_ARRAYSIZE; ++memory) {
    int64_t bytes = 0;
    for (const plan::Region& region : plan_.memory().regions()) {
      bytes += region.memory() == memory ? region.bytes() * region.slots() : 0;
    }
    if ((memory == plan::PARAMETER || memory == plan::STATE) && !ownsParameters) {
      bytes = 0;
    }
    const auto which = static_cast<plan::MemoryClass>(memory);
    regions_[which] = std::make_unique<RegionMemory>(bytes);
    if (regions_[which]->data() == nullptr) {
      return absl::ResourceExhaustedError(absl::StrCat("rank ", rank_, " cannot get ", bytes, " bytes for region ",
                                                       plan::MemoryClass_Name(which), " (the plan needs ",
                                                       plan_.memory().peak_bytes(),
                                                       " per rank); compile for more devices or with a memory limit"));
    }
  }
  return absl::OkStatus();
}

void Rank::placeBuffers(const std::map<uint32_t, char*>& shared) {
  // Another view of a shared tensor's bytes, or of a part of them, follows it into the store.
  const auto sharedPlace = [&](const plan::Buffer& buffer) -> char* {
    for (const auto& [index, memory] : shared) {
      const plan::Buffer& whole = plan_.buffers(static_cast<int>(index));
      if (whole.memory() == buffer.memory() && whole.offset() <= buffer.offset() &&
          buffer.offset() + buffer.bytes() <= whole.offset() + whole.bytes()) {
        return memory + (buffer.offset() - whole.offset());
      }
    }
    return nullptr;
  };
  for (const plan::Buffer& buffer : plan_.buffers()) {
    char* memory = sharedPlace(buffer);
    if (memory == nullptr) {
      memory = regions_[buffer.memory()]->data() + buffer.offset();
    }
    buffers_.push_back(memory);
    if (!buffer.data().empty()) {
      std::memcpy(memory, buffer.data().data(), buffer.data().size());
    }
  }
}

int64_t Rank::allocatedBytes() const {
  int64_t bytes = 0;
  for (const auto& [memory, region] : regions_) {
    bytes += region->bytes();
  }
  return bytes;
}

int64_t Rank::tableValue(int64_t column) const {
  return plan_.rank_table().values(static_cast<int>(rank_ * plan_.rank_table().columns() + column));
}

Rank::Place Rank::place(const plan::Operand& operand) const {
  const plan::Buffer& buffer = plan_.buffers(static_cast<int>(operand.buffer()));
  int64_t slotStride = 0;
  for (const plan::Region& region : plan_.memory().regions()) {
    if (region.memory() == plan::ACTIVATION && buffer.memory() == plan::ACTIVATION) {
      slotStride = region.bytes();
    }
  }
  return {buffers_[operand.buffer()] + operand.offset(), operand.piece_stride(), slotStride};
}

absl::Status Rank::prepare(const KernelRegistry& kernels) {
  workspace_ = regions_[plan::WORKSPACE]->data();
  for (const plan::Function& function : plan_.functions()) {
    std::vector<Prepared>& list = functions_.emplace_back(function.instructions_size());
    for (int i = 0; i < function.instructions_size(); ++i) {
      if (absl::Status status = prepareInstruction(function.instructions(i), kernels, list[i]); !status.ok()) {
        return describe(status, function.instructions(i));
      }
    }
  }
  if (profiling_) {
    profile_.reserve(kMaxProfileEvents);
  }
  return absl::OkStatus();
}

absl::Status Rank::prepareInstruction(const plan::Instruction& instruction, const KernelRegistry& kernels,
                                      Prepared& prepared) {
  prepared.source = &instruction;
  KernelSpec spec;
  spec.name = instruction.kernel();
  for (const plan::Operand& operand : instruction.inputs()) {
    prepared.inputs.push_back(place(operand));
    spec.inputs.push_back(specOf(plan_.buffers(static_cast<int>(operand.buffer()))));
  }
  for (const plan::Operand& operand : instruction.outputs()) {
    prepared.outputs.push_back(place(operand));
    spec.outputs.push_back(specOf(plan_.buffers(static_cast<int>(operand.buffer()))));
  }
  prepared.inputPointers.resize(prepared.inputs.size());
  prepared.outputPointers.resize(prepared.outputs.size());
  if (instruction.has_collective()) {
    prepareCollective(instruction, prepared);
    return absl::OkStatus();
  }
  for (const plan::Scalar& scalar : instruction.scalars()) {
    prepared.scalarBases.push_back(scalar.immediate() + (scalar.column() >= 0 ? tableValue(scalar.column()) : 0));
    prepared.pieceFactors.push_back(scalar.piece_factor());
  }
  prepared.scalars.resize(prepared.scalarBases.size());
  for (const auto& [name, value] : instruction.attributes()) {
    spec.attributes[name] = attributeOf(value);
  }
  spec.scalars = prepared.scalars.size();
  WEFT_ASSIGN_OR_RETURN(prepared.kernel, kernels.create(spec));
  const int64_t room = regions_[plan::WORKSPACE]->bytes();
  if (prepared.kernel->workspaceBytes() > room) {
    return absl::FailedPreconditionError(absl::StrCat("the kernel needs ", prepared.kernel->workspaceBytes(),
                                                      " bytes of workspace, the plan reserves ", room,
                                                      "; compile the plan with this version"));
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
  for (const auto& group : plan_.group_sets(static_cast<int>(collective.group_set())).groups()) {
    if (std::find(group.ranks().begin(), group.ranks().end(), rank_) != group.ranks().end()) {
      prepared.group.assign(group.ranks().begin(), group.ranks().end());
    }
  }
}

absl::Status Rank::run(const google::protobuf::RepeatedPtrField<plan::Action>& actions) {
  for (const plan::Action& action : actions) {
    for (Prepared& prepared : functions_[action.function()]) {
      const auto begin = profiling_ ? std::chrono::steady_clock::now() : std::chrono::steady_clock::time_point();
      if (absl::Status status = runInstruction(prepared, action); !status.ok()) {
        return describe(status, *prepared.source);
      }
      if (profiling_ && profile_.size() < kMaxProfileEvents) {
        profile_.push_back({prepared.source, action.piece(), begin, std::chrono::steady_clock::now()});
      }
    }
  }
  return absl::OkStatus();
}

absl::Status Rank::runInstruction(Prepared& prepared, const plan::Action& action) {
  for (size_t i = 0; i < prepared.inputs.size(); ++i) {
    prepared.inputPointers[i] = prepared.inputs[i].at(action);
  }
  for (size_t i = 0; i < prepared.outputs.size(); ++i) {
    prepared.outputPointers[i] = prepared.outputs[i].at(action);
  }
  if (prepared.source->has_collective()) {
    return runCollective(prepared);
  }
  for (size_t i = 0; i < prepared.scalars.size(); ++i) {
    prepared.scalars[i] = prepared.scalarBases[i] + action.piece() * prepared.pieceFactors[i];
  }
  KernelArguments arguments;
  arguments.inputs = prepared.inputPointers.data();
  arguments.outputs = prepared.outputPointers.data();
  arguments.scalars = prepared.scalars.data();
  arguments.workspace = workspace_;
  return prepared.kernel->run(arguments);
}

absl::Status Rank::runCollective(Prepared& prepared) {
  for (size_t i = 0; i < prepared.tensors.size(); ++i) {
    prepared.tensors[i].input = prepared.inputPointers[i];
    prepared.tensors[i].output = prepared.outputPointers[i];
  }
  const plan::Collective& collective = prepared.source->collective();
  switch (collective.kind()) {
    case plan::ALL_REDUCE:
      return communicator_.allReduce(prepared.group, prepared.tensors, reductionOf(collective.reduction()));
    case plan::ALL_GATHER:
      return communicator_.allGather(prepared.group, prepared.tensors);
    case plan::REDUCE_SCATTER:
      return communicator_.reduceScatter(prepared.group, prepared.tensors, reductionOf(collective.reduction()));
    case plan::ALL_TO_ALL:
      return communicator_.allToAll(prepared.group, prepared.tensors);
    default:
      return communicator_.permute(prepared.permuteSource, prepared.tensors);
  }
}

absl::Status Rank::describe(const absl::Status& status, const plan::Instruction& instruction) const {
  if (absl::IsAborted(status)) {
    return status;
  }
  const std::string what =
      instruction.has_collective() ? plan::CollectiveKind_Name(instruction.collective().kind()) : instruction.kernel();
  std::string where;
  if (static_cast<int>(instruction.location()) < plan_.locations_size()) {
    const plan::Location& location = plan_.locations(static_cast<int>(instruction.location()));
    where = location.file().empty() ? "" : absl::StrCat(" (", location.file(), ":", location.line(), ")");
  }
  return absl::Status(status.code(), absl::StrCat("rank ", rank_, ", operator ", instruction.label(), where,
                                                  ", kernel ", what, ": ", std::string(status.message())));
}

}  // namespace weft
