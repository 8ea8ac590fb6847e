#include "passes/plan/emit_instruction.h"

#include <algorithm>
#include <cmath>

#include "ir/dist/dist.h"
#include "ir/nn/operator_interface.h"
#include "ir/nn/rules.h"
#include "ir/nn/types.h"
#include "ir/program/program.h"
#include "llvm/Support/JSON.h"
#include "passes/plan/instruction_facts.h"
#include "planner/graph/flops.h"

namespace weft {

using namespace mlir;  // NOLINT: the file is about MLIR ops throughout

namespace {

void writeAttribute(const weft::Attribute& from, plan::Attribute* to) {
  if (const auto* integer = std::get_if<int64_t>(&from)) {
    to->set_integer(*integer);
  } else if (const auto* real = std::get_if<double>(&from)) {
    to->set_real(*real);
  } else if (const auto* text = std::get_if<std::string>(&from)) {
    to->set_text(*text);
  } else if (const auto* integers = std::get_if<std::vector<int64_t>>(&from)) {
    to->mutable_integers()->mutable_values()->Assign(integers->begin(), integers->end());
  } else if (const auto* floats = std::get_if<std::vector<double>>(&from)) {
    to->mutable_floats()->mutable_values()->Assign(floats->begin(), floats->end());
  }
}

// Written flat: source, target, then for each dimension both offsets and the size.
void emitBoxes(Operation* op, plan::Transfer* transfer) {
  auto boxes = op->getAttrOfType<DenseI64ArrayAttr>("boxes");
  const int64_t dims = cast<RankedTensorType>(op->getResult(0).getType()).getRank();
  for (ArrayRef<int64_t> rest = boxes ? boxes.asArrayRef() : ArrayRef<int64_t>(); !rest.empty();) {
    plan::Transfer::Box* box = transfer->add_boxes();
    box->set_source(rest[0]);
    box->set_target(rest[1]);
    rest = rest.drop_front(2);
    for (int64_t d = 0; d < dims; ++d) {
      box->add_source_offset(rest[0]);
      box->add_target_offset(rest[1]);
      box->add_size(rest[2]);
      rest = rest.drop_front(3);
    }
  }
}

std::vector<Shape> shapesOf(ValueRange values) {
  std::vector<Shape> shapes;
  for (Value value : values) {
    shapes.push_back(ir::shapeOf(value));
  }
  return shapes;
}

void emitProduct(const Rule& rule, plan::Instruction* instruction) {
  const FactorAxes whole(rule.factors().size());
  if (const auto shape = productOf(rule, whole, static_cast<double>(instruction->flops()))) {
    plan::Product* product = instruction->mutable_product();
    product->set_batch(shape->batch);
    product->set_m(shape->m);
    product->set_n(shape->n);
    product->set_k(shape->k);
  }
}

// The arithmetic of a kernel, and where it is one product its sizes.
void emitWork(Operation* op, plan::Instruction* instruction) {
  if (auto interface = dyn_cast<ir::OperatorInterface>(op)) {
    instruction->set_flops(interface.getFlops());
    if (FailureOr<Rule> rule = ir::ruleOf(interface); succeeded(rule)) {
      emitProduct(*rule, instruction);
    }
  } else if (auto sum = dyn_cast<ir::dist::ContractAccumulateOp>(op)) {
    const absl::StatusOr<Rule> rule =
        Rule::parse(ir::rules::contract(sum.getSpec()), shapesOf({sum.getA(), sum.getB()}), shapesOf(sum.getY()));
    if (rule.ok()) {
      instruction->set_flops(std::llround(2 * pointsOf(*rule)));
      emitProduct(*rule, instruction);
    }
  }
}

}  // namespace

void InstructionEmitter::emit(Operation* op, plan::Instruction* instruction) {
  for (Value operand : op->getOperands()) {
    instruction->add_inputs()->set_buffer(buffers_.of(operand));
  }
  for (Value result : op->getResults()) {
    instruction->add_outputs()->set_buffer(buffers_.of(result));
  }
  instruction->set_label(labelOf(op));
  instruction->set_location(locationOf(op->getLoc()));
  if (const std::optional<plan::CollectiveKind> kind = collectiveKindOf(op)) {
    emitCollective(op, *kind, instruction);
  } else if (isa<ir::dist::SendOp, ir::dist::ReceiveOp>(op)) {
    emitTransfer(op, instruction);
  } else if (auto copy = dyn_cast<ir::dist::CopyOp>(op)) {
    emitCopy(copy, instruction);
  } else {
    emitKernel(op, instruction);
  }
}

// A reshape to the same shape moves the bytes.
void InstructionEmitter::emitCopy(ir::dist::CopyOp copy, plan::Instruction* instruction) {
  instruction->set_kernel("reshape");
  instruction->set_label("copy to " + buffers_.labelOf(copy.getY()));
}

void InstructionEmitter::emitKernel(Operation* op, plan::Instruction* instruction) {
  const KernelSpec spec = kernelSpecOf(op);
  instruction->set_kernel(spec.name);
  for (const auto& [name, value] : spec.attributes) {
    writeAttribute(value, &(*instruction->mutable_attributes())[name]);
  }
  if (auto scalars = op->getAttrOfType<ArrayAttr>(kScalarsAttr)) {
    for (auto scalar : scalars.getAsRange<ir::dist::ScalarAttr>()) {
      plan::Scalar* made = instruction->add_scalars();
      made->set_immediate(scalar.getImmediate());
      made->set_column(scalar.getColumn());
      made->set_micro_batch_factor(scalar.getMicroBatchFactor());
    }
  }
  emitWork(op, instruction);
}

void InstructionEmitter::emitCollective(Operation* op, plan::CollectiveKind kind, plan::Instruction* instruction) {
  plan::Collective* collective = instruction->mutable_collective();
  auto integer = [&](StringRef name) {
    auto attr = op->getAttrOfType<IntegerAttr>(name);
    return attr ? attr.getInt() : 0;
  };
  auto text = [&](StringRef name) {
    auto attr = op->getAttrOfType<StringAttr>(name);
    return attr ? attr.getValue().str() : std::string();
  };
  collective->set_kind(kind);
  collective->set_dim(integer("dim"));
  collective->set_split_dim(integer("split_dim"));
  collective->set_bytes_received(integer("bytes_received"));
  collective->set_reduction(text("reduce") == "max" ? plan::MAX : text("reduce") == "min" ? plan::MIN : plan::SUM);
  collective->set_reason(text("reason"));
  auto cost = op->getAttrOfType<FloatAttr>("cost");
  collective->set_cost(cost ? cost.getValueAsDouble() : 0);
  collective->set_source_column(-1);
  if (auto permute = dyn_cast<ir::dist::PermuteOp>(op)) {
    collective->set_source_column(column(*ir::dist::sourcesOf(permute, mesh_)));
  } else {
    collective->set_group_set(groupSet(mesh_.groups(*ir::dist::axesOver(op, mesh_))));
  }
  if (auto members = op->getAttrOfType<ArrayAttr>(kMembersAttr)) {
    std::string names;
    for (auto name : members.getAsRange<StringAttr>()) {
      names += (names.empty() ? "" : ", ") + name.str();
    }
    (*instruction->mutable_attributes())["members"].set_text(names);
  }
}

void InstructionEmitter::emitTransfer(Operation* op, plan::Instruction* instruction) {
  plan::Transfer* transfer = instruction->mutable_transfer();
  transfer->set_send(isa<ir::dist::SendOp>(op));
  transfer->set_channel(static_cast<uint32_t>(op->getAttrOfType<IntegerAttr>("channel").getInt()));
  transfer->set_submesh(op->getAttrOfType<IntegerAttr>("submesh").getInt());
  auto reason = op->getAttrOfType<StringAttr>("reason");
  transfer->set_reason(reason ? reason.getValue().str() : "");
  if (auto send = dyn_cast<ir::dist::SendOp>(op)) {
    transfer->set_capacity(*send.getCapacity());
    return;
  }
  auto receive = cast<ir::dist::ReceiveOp>(op);
  transfer->set_capacity(*receive.getCapacity());
  transfer->set_mailbox(buffers_.mailbox(receive.getY(), *receive.getCapacity(), *receive.getMailbox()));
  emitBoxes(op, transfer);
}

int64_t InstructionEmitter::column(std::vector<int64_t> values) {
  const auto it = std::find(columns_.begin(), columns_.end(), values);
  if (it == columns_.end()) {
    columns_.push_back(std::move(values));
    return static_cast<int64_t>(columns_.size()) - 1;
  }
  return it - columns_.begin();
}

uint32_t InstructionEmitter::groupSet(std::vector<std::vector<int64_t>> groups) {
  const auto [it, added] = groupSets_.try_emplace(std::move(groups), static_cast<uint32_t>(plan_.group_sets_size()));
  if (added) {
    plan::GroupSet* set = plan_.add_group_sets();
    for (const std::vector<int64_t>& ranks : it->first) {
      set->add_groups()->mutable_ranks()->Assign(ranks.begin(), ranks.end());
    }
  }
  return it->second;
}

uint32_t InstructionEmitter::locationOf(Location loc) {
  auto place = loc->findInstanceOf<FileLineColLoc>();
  // Paths are bytes, texts of a plan are UTF-8.
  const std::string file = place ? llvm::json::fixUTF8(place.getFilename().getValue()) : "";
  const int64_t line = place ? place.getLine() : 0;
  const auto [it, added] = locations_.try_emplace({file, line}, static_cast<uint32_t>(plan_.locations_size()));
  if (added) {
    plan::Location* made = plan_.add_locations();
    made->set_file(file);
    made->set_line(line);
  }
  return it->second;
}

void InstructionEmitter::readRankTable(ModuleOp module) {
  auto table = module->getAttrOfType<DenseIntElementsAttr>(kRankTableAttr);
  const int64_t columns = table ? table.getType().getDimSize(1) : 0;
  columns_.assign(columns, std::vector<int64_t>(plan_.ranks()));
  int64_t next = 0;
  for (int64_t i = 0; i < columns * plan_.ranks(); ++i) {
    columns_[i % columns][i / columns] = table.getValues<int64_t>()[next++];
  }
}

void InstructionEmitter::emitRankTable() {
  plan::RankTable* table = plan_.mutable_rank_table();
  table->set_columns(static_cast<int64_t>(columns_.size()));
  for (int64_t rank = 0; rank < plan_.ranks(); ++rank) {
    for (const std::vector<int64_t>& column : columns_) {
      table->add_values(column[rank]);
    }
  }
}

}  // namespace weft
