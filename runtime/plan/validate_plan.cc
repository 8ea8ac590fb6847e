// validatePlan: every index, offset and size of a plan in range. Whether the ranks' collectives meet is checked in
// match_collectives.cc.

#include <algorithm>
#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "runtime/base/status.h"
#include "runtime/plan/activation_rings.h"
#include "runtime/plan/match_collectives.h"
#include "runtime/plan/plan_file.h"

namespace weft {
namespace {

// Larger shapes and regions are mistakes; below it no product of two overflows.
constexpr int64_t kMaxBytes = int64_t{1} << 48;
constexpr int64_t kMaxRanks = 1 << 14;
constexpr int kMaxDimensions = 32;
constexpr uint32_t kMaxRings = 1 << 14;

template <typename... Parts>
absl::Status bad(const Parts&... parts) {
  return absl::DataLossError(absl::StrCat("plan is inconsistent: ", parts...));
}

class Validator {
 public:
  explicit Validator(const plan::Plan& plan) : plan_(plan) {}

  absl::Status run() {
    if (plan_.ranks() < 1 || plan_.ranks() > kMaxRanks || plan_.pieces() < 1 || plan_.pieces() > kMaxRanks) {
      return bad(plan_.ranks(), " ranks, ", plan_.pieces(), " pieces");
    }
    WEFT_RETURN_IF_ERROR(checkRegions());
    WEFT_RETURN_IF_ERROR(checkBuffers());
    WEFT_RETURN_IF_ERROR(checkTable());
    WEFT_RETURN_IF_ERROR(checkGroups());
    WEFT_RETURN_IF_ERROR(checkTensors());
    WEFT_RETURN_IF_ERROR(checkFunctions());
    WEFT_RETURN_IF_ERROR(checkSchedules());
    WEFT_RETURN_IF_ERROR(checkRings(plan_));
    return matchCollectives(plan_);
  }

 private:
  absl::Status checkRegions() {
    for (const plan::Region& region : plan_.memory().regions()) {
      if (region.bytes() < 0 || region.bytes() > kMaxBytes || region.slots() < 1 || region.slots() > kMaxRanks) {
        return bad("region ", plan::MemoryClass_Name(region.memory()), " has ", region.bytes(), " bytes in ",
                   region.slots(), " slots");
      }
      if (region.bytes() * region.slots() > kMaxBytes || (region.slots() != 1 && region.memory() != plan::ACTIVATION)) {
        return bad("region ", plan::MemoryClass_Name(region.memory()), " of ", region.bytes(), " bytes has ",
                   region.slots(), " slots");
      }
      if (region.max_live() < 0 || region.lower_bound() < 0 || region.max_live() > region.bytes() ||
          region.lower_bound() > region.bytes()) {
        return bad("region ", plan::MemoryClass_Name(region.memory()), " of ", region.bytes(), " bytes claims that ",
                   region.max_live(), " are alive at once and that it cannot be below ", region.lower_bound());
      }
      if (!plan::MemoryClass_IsValid(region.memory()) || region.ring() >= kMaxRings ||
          (region.ring() != 0 && region.memory() != plan::ACTIVATION) ||
          !regions_.emplace(std::pair(region.memory(), region.ring()), region.bytes()).second) {
        return bad("region ", static_cast<int>(region.memory()), ", ring ", region.ring(),
                   ", is unknown or stands there twice");
      }
    }
    return absl::OkStatus();
  }

  static absl::StatusOr<int64_t> bytesOf(plan::ElementType type,
                                         const google::protobuf::RepeatedField<int64_t>& shape) {
    if (!plan::ElementType_IsValid(type)) {
      return bad("element type ", static_cast<int>(type));
    }
    if (shape.size() > kMaxDimensions) {
      return bad("a shape with ", shape.size(), " dimensions");
    }
    // Empty dimensions count as one here, so that no product of a part of the shape overflows either.
    int64_t bytes = byteSize(dtypeOf(type));
    bool empty = false;
    for (const int64_t size : shape) {
      if (size < 0 || bytes > kMaxBytes / std::max<int64_t>(size, 1)) {
        return bad("a shape with dimension ", size);
      }
      bytes *= std::max<int64_t>(size, 1);
      empty |= size == 0;
    }
    return empty ? 0 : bytes;
  }

  // Bytes of the region a buffer lies in, of a ring those of one slot.
  int64_t roomFor(const plan::Buffer& buffer) const {
    const auto region = regions_.find({buffer.memory(), buffer.memory() == plan::ACTIVATION ? buffer.ring() : 0});
    return region == regions_.end() ? 0 : region->second;
  }

  absl::Status checkBuffers() {
    for (int i = 0; i < plan_.buffers_size(); ++i) {
      const plan::Buffer& buffer = plan_.buffers(i);
      WEFT_ASSIGN_OR_RETURN(const int64_t bytes, bytesOf(buffer.type(), buffer.shape()));
      if (buffer.memory() == plan::ACTIVATION && regions_.count({buffer.memory(), buffer.ring()}) == 0) {
        return bad("buffer ", i, " (", buffer.label(), ") lies in activation ring ", buffer.ring(),
                   ", for which there is no region");
      }
      const int64_t room = roomFor(buffer);
      if (!plan::MemoryClass_IsValid(buffer.memory()) || buffer.offset() % byteSize(dtypeOf(buffer.type())) != 0) {
        return bad("buffer ", i, " (", buffer.label(), ") lies at ", buffer.offset(), " of memory class ",
                   static_cast<int>(buffer.memory()), ", not aligned to its elements or no class");
      }
      if (buffer.bytes() != bytes || buffer.offset() < 0 || buffer.offset() > room || bytes > room - buffer.offset()) {
        return bad("buffer ", i, " (", buffer.label(), ") of ", buffer.bytes(), " bytes at ", buffer.offset(),
                   " in a region of ", room);
      }
      if (!buffer.data().empty() && static_cast<int64_t>(buffer.data().size()) != bytes) {
        return bad("buffer ", i, " has ", buffer.data().size(), " bytes of data, its shape ", bytes);
      }
    }
    return absl::OkStatus();
  }

  absl::Status checkTable() {
    const plan::RankTable& table = plan_.rank_table();
    if (table.columns() < 0 || table.columns() > kMaxBytes / kMaxRanks ||
        table.values_size() != plan_.ranks() * table.columns()) {
      return bad("the rank table has ", table.values_size(), " values for ", plan_.ranks(), " ranks and ",
                 table.columns(), " columns");
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
    for (const plan::NamedTensor& tensor : plan_.tensors()) {
      WEFT_ASSIGN_OR_RETURN(const int64_t bytes, bytesOf(tensor.type(), tensor.shape()));
      WEFT_ASSIGN_OR_RETURN(const int64_t fileBytes, bytesOf(tensor.type(), tensor.file_shape()));
      if (bytes != fileBytes || tensor.buffer() >= static_cast<uint32_t>(plan_.buffers_size()) ||
          tensor.slices_size() != plan_.ranks()) {
        return bad("tensor '", tensor.name(), "': ", bytes, " bytes, ", fileBytes, " in files, buffer ",
                   tensor.buffer(), ", ", tensor.slices_size(), " slices");
      }
      const plan::Buffer& buffer = plan_.buffers(static_cast<int>(tensor.buffer()));
      if (!plan::TensorKind_IsValid(tensor.kind()) || !names_.insert(tensor.name()).second) {
        return bad("tensor '", tensor.name(), "' stands there twice or has the unknown kind ",
                   static_cast<int>(tensor.kind()));
      }
      if (buffer.type() != tensor.type() || buffer.shape_size() != tensor.shape_size()) {
        return bad("tensor '", tensor.name(), "' and its buffer differ in type or dimensions");
      }
      for (const plan::Slice& slice : tensor.slices()) {
        WEFT_RETURN_IF_ERROR(checkSlice(tensor, buffer, slice));
      }
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
      if (valid < 0 || valid > buffer.shape(d) || offset < 0 || offset > kMaxBytes || valid > kMaxBytes ||
          (valid > 0 && offset + valid > tensor.shape(d))) {
        return bad("tensor '", tensor.name(), "' has a slice of ", valid, " elements from ", offset,
                   " on in dimension ", d, " of size ", tensor.shape(d));
      }
    }
    return absl::OkStatus();
  }

  absl::Status checkOperand(const plan::Operand& operand, const std::string& label) {
    if (operand.buffer() >= static_cast<uint32_t>(plan_.buffers_size())) {
      return bad(label, " names buffer ", operand.buffer(), " of ", plan_.buffers_size());
    }
    const plan::Buffer& buffer = plan_.buffers(static_cast<int>(operand.buffer()));
    const int64_t room = roomFor(buffer);
    if (operand.offset() < 0 || operand.offset() > kMaxBytes || operand.piece_stride() < 0 ||
        operand.piece_stride() > kMaxBytes / plan_.pieces()) {
      return bad(label, " has an operand at offset ", operand.offset(), " + piece x ", operand.piece_stride());
    }
    const int64_t width = byteSize(dtypeOf(buffer.type()));
    if (operand.offset() % width != 0 || operand.piece_stride() % width != 0) {
      return bad(label, " has an operand of ", width, "-byte elements at offset ", operand.offset(), " + piece x ",
                 operand.piece_stride());
    }
    const int64_t end =
        buffer.offset() + operand.offset() + operand.piece_stride() * (plan_.pieces() - 1) + buffer.bytes();
    if (end > room) {
      return bad(label, " reaches byte ", end, " of a region of ", room);
    }
    return absl::OkStatus();
  }

  absl::Status checkFunctions() {
    for (const plan::Function& function : plan_.functions()) {
      for (const plan::Instruction& instruction : function.instructions()) {
        WEFT_RETURN_IF_ERROR(checkInstruction(instruction));
      }
      if (!plan::FunctionKind_IsValid(function.kind())) {
        return bad("function ", function.name(), " has the unknown kind ", static_cast<int>(function.kind()));
      }
    }
    return absl::OkStatus();
  }

  absl::Status checkInstruction(const plan::Instruction& instruction) {
    const std::string& label = instruction.label();
    for (const plan::Operand& operand : instruction.inputs()) {
      WEFT_RETURN_IF_ERROR(checkOperand(operand, label));
    }
    for (const plan::Operand& operand : instruction.outputs()) {
      WEFT_RETURN_IF_ERROR(checkOperand(operand, label));
    }
    for (const plan::Scalar& scalar : instruction.scalars()) {
      if (scalar.column() < -1 || scalar.column() >= plan_.rank_table().columns()) {
        return bad(label, " reads column ", scalar.column(), " of ", plan_.rank_table().columns());
      }
    }
    if (instruction.location() >= static_cast<uint32_t>(std::max(plan_.locations_size(), 1))) {
      return bad(label, " names location ", instruction.location(), " of ", plan_.locations_size());
    }
    if (instruction.has_collective()) {
      return checkCollective(instruction);
    }
    if (instruction.has_transfer()) {
      return checkTransfer(instruction);
    }
    return instruction.kernel().empty() ? bad(label, " is neither a kernel nor a collective") : absl::OkStatus();
  }

  absl::Status checkTransfer(const plan::Instruction& instruction) {
    const plan::Transfer& transfer = instruction.transfer();
    if (instruction.inputs_size() != (transfer.send() ? 1 : 0) ||
        instruction.outputs_size() != (transfer.send() ? 0 : 1) || transfer.capacity() < 1 ||
        transfer.capacity() > kMaxRanks) {
      return bad(instruction.label(), " is a transfer of ", instruction.inputs_size(), " inputs, ",
                 instruction.outputs_size(), " outputs and room for ", transfer.capacity(), " messages");
    }
    if (transfer.send()) {
      return absl::OkStatus();
    }
    const int64_t bytes = plan_.buffers(static_cast<int>(instruction.outputs(0).buffer())).bytes();
    if (transfer.mailbox() >= static_cast<uint32_t>(plan_.buffers_size()) ||
        plan_.buffers(static_cast<int>(transfer.mailbox())).bytes() != bytes * transfer.capacity()) {
      return bad(instruction.label(), " receives messages of ", bytes, " bytes in mailbox ", transfer.mailbox(),
                 ", which has not room for ", transfer.capacity());
    }
    return absl::OkStatus();
  }

  absl::Status checkCollective(const plan::Instruction& instruction) {
    const plan::Collective& collective = instruction.collective();
    if (instruction.inputs_size() == 0 || instruction.inputs_size() != instruction.outputs_size()) {
      return bad(instruction.label(), " has ", instruction.inputs_size(), " inputs and ", instruction.outputs_size(),
                 " outputs");
    }
    if (!plan::CollectiveKind_IsValid(collective.kind()) || !plan::Reduction_IsValid(collective.reduction())) {
      return bad(instruction.label(), " is a collective of the unknown kind ", static_cast<int>(collective.kind()),
                 " or reduction ", static_cast<int>(collective.reduction()));
    }
    int64_t members = 1;
    if (collective.kind() == plan::PERMUTE) {
      if (collective.source_column() < 0 || collective.source_column() >= plan_.rank_table().columns()) {
        return bad(instruction.label(), " reads column ", collective.source_column());
      }
      for (int64_t rank = 0; rank < plan_.ranks(); ++rank) {
        const int64_t source = plan_.rank_table().values(
            static_cast<int>(rank * plan_.rank_table().columns() + collective.source_column()));
        if (source < 0 || source >= plan_.ranks()) {
          return bad(instruction.label(), " receives from rank ", source);
        }
      }
    } else if (collective.group_set() >= static_cast<uint32_t>(plan_.group_sets_size()) ||
               plan_.group_sets(static_cast<int>(collective.group_set())).groups_size() == 0) {
      return bad(instruction.label(), " names group set ", collective.group_set(), " of ", plan_.group_sets_size());
    } else {
      members = plan_.group_sets(static_cast<int>(collective.group_set())).groups(0).ranks_size();
    }
    for (int i = 0; i < instruction.inputs_size(); ++i) {
      WEFT_RETURN_IF_ERROR(checkCollectiveShapes(instruction, i, members));
    }
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
      return bad(instruction.label(), ": input and output shapes of a ", plan::CollectiveKind_Name(collective.kind()),
                 " over ", members, " ranks do not fit");
    }
    return absl::OkStatus();
  }

  absl::Status checkSchedules() {
    if (plan_.schedules_size() != plan_.ranks()) {
      return bad(plan_.schedules_size(), " schedules for ", plan_.ranks(), " ranks");
    }
    for (const plan::RankSchedule& schedule : plan_.schedules()) {
      for (const auto* actions : {&schedule.init(), &schedule.step()}) {
        for (const plan::Action& action : *actions) {
          if (action.function() >= static_cast<uint32_t>(plan_.functions_size()) || action.piece() < 0 ||
              action.piece() >= plan_.pieces()) {
            return bad("an action calls function ", action.function(), " of ", plan_.functions_size(), " for piece ",
                       action.piece(), " of ", plan_.pieces());
          }
        }
      }
    }
    return absl::OkStatus();
  }

  const plan::Plan& plan_;
  std::map<std::pair<plan::MemoryClass, uint32_t>, int64_t> regions_;  // by class and ring
  std::set<std::string> names_;
};

struct End {
  int64_t block = -1;
  int64_t other = -1;
  int64_t ranks = 0;
  const plan::Buffer* buffer = nullptr;
  const plan::Transfer* transfer = nullptr;
};

// The box at `offset` of `size` lies within `shape`.
bool inside(const google::protobuf::RepeatedField<int64_t>& offset,
            const google::protobuf::RepeatedField<int64_t>& size,
            const google::protobuf::RepeatedField<int64_t>& shape) {
  bool fits = offset.size() == shape.size() && size.size() == shape.size();
  for (int d = 0; fits && d < shape.size(); ++d) {
    fits = size[d] >= 1 && size[d] <= shape[d] && offset[d] >= 0 && offset[d] <= shape[d] - size[d];
  }
  return fits;
}

bool meet(const plan::Transfer::Part& a, const plan::Transfer::Part& b) {
  bool common = true;
  for (int d = 0; common && d < a.size_size(); ++d) {
    common = a.target_offset(d) < b.target_offset(d) + b.size(d) && b.target_offset(d) < a.target_offset(d) + a.size(d);
  }
  return common;
}

// The parts of every target are disjoint and make up its tensor.
absl::Status checkParts(const End& sender, const End& receiver) {
  const auto wrong = [&](const auto&... what) {
    return bad("channel ", receiver.transfer->channel(), " from block ", sender.block, " to ", receiver.block, " ",
               what...);
  };
  if (sender.buffer->type() != receiver.buffer->type()) {
    return wrong("changes the element type");
  }
  std::map<int64_t, std::vector<const plan::Transfer::Part*>> targets;
  std::set<std::pair<int64_t, int64_t>> pairs;
  for (const plan::Transfer::Part& part : receiver.transfer->parts()) {
    if (part.source() < 0 || part.source() >= sender.ranks || part.target() < 0 || part.target() >= receiver.ranks ||
        !inside(part.source_offset(), part.size(), sender.buffer->shape()) ||
        !inside(part.target_offset(), part.size(), receiver.buffer->shape())) {
      return wrong("has a part from rank ", part.source(), " to rank ", part.target(),
                   " outside of the ranks or of what they hold");
    }
    if (!pairs.emplace(part.source(), part.target()).second) {
      return wrong("has two parts from rank ", part.source(), " to rank ", part.target());
    }
    for (const plan::Transfer::Part* other : targets[part.target()]) {
      if (meet(part, *other)) {
        return wrong("has parts from ranks ", other->source(), " and ", part.source(), " to rank ", part.target(),
                     " that overlap");
      }
    }
    targets[part.target()].push_back(&part);
  }
  int64_t elements = 1;
  for (const int64_t size : receiver.buffer->shape()) {
    elements *= size;
  }
  for (int64_t rank = 0; rank < receiver.ranks; ++rank) {
    int64_t sent = 0;
    for (const plan::Transfer::Part* part : targets[rank]) {
      int64_t box = 1;
      for (const int64_t size : part->size()) {
        box *= size;
      }
      sent += box;
    }
    if (sent != elements) {
      return wrong("sends ", sent, " of the ", elements, " elements of rank ", rank);
    }
  }
  return absl::OkStatus();
}

// Every channel has one sender and one receiver in the blocks that they name; rank i's tensor goes to rank i, or the
// receiver's parts say what goes where.
absl::Status matchTransfers(const plan::Plan& plan) {
  std::map<uint32_t, End> ends[2];
  for (int b = 0; b < plan.blocks_size(); ++b) {
    const plan::Plan& block = plan.blocks(b);
    for (const plan::Function& function : block.functions()) {
      for (const plan::Instruction& instruction : function.instructions()) {
        if (!instruction.has_transfer()) {
          continue;
        }
        const plan::Transfer& transfer = instruction.transfer();
        const plan::Operand& operand = transfer.send() ? instruction.inputs(0) : instruction.outputs(0);
        const End end = {b, transfer.block(), block.ranks(), &block.buffers(static_cast<int>(operand.buffer())),
                         &transfer};
        if (!ends[transfer.send() ? 1 : 0].emplace(transfer.channel(), end).second) {
          return bad("channel ", transfer.channel(), " has two ", transfer.send() ? "senders" : "receivers");
        }
      }
    }
  }
  for (const auto& [channel, sender] : ends[1]) {
    const auto it = ends[0].find(channel);
    const bool found = it != ends[0].end() && it->second.block == sender.other && it->second.other == sender.block &&
                       it->second.transfer->capacity() == sender.transfer->capacity();
    const bool parts = found && it->second.transfer->parts_size() > 0;
    if (!found ||
        (!parts && (it->second.buffer->bytes() != sender.buffer->bytes() || it->second.ranks != sender.ranks))) {
      return bad("channel ", channel, " from block ", sender.block, " to ", sender.other, " of ",
                 sender.buffer->bytes(), " bytes on each of ", sender.ranks, " ranks has no receiver that fits");
    }
    if (parts) {
      WEFT_RETURN_IF_ERROR(checkParts(sender, it->second));
    }
  }
  return ends[0].size() == ends[1].size() ? absl::OkStatus() : bad("a channel has a receiver, but no sender");
}

// What the host sees of the blocks' tensors: shapes as there, a slice for every rank.
absl::Status checkJoinedTensors(const plan::Plan& plan) {
  std::map<std::string, const plan::NamedTensor*> joined;
  for (const plan::NamedTensor& tensor : plan.tensors()) {
    if (!joined.emplace(tensor.name(), &tensor).second || tensor.slices_size() != plan.ranks()) {
      return bad("tensor '", tensor.name(), "' stands there twice or has ", tensor.slices_size(), " slices for ",
                 plan.ranks(), " ranks");
    }
    for (const plan::Slice& slice : tensor.slices()) {
      if (slice.offset_size() != tensor.shape_size() || slice.valid_size() != tensor.shape_size()) {
        return bad("tensor '", tensor.name(), "' has a slice of ", slice.offset_size(), " dimensions");
      }
    }
  }
  for (const plan::Plan& block : plan.blocks()) {
    for (const plan::NamedTensor& tensor : block.tensors()) {
      const auto it = joined.find(tensor.name());
      if (it == joined.end() || it->second->type() != tensor.type() ||
          !std::equal(tensor.shape().begin(), tensor.shape().end(), it->second->shape().begin(),
                      it->second->shape().end())) {
        return bad("tensor '", tensor.name(), "' of a block is unknown outside it, or of another type or shape");
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status validatePlan(const plan::Plan& plan) {
  if (plan.blocks_size() == 0) {
    return Validator(plan).run();
  }
  int64_t ranks = 0;
  for (const plan::Plan& block : plan.blocks()) {
    if (block.blocks_size() > 0 || block.pieces() != plan.pieces()) {
      return bad("a block of ", block.pieces(), " pieces, or with blocks of its own, in a program of ", plan.pieces(),
                 " pieces");
    }
    WEFT_RETURN_IF_ERROR(Validator(block).run());
    ranks += block.ranks();
  }
  if (ranks != plan.ranks()) {
    return bad("blocks of ", ranks, " ranks together, ", plan.ranks(), " in all");
  }
  WEFT_RETURN_IF_ERROR(matchTransfers(plan));
  return checkJoinedTensors(plan);
}

}  // namespace weft
