// validatePlan: every index, offset and size of a plan in range. Other files check the range of every integer
// (check_integers.cc), what an instruction's operands share (check_overlap.cc), the ends of channels
// (check_channels.cc), and whether all ranks come to an end (play.cc).

#include <algorithm>
#include <map>
#include <set>

#include "absl/strings/str_join.h"
#include "runtime/base/arithmetic.h"
#include "runtime/base/status.h"
#include "runtime/plan/activation_rings.h"
#include "runtime/plan/check_channels.h"
#include "runtime/plan/check_integers.h"
#include "runtime/plan/check_overlap.h"
#include "runtime/plan/limits.h"
#include "runtime/plan/plan_file.h"
#include "runtime/plan/play.h"
#include "runtime/plan/statistics.h"

namespace weft {
namespace {

using Sizes = google::protobuf::RepeatedField<int64_t>;

template <typename... Parts>
absl::Status bad(const Parts&... parts) {
  return inconsistentPlan(parts...);
}

// Bytes of a tensor. `what` begins the error: "buffer 3 (h0.fc)".
absl::StatusOr<int64_t> bytesOf(const std::string& what, plan::ElementType type, const Sizes& shape) {
  if (!plan::ElementType_IsValid(type)) {
    return bad(what, " has the unknown element type ", static_cast<int>(type));
  }
  if (shape.size() > kMaxDimensions) {
    return bad(what, " has a shape with ", shape.size(), " dimensions, more than ", kMaxDimensions);
  }
  // Empty dimensions count as one here, so that no product of a part of the shape overflows either.
  int64_t elements = 1;
  bool empty = false;
  for (const int64_t size : shape) {
    elements = boundedProduct(elements, std::max<int64_t>(size, 1));
    empty |= size == 0;
  }
  const int64_t bytes = boundedProduct(elements, byteSize(dtypeOf(type)));
  if (bytes > kMaxPlanInteger || (empty && elements > kMaxEmptyElements)) {
    return bad(what, " has a shape of more than ", empty ? kMaxEmptyElements : kMaxPlanInteger,
               empty ? " rows" : " bytes", ": [", absl::StrJoin(shape, ", "), "]");
  }
  return empty ? 0 : bytes;
}

bool same(const Sizes& a, const Sizes& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end());
}

absl::Status checkTensorKind(const plan::NamedTensor& tensor) {
  const std::string name = absl::StrCat("tensor '", tensor.name(), "'");
  WEFT_ASSIGN_OR_RETURN(const int64_t bytes, bytesOf(name, tensor.type(), tensor.shape()));
  WEFT_ASSIGN_OR_RETURN(const int64_t fileBytes, bytesOf(name + " in files", tensor.type(), tensor.file_shape()));
  if (bytes != fileBytes || !plan::TensorKind_IsValid(tensor.kind())) {
    return bad(name, " has ", bytes, " bytes, ", fileBytes, " in files, and kind ", static_cast<int>(tensor.kind()));
  }
  return absl::OkStatus();
}

// One submesh, or a plan without submeshes.
class Validator {
 public:
  explicit Validator(const plan::Plan& plan) : plan_(plan) {}

  absl::Status run() {
    if (plan_.ranks() < 1 || plan_.ranks() > kMaxRanks || plan_.micro_batches() < 1 ||
        plan_.micro_batches() > kMaxRanks) {
      return bad(plan_.ranks(), " ranks, ", plan_.micro_batches(), " micro-batches; both must be from 1 to ",
                 kMaxRanks);
    }
    WEFT_RETURN_IF_ERROR(checkRegions());
    WEFT_RETURN_IF_ERROR(checkBuffers());
    WEFT_RETURN_IF_ERROR(checkTable());
    WEFT_RETURN_IF_ERROR(checkGroups());
    WEFT_RETURN_IF_ERROR(checkTensors());
    WEFT_RETURN_IF_ERROR(checkFunctions());
    WEFT_RETURN_IF_ERROR(checkSchedules());
    return checkRings(plan_);
  }

  // What all ranks execute in `init` and one step, counted as in limits.h.
  int64_t work() const { return work_; }

 private:
  absl::Status checkRegions() {
    const auto rings = static_cast<uint32_t>(
        std::count_if(plan_.memory().regions().begin(), plan_.memory().regions().end(),
                      [](const plan::Region& region) { return region.memory() == plan::ACTIVATION; }));
    int64_t peak = 0;
    for (const plan::Region& region : plan_.memory().regions()) {
      const bool ring = region.memory() == plan::ACTIVATION;
      if (!plan::MemoryClass_IsValid(region.memory()) || region.ring() >= (ring ? rings : 1) ||
          !regions_.emplace(std::pair(region.memory(), region.ring()), region.bytes()).second) {
        return bad("region ", static_cast<int>(region.memory()), ", ring ", region.ring(), " of ", rings,
                   ", is unknown or stands there twice");
      }
      const std::string name =
          absl::StrCat("region ", plan::MemoryClass_Name(region.memory()), " of ", region.bytes(), " bytes");
      if (region.slots() < 1 || region.slots() > (ring ? kMaxRanks : 1)) {
        return bad(name, " has ", region.slots(), " slots, it may have 1, a ring up to ", kMaxRanks);
      }
      if (region.max_live() > region.bytes() || region.lower_bound() > region.bytes()) {
        return bad(name, " claims that ", region.max_live(), " are alive at once and that it cannot be below ",
                   region.lower_bound());
      }
      peak = boundedSum(peak, boundedProduct(region.bytes(), region.slots()));
    }
    if (peak > kMaxPlanInteger || peak != plan_.memory().peak_bytes()) {
      return bad("memory.peak_bytes is ", plan_.memory().peak_bytes(), ", the regions have ", peak,
                 " bytes together; at most ", kMaxPlanInteger, " are allowed");
    }
    return absl::OkStatus();
  }

  // Bytes of the region a buffer lies in, of a ring those of one slot.
  int64_t roomFor(const plan::Buffer& buffer) const {
    const auto region = regions_.find({buffer.memory(), buffer.memory() == plan::ACTIVATION ? buffer.ring() : 0});
    return region == regions_.end() ? 0 : region->second;
  }

  absl::Status checkBuffers() {
    for (int i = 0; i < plan_.buffers_size(); ++i) {
      WEFT_RETURN_IF_ERROR(
          checkBuffer(plan_.buffers(i), absl::StrCat("buffer ", i, " (", plan_.buffers(i).label(), ")")));
    }
    return absl::OkStatus();
  }

  absl::Status checkBuffer(const plan::Buffer& buffer, const std::string& name) {
    WEFT_ASSIGN_OR_RETURN(const int64_t bytes, bytesOf(name, buffer.type(), buffer.shape()));
    if (buffer.memory() == plan::ACTIVATION && regions_.count({buffer.memory(), buffer.ring()}) == 0) {
      return bad(name, " lies in activation ring ", buffer.ring(), ", for which there is no region");
    }
    if (!plan::MemoryClass_IsValid(buffer.memory()) || buffer.memory() == plan::WORKSPACE) {
      return bad(name, " lies in memory class ", static_cast<int>(buffer.memory()),
                 ", which is unknown or scratch of kernels");
    }
    const int64_t room = roomFor(buffer);
    if (buffer.bytes() != bytes || buffer.offset() > room || bytes > room - buffer.offset() ||
        buffer.offset() % byteSize(dtypeOf(buffer.type())) != 0) {
      return bad(name, " of ", buffer.bytes(), " bytes at ", buffer.offset(), " in a region of ", room,
                 "; its shape has ", bytes, " bytes, and it must be inside and aligned to its elements");
    }
    if (!buffer.data().empty() && static_cast<int64_t>(buffer.data().size()) != bytes) {
      return bad(name, " has ", buffer.data().size(), " bytes of data, its shape ", bytes);
    }
    return absl::OkStatus();
  }

  absl::Status checkTable() {
    const plan::RankTable& table = plan_.rank_table();
    if (table.columns() > kMaxPlanInteger / kMaxRanks || table.values_size() != plan_.ranks() * table.columns()) {
      return bad("the rank table has ", table.values_size(), " values for ", plan_.ranks(), " ranks and ",
                 table.columns(), " columns");
    }
    farthest_.assign(table.columns(), 0);
    for (int i = 0; i < table.values_size(); ++i) {
      int64_t& farthest = farthest_[i % table.columns()];
      farthest = std::max(farthest, std::abs(table.values(i)));
    }
    return absl::OkStatus();
  }

  absl::Status checkGroups() {
    for (int i = 0; i < plan_.group_sets_size(); ++i) {
      std::set<int64_t> seen;
      for (const auto& group : plan_.group_sets(i).groups()) {
        if (group.ranks_size() != plan_.group_sets(i).groups(0).ranks_size()) {
          return bad("group set ", i, " has groups of different sizes");
        }
        for (const int64_t rank : group.ranks()) {
          if (rank < 0 || rank >= plan_.ranks() || !seen.insert(rank).second) {
            return bad("group set ", i, " names rank ", rank, " twice or outside 0..", plan_.ranks() - 1);
          }
        }
      }
      if (static_cast<int64_t>(seen.size()) != plan_.ranks()) {
        return bad("group set ", i, " covers ", seen.size(), " of ", plan_.ranks(), " ranks");
      }
    }
    return absl::OkStatus();
  }

  absl::Status checkTensors() {
    std::set<std::string> names;
    for (const plan::NamedTensor& tensor : plan_.tensors()) {
      WEFT_RETURN_IF_ERROR(checkTensorKind(tensor));
      if (tensor.buffer() >= static_cast<uint32_t>(plan_.buffers_size()) || tensor.slices_size() != plan_.ranks()) {
        return bad("tensor '", tensor.name(), "' lies in buffer ", tensor.buffer(), " of ", plan_.buffers_size(),
                   " and has ", tensor.slices_size(), " slices for ", plan_.ranks(), " ranks");
      }
      if (!names.insert(tensor.name()).second) {
        return bad("tensor '", tensor.name(), "' stands there twice");
      }
      const plan::Buffer& buffer = plan_.buffers(static_cast<int>(tensor.buffer()));
      if (buffer.type() != tensor.type() || buffer.shape_size() != tensor.shape_size() ||
          buffer.memory() == plan::MAILBOX) {
        return bad("tensor '", tensor.name(), "' and its buffer differ in type or dimensions, or it is a mailbox");
      }
      for (const plan::Slice& slice : tensor.slices()) {
        WEFT_RETURN_IF_ERROR(checkSlice(tensor, buffer, slice));
      }
      WEFT_RETURN_IF_ERROR(checkWhole(tensor));
    }
    return absl::OkStatus();
  }

  static absl::Status checkSlice(const plan::NamedTensor& tensor, const plan::Buffer& buffer,
                                 const plan::Slice& slice) {
    if (slice.offset_size() != tensor.shape_size() || slice.valid_size() != tensor.shape_size()) {
      return bad("tensor '", tensor.name(), "' has a slice of ", slice.offset_size(), " dimensions");
    }
    for (int d = 0; d < tensor.shape_size(); ++d) {
      const int64_t offset = slice.offset(d);
      const int64_t valid = slice.valid(d);
      if (valid > buffer.shape(d) || (valid > 0 && (valid > tensor.shape(d) || offset > tensor.shape(d) - valid))) {
        return bad("tensor '", tensor.name(), "' has a slice of ", valid, " elements from ", offset,
                   " on in dimension ", d, " of size ", tensor.shape(d), ", ", buffer.shape(d), " of it on a rank");
      }
    }
    return absl::OkStatus();
  }

  // The ranks hold every element; so the whole tensor, which the host reads, is no larger than what they hold together.
  static absl::Status checkWhole(const plan::NamedTensor& tensor) {
    std::set<std::vector<int64_t>> seen;
    int64_t held = 0;
    for (const plan::Slice& slice : tensor.slices()) {
      std::vector<int64_t> place(slice.offset().begin(), slice.offset().end());
      place.insert(place.end(), slice.valid().begin(), slice.valid().end());
      held = boundedSum(held, seen.insert(std::move(place)).second ? boundedElements(slice.valid()) : 0);
    }
    if (const int64_t elements = boundedElements(tensor.shape()); held < elements) {
      return bad("tensor '", tensor.name(), "' has ", elements, " elements, of which the ranks hold ", held);
    }
    return absl::OkStatus();
  }

  absl::Status checkOperand(const plan::Operand& operand, const std::string& label) {
    if (operand.buffer() >= static_cast<uint32_t>(plan_.buffers_size())) {
      return bad("'", label, "' names buffer ", operand.buffer(), " of ", plan_.buffers_size());
    }
    const plan::Buffer& buffer = plan_.buffers(static_cast<int>(operand.buffer()));
    if (buffer.memory() == plan::MAILBOX) {
      return bad("'", label, "' reads or writes mailbox ", operand.buffer(), ", which only its channel may");
    }
    return absl::OkStatus();
  }

  // immediate + table + micro-batch x factor of every rank and micro-batch.
  absl::Status checkScalar(const plan::Scalar& scalar, const std::string& label) {
    if (scalar.column() >= plan_.rank_table().columns()) {
      return bad("'", label, "' reads column ", scalar.column(), " of ", plan_.rank_table().columns(),
                 " of the rank table");
    }
    const int64_t farthest = std::abs(scalar.immediate()) + (scalar.column() < 0 ? 0 : farthest_[scalar.column()]) +
                             std::abs(scalar.micro_batch_factor()) * (plan_.micro_batches() - 1);
    if (farthest > kMaxPlanInteger) {
      return bad("'", label, "' has a scalar ", scalar.immediate(), " + column ", scalar.column(), " + micro-batch x ",
                 scalar.micro_batch_factor(), " that comes to more than ", kMaxPlanInteger);
    }
    return absl::OkStatus();
  }

  absl::Status checkFunctions() {
    for (const plan::Function& function : plan_.functions()) {
      if (!plan::FunctionKind_IsValid(function.kind())) {
        return bad("function ", function.name(), " has the unknown kind ", static_cast<int>(function.kind()));
      }
      for (const plan::Instruction& instruction : function.instructions()) {
        WEFT_RETURN_IF_ERROR(checkInstruction(instruction));
      }
    }
    return absl::OkStatus();
  }

  absl::Status checkInstruction(const plan::Instruction& instruction) {
    const std::string& label = instruction.label();
    for (const auto* operands : {&instruction.inputs(), &instruction.outputs()}) {
      for (const plan::Operand& operand : *operands) {
        WEFT_RETURN_IF_ERROR(checkOperand(operand, label));
      }
    }
    for (const plan::Scalar& scalar : instruction.scalars()) {
      WEFT_RETURN_IF_ERROR(checkScalar(scalar, label));
    }
    if (instruction.location() >= static_cast<uint32_t>(std::max(plan_.locations_size(), 1))) {
      return bad("'", label, "' names location ", instruction.location(), " of ", plan_.locations_size());
    }
    WEFT_RETURN_IF_ERROR(checkOverlap(plan_, instruction));
    if (instruction.has_collective()) {
      return checkCollective(instruction);
    }
    if (instruction.has_transfer()) {
      return checkTransfer(instruction);
    }
    return instruction.kernel().empty() ? bad("'", label, "' is neither a kernel nor a collective") : absl::OkStatus();
  }

  static absl::Status checkTransfer(const plan::Instruction& instruction) {
    const plan::Transfer& transfer = instruction.transfer();
    if (instruction.inputs_size() != (transfer.send() ? 1 : 0) ||
        instruction.outputs_size() != (transfer.send() ? 0 : 1) || transfer.capacity() < 1 ||
        transfer.capacity() > kMaxRanks) {
      return bad("'", instruction.label(), "' is a transfer of ", instruction.inputs_size(), " inputs, ",
                 instruction.outputs_size(), " outputs and room for ", transfer.capacity(), " messages");
    }
    return absl::OkStatus();
  }

  absl::Status checkCollective(const plan::Instruction& instruction) {
    const plan::Collective& collective = instruction.collective();
    const std::string name = "'" + instruction.label() + "'";
    if (instruction.inputs_size() == 0 || instruction.inputs_size() != instruction.outputs_size()) {
      return bad(name, " is a collective of ", instruction.inputs_size(), " inputs and ", instruction.outputs_size(),
                 " outputs");
    }
    if (!plan::CollectiveKind_IsValid(collective.kind()) || !plan::Reduction_IsValid(collective.reduction())) {
      return bad(name, " is a collective of the unknown kind ", static_cast<int>(collective.kind()), " or reduction ",
                 static_cast<int>(collective.reduction()));
    }
    int64_t members = 1;
    if (collective.kind() == plan::PERMUTE) {
      WEFT_RETURN_IF_ERROR(checkSources(name, collective.source_column()));
    } else if (collective.group_set() >= static_cast<uint32_t>(plan_.group_sets_size())) {
      return bad(name, " names group set ", collective.group_set(), " of ", plan_.group_sets_size());
    } else {
      members = plan_.group_sets(static_cast<int>(collective.group_set())).groups(0).ranks_size();
    }
    for (int i = 0; i < instruction.inputs_size(); ++i) {
      WEFT_RETURN_IF_ERROR(checkCollectiveShapes(instruction, i, members));
    }
    return absl::OkStatus();
  }

  // A column of the rank table that says from whom each rank receives.
  absl::Status checkSources(const std::string& name, int64_t column) {
    const plan::RankTable& table = plan_.rank_table();
    if (column < 0 || column >= table.columns()) {
      return bad(name, " reads column ", column, " of ", table.columns(), " of the rank table");
    }
    if (sources_.count(column) > 0) {
      return absl::OkStatus();
    }
    for (int64_t rank = 0; rank < plan_.ranks(); ++rank) {
      const int64_t source = table.values(static_cast<int>(rank * table.columns() + column));
      if (source < 0 || source >= plan_.ranks()) {
        return bad(name, " receives from rank ", source, " of ", plan_.ranks(), " by column ", column,
                   " of the rank table");
      }
    }
    sources_.insert(column);
    return absl::OkStatus();
  }

  absl::Status checkCollectiveShapes(const plan::Instruction& instruction, int i, int64_t members) {
    const plan::Collective& collective = instruction.collective();
    const plan::Buffer& in = plan_.buffers(static_cast<int>(instruction.inputs(i).buffer()));
    const plan::Buffer& out = plan_.buffers(static_cast<int>(instruction.outputs(i).buffer()));
    std::vector<int64_t> expected(in.shape().begin(), in.shape().end());
    auto scale = [&](int64_t dim, bool grow) {
      if (dim < 0 || dim >= in.shape_size() || (!grow && expected[dim] % members != 0)) {
        return false;
      }
      expected[dim] = grow ? expected[dim] * members : expected[dim] / members;
      return true;
    };
    bool fits = true;
    switch (collective.kind()) {
      case plan::ALL_GATHER:
        fits = scale(collective.dim(), true);
        break;
      case plan::REDUCE_SCATTER:
        fits = scale(collective.dim(), false);
        break;
      case plan::ALL_TO_ALL:
        fits = scale(collective.split_dim(), false) && scale(collective.dim(), true);
        break;
      default:
        break;
    }
    if (!fits || in.type() != out.type() ||
        !std::equal(expected.begin(), expected.end(), out.shape().begin(), out.shape().end())) {
      return bad("'", instruction.label(), "': input and output shapes of a ",
                 plan::CollectiveKind_Name(collective.kind()), " over ", members, " ranks do not fit");
    }
    return absl::OkStatus();
  }

  absl::Status checkSchedules() {
    if (plan_.schedules_size() != plan_.ranks()) {
      return bad(plan_.schedules_size(), " schedules for ", plan_.ranks(), " ranks");
    }
    for (const plan::RankSchedule& schedule : plan_.schedules()) {
      for (const auto* actions : {&schedule.init(), &schedule.step()}) {
        WEFT_RETURN_IF_ERROR(checkActions(*actions));
      }
    }
    return absl::OkStatus();
  }

  absl::Status checkActions(const google::protobuf::RepeatedPtrField<plan::Action>& actions) {
    int64_t work = 0;
    double flops = 0;
    for (const plan::Action& action : actions) {
      if (action.function() >= static_cast<uint32_t>(plan_.functions_size()) ||
          action.micro_batch() >= plan_.micro_batches()) {
        return bad("an action calls function ", action.function(), " of ", plan_.functions_size(), " for micro-batch ",
                   action.micro_batch(), " of ", plan_.micro_batches());
      }
      const Amount& amount = amountOf(action.function());
      work += amount.work;
      flops += amount.flops;
      if (work > kMaxWorkOfRank || flops > static_cast<double>(kMaxFlops)) {
        return bad("a rank's schedule executes ", work, " instructions and operands, ", flops,
                   " floating-point operations and received bytes; at most ", kMaxWorkOfRank, " and ", kMaxFlops,
                   " are allowed");
      }
    }
    work_ += work;
    return absl::OkStatus();
  }

  struct Amount {
    int64_t work = 1;
    double flops = 0;  // and bytes received
  };

  // What a call of a function amounts to.
  const Amount& amountOf(uint32_t function) {
    for (auto f = static_cast<int>(amounts_.size()); f <= static_cast<int>(function); ++f) {
      Amount& amount = amounts_.emplace_back();
      for (const plan::Instruction& instruction : plan_.functions(f).instructions()) {
        amount.work += 1 + instruction.inputs_size() + instruction.outputs_size();
        amount.flops +=
            static_cast<double>(instruction.flops()) + static_cast<double>(instruction.collective().bytes_received());
      }
    }
    return amounts_[function];
  }

  const plan::Plan& plan_;
  std::map<std::pair<plan::MemoryClass, uint32_t>, int64_t> regions_;  // by class and ring
  std::vector<int64_t> farthest_;                                      // from 0, of each column of the rank table
  std::set<int64_t> sources_;                                          // columns that hold ranks
  std::vector<Amount> amounts_;                                        // of each function
  int64_t work_ = 0;
};

// What the host sees of the submeshes' tensors: as there, a slice for every rank.
class JoinedTensors {
 public:
  explicit JoinedTensors(const plan::Plan& plan) : plan_(plan) {}

  absl::Status check() {
    for (const plan::NamedTensor& tensor : plan_.tensors()) {
      WEFT_RETURN_IF_ERROR(checkTensorKind(tensor));
      if (!joined_.emplace(tensor.name(), &tensor).second || tensor.slices_size() != plan_.ranks()) {
        return bad("tensor '", tensor.name(), "' stands there twice or has ", tensor.slices_size(), " slices for ",
                   plan_.ranks(), " ranks");
      }
    }
    int firstRank = 0;
    for (const plan::Plan& submesh : plan_.submeshes()) {
      for (const plan::NamedTensor& tensor : submesh.tensors()) {
        WEFT_RETURN_IF_ERROR(compare(tensor, firstRank));
      }
      firstRank += static_cast<int>(submesh.ranks());
    }
    return checkNothingElse();
  }

 private:
  absl::Status compare(const plan::NamedTensor& tensor, int firstRank) {
    const auto it = joined_.find(tensor.name());
    if (it == joined_.end() || it->second->type() != tensor.type() || it->second->kind() != tensor.kind() ||
        !same(tensor.shape(), it->second->shape()) || !same(tensor.file_shape(), it->second->file_shape())) {
      return bad("tensor '", tensor.name(), "' of a submesh is unknown outside it, or of another kind, type or shape");
    }
    for (int rank = 0; rank < tensor.slices_size(); ++rank) {
      const plan::Slice& inSubmesh = tensor.slices(rank);
      const plan::Slice& outside = it->second->slices(firstRank + rank);
      if (!same(inSubmesh.offset(), outside.offset()) || !same(inSubmesh.valid(), outside.valid())) {
        return bad("tensor '", tensor.name(), "' has another slice in its submesh than outside for rank ",
                   firstRank + rank);
      }
      held_[tensor.name()].insert(firstRank + rank);
    }
    return absl::OkStatus();
  }

  // Ranks whose submesh does not have the tensor hold no element of it; some submesh has it.
  absl::Status checkNothingElse() {
    for (const plan::NamedTensor& tensor : plan_.tensors()) {
      const std::set<int>& holders = held_[tensor.name()];
      if (holders.empty()) {
        return bad("tensor '", tensor.name(), "' is in no submesh");
      }
      for (int rank = 0; rank < tensor.slices_size(); ++rank) {
        const plan::Slice& slice = tensor.slices(rank);
        const bool empty = std::all_of(slice.valid().begin(), slice.valid().end(), [](int64_t v) { return v == 0; });
        const bool fits = slice.offset_size() == tensor.shape_size() && slice.valid_size() == tensor.shape_size();
        if (!fits || (!empty && holders.count(rank) == 0)) {
          return bad("tensor '", tensor.name(), "' has a slice of ", slice.valid_size(), " dimensions for rank ", rank,
                     ", whose submesh does not hold it");
        }
      }
    }
    return absl::OkStatus();
  }

  const plan::Plan& plan_;
  std::map<std::string, const plan::NamedTensor*> joined_;
  std::map<std::string, std::set<int>> held_;  // ranks, by tensor
};

absl::Status checkSubmeshes(const plan::Plan& plan) {
  int64_t ranks = 0;
  int64_t peak = 0;
  for (const plan::Plan& submesh : plan.submeshes()) {
    if (submesh.submeshes_size() > 0 || submesh.micro_batches() != plan.micro_batches()) {
      return bad("a submesh of ", submesh.micro_batches(),
                 " micro-batches, or with submeshes of its own, in a program of ", plan.micro_batches(),
                 " micro-batches");
    }
    ranks = boundedSum(ranks, submesh.ranks());
    peak = std::max(peak, submesh.memory().peak_bytes());
  }
  if (plan.submeshes_size() > 0 && (ranks != plan.ranks() || ranks > kMaxRanks || peak != plan.memory().peak_bytes())) {
    return bad("submeshes of ", ranks, " ranks together and ", peak, " bytes at most, outside ", plan.ranks(),
               " ranks and ", plan.memory().peak_bytes(), " bytes; at most ", kMaxRanks, " ranks are allowed");
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status validatePlan(const plan::Plan& plan) {
  WEFT_RETURN_IF_ERROR(checkIntegers(plan));
  WEFT_RETURN_IF_ERROR(checkSubmeshes(plan));
  int64_t work = 0;
  for (const plan::Plan* submesh : submeshesOf(plan)) {
    Validator validator(*submesh);
    WEFT_RETURN_IF_ERROR(validator.run());
    work += validator.work();
  }
  if (work > kMaxWork) {
    return bad("the schedules of all ranks execute ", work, " instructions and operands; at most ", kMaxWork,
               " are allowed");
  }
  if (plan.submeshes_size() > 0) {
    WEFT_RETURN_IF_ERROR(JoinedTensors(plan).check());
  }
  WEFT_RETURN_IF_ERROR(checkChannels(plan));
  return checkProgress(plan);
}

}  // namespace weft
