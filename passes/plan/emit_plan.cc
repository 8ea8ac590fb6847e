#include "passes/plan/emit_plan.h"

#include <algorithm>

#include "ir/dist/dist.h"
#include "ir/nn/kernel_attributes.h"
#include "ir/nn/nn.h"
#include "kernels/describe/kernel_spec.h"
#include "passes/gates/checks.h"
#include "passes/plan/buffers.h"
#include "passes/plan/constant_data.h"
#include "passes/plan/storage.h"
#include "passes/support/program.h"
#include "runtime/plan/plan_file.h"

namespace weft {

using namespace mlir;  // NOLINT: the file is about MLIR ops throughout

namespace {

constexpr std::pair<const char*, plan::FunctionKind> kFunctions[] = {{"init", plan::INIT},
                                                                     {"prologue", plan::PROLOGUE},
                                                                     {"forward", plan::FORWARD},
                                                                     {"backward", plan::BACKWARD},
                                                                     {"update", plan::UPDATE}};

bool isCollective(Operation* op) {
  return isa<ir::dist::AllReduceOp, ir::dist::AllGatherOp, ir::dist::ReduceScatterOp, ir::dist::AllToAllOp,
             ir::dist::PermuteOp>(op);
}

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

class PlanEmitter {
 public:
  explicit PlanEmitter(ModuleOp module) : module_(module) {}

  LogicalResult run() {
    if (failed(checkScheduled(module_))) {
      return failure();
    }
    writeHeader(*meshOf(module_));
    readRankTable();
    for (const auto& [name, kind] : kFunctions) {
      if (auto function = module_.lookupSymbol<func::FuncOp>(name)) {
        functions_.push_back(function);
        kinds_.push_back(kind);
      }
    }
    storage_ = assignStorage(functions_, visibleNames());
    BufferTable buffers(storage_, plan_);
    buffers_ = &buffers;
    for (size_t i = 0; i < functions_.size(); ++i) {
      if (failed(emitFunction(functions_[i], i))) {
        return failure();
      }
    }
    emitTensors();
    buffers.writeRegions(workspace_);
    emitRankTable();
    emitSchedules();
    return success();
  }

  plan::Plan takePlan() { return std::move(plan_); }

 private:
  void writeHeader(const Mesh& mesh) {
    plan_.set_format_version(kPlanFormatVersion);
    plan_.set_name(module_.getName() ? module_.getName()->str() : "step");
    plan_.set_mesh(mesh.print());
    plan_.set_ranks(mesh.ranks());
    plan_.set_pieces(mesh.pieces());
    plan_.set_program("train");
    if (auto decisions = module_->getAttrOfType<StringAttr>(kDecisionsAttr)) {
      plan_.set_decisions(decisions.getValue().str());
    }
  }

  void readRankTable() {
    auto table = module_->getAttrOfType<DenseIntElementsAttr>("dist.rank_table");
    const int64_t columns = table ? table.getType().getDimSize(1) : 0;
    columns_.assign(columns, std::vector<int64_t>(plan_.ranks()));
    int64_t next = 0;
    for (int64_t i = 0; i < columns * plan_.ranks(); ++i) {
      columns_[i % columns][i / columns] = table.getValues<int64_t>()[next++];
    }
  }

  // Names of buffers that the host reads or writes.
  std::set<std::string> visibleNames() {
    std::set<std::string> names;
    for (DictionaryAttr tensor : tensors()) {
      names.insert(tensor.getAs<StringAttr>("value").getValue().str());
    }
    return names;
  }

  std::vector<DictionaryAttr> tensors() {
    std::vector<DictionaryAttr> entries;
    if (auto list = module_->getAttrOfType<ArrayAttr>("dist.tensors")) {
      for (mlir::Attribute entry : list) {
        entries.push_back(cast<DictionaryAttr>(entry));
      }
    }
    return entries;
  }

  LogicalResult emitFunction(func::FuncOp function, size_t index) {
    plan::Function* made = plan_.add_functions();
    made->set_name(function.getName().str());
    made->set_kind(kinds_[index]);
    for (Operation& op : function.getBody().front().without_terminator()) {
      if (auto constant = dyn_cast<ir::nn::ConstantOp>(op)) {
        FailureOr<std::string> data = constantData(constant);
        if (failed(data)) {
          return failure();
        }
        plan_.mutable_buffers(static_cast<int>(buffers_->of(constant->getResult(0))))->set_data(*std::move(data));
      } else if (!storage_.views.contains(&op)) {
        emitInstruction(&op, made->add_instructions());
      }
    }
    for (const Copy& copy : storage_.copies[index]) {
      plan::Instruction* instruction = made->add_instructions();
      instruction->set_kernel("reshape");
      instruction->set_label("copy to " + storage_.storages[copy.to].label);
      instruction->set_location(locationOf(copy.like.getLoc()));
      instruction->add_inputs()->set_buffer(buffers_->of(copy.like, copy.from));
      instruction->add_outputs()->set_buffer(buffers_->of(copy.like, copy.to));
    }
    return success();
  }

  void emitInstruction(Operation* op, plan::Instruction* instruction) {
    for (Value operand : op->getOperands()) {
      instruction->add_inputs()->set_buffer(buffers_->of(operand));
    }
    for (Value result : op->getResults()) {
      instruction->add_outputs()->set_buffer(buffers_->of(result));
    }
    instruction->set_label(labelOf(op));
    instruction->set_location(locationOf(op->getLoc()));
    if (isCollective(op)) {
      emitCollective(op, instruction);
    } else {
      emitKernel(op, instruction);
    }
  }

  void emitKernel(Operation* op, plan::Instruction* instruction) {
    instruction->set_kernel(op->getName().stripDialect().str());
    KernelSpec spec{instruction->kernel(), {}, {}, ir::kernelAttributes(op), 0};
    for (Value operand : op->getOperands()) {
      spec.inputs.push_back(tensorSpec(operand));
    }
    for (Value result : op->getResults()) {
      spec.outputs.push_back(tensorSpec(result));
    }
    for (const auto& [name, value] : spec.attributes) {
      writeAttribute(value, &(*instruction->mutable_attributes())[name]);
    }
    if (auto scalars = op->getAttrOfType<ArrayAttr>("dist.scalars")) {
      for (auto scalar : scalars.getAsRange<ir::dist::ScalarAttr>()) {
        plan::Scalar* made = instruction->add_scalars();
        made->set_immediate(scalar.getImmediate());
        made->set_column(scalar.getColumn());
        made->set_piece_factor(scalar.getPieceFactor());
      }
      spec.scalars = scalars.size();
    }
    workspace_ = std::max(workspace_, workspaceBound(spec));
    if (auto interface = dyn_cast<ir::OperatorInterface>(op)) {
      instruction->set_flops(interface.getFlops());
    }
  }

  void emitCollective(Operation* op, plan::Instruction* instruction) {
    static const std::map<std::string, plan::CollectiveKind> kKinds = {{"all_reduce", plan::ALL_REDUCE},
                                                                       {"all_gather", plan::ALL_GATHER},
                                                                       {"reduce_scatter", plan::REDUCE_SCATTER},
                                                                       {"all_to_all", plan::ALL_TO_ALL},
                                                                       {"permute", plan::PERMUTE}};
    plan::Collective* collective = instruction->mutable_collective();
    auto integer = [&](StringRef name) {
      auto attr = op->getAttrOfType<IntegerAttr>(name);
      return attr ? attr.getInt() : 0;
    };
    auto text = [&](StringRef name) {
      auto attr = op->getAttrOfType<StringAttr>(name);
      return attr ? attr.getValue().str() : std::string();
    };
    collective->set_kind(kKinds.at(op->getName().stripDialect().str()));
    collective->set_dim(integer("dim"));
    collective->set_split_dim(integer("split_dim"));
    collective->set_bytes_received(integer("bytes_received"));
    collective->set_reduction(text("reduce") == "max" ? plan::MAX : text("reduce") == "min" ? plan::MIN : plan::SUM);
    collective->set_reason(text("reason"));
    auto cost = op->getAttrOfType<FloatAttr>("cost");
    collective->set_cost(cost ? cost.getValueAsDouble() : 0);
    collective->set_source_column(-1);
    if (auto groups = op->getAttrOfType<ArrayAttr>("groups")) {
      collective->set_group_set(groupSet(groups));
    }
    if (auto source = op->getAttrOfType<DenseI64ArrayAttr>("source")) {
      collective->set_source_column(column({source.asArrayRef().begin(), source.asArrayRef().end()}));
    }
    if (auto members = op->getAttrOfType<ArrayAttr>("dist.members")) {
      std::string names;
      for (auto name : members.getAsRange<StringAttr>()) {
        names += (names.empty() ? "" : ", ") + name.str();
      }
      (*instruction->mutable_attributes())["members"].set_text(names);
    }
  }

  // A column of the rank table with these values, found or added.
  int64_t column(std::vector<int64_t> values) {
    const auto it = std::find(columns_.begin(), columns_.end(), values);
    if (it == columns_.end()) {
      columns_.push_back(std::move(values));
      return static_cast<int64_t>(columns_.size()) - 1;
    }
    return it - columns_.begin();
  }

  uint32_t groupSet(ArrayAttr groups) {
    const auto [it, added] = groupSets_.try_emplace(groups, static_cast<uint32_t>(plan_.group_sets_size()));
    if (added) {
      plan::GroupSet* set = plan_.add_group_sets();
      for (const auto& ranks : ir::dist::groupLists(groups)) {
        set->add_groups()->mutable_ranks()->Assign(ranks.begin(), ranks.end());
      }
    }
    return it->second;
  }

  uint32_t locationOf(Location loc) {
    auto place = loc->findInstanceOf<FileLineColLoc>();
    const std::string file = place ? place.getFilename().getValue().str() : "";
    const int64_t line = place ? place.getLine() : 0;
    const auto [it, added] = locations_.try_emplace({file, line}, static_cast<uint32_t>(plan_.locations_size()));
    if (added) {
      plan::Location* made = plan_.add_locations();
      made->set_file(file);
      made->set_line(line);
    }
    return it->second;
  }

  void emitRankTable() {
    plan::RankTable* table = plan_.mutable_rank_table();
    table->set_columns(static_cast<int64_t>(columns_.size()));
    for (int64_t rank = 0; rank < plan_.ranks(); ++rank) {
      for (const std::vector<int64_t>& column : columns_) {
        table->add_values(column[rank]);
      }
    }
  }

  // One stage: prologue, then forward and backward of each piece in order, then the update.
  void emitSchedules() {
    for (int64_t rank = 0; rank < plan_.ranks(); ++rank) {
      plan::RankSchedule* schedule = plan_.add_schedules();
      auto add = [&](plan::FunctionKind kind, int64_t piece) {
        for (size_t f = 0; f < kinds_.size(); ++f) {
          if (kinds_[f] == kind) {
            plan::Action* action = kind == plan::INIT ? schedule->add_init() : schedule->add_step();
            action->set_function(static_cast<uint32_t>(f));
            action->set_piece(piece);
          }
        }
      };
      add(plan::INIT, 0);
      add(plan::PROLOGUE, 0);
      for (int64_t piece = 0; piece < plan_.pieces(); ++piece) {
        add(plan::FORWARD, piece);
        add(plan::BACKWARD, piece);
      }
      add(plan::UPDATE, 0);
    }
  }

  void emitTensors() {
    static const std::map<std::string, plan::TensorKind> kKinds = {{"input", plan::TENSOR_INPUT},
                                                                   {"parameter", plan::TENSOR_PARAMETER},
                                                                   {"state", plan::TENSOR_STATE},
                                                                   {"output", plan::TENSOR_OUTPUT}};
    for (DictionaryAttr tensor : tensors()) {
      auto text = [&](StringRef key) { return tensor.getAs<StringAttr>(key).getValue().str(); };
      const auto storage = storage_.named.find(text("value"));
      if (storage == storage_.named.end()) {
        // An argument nothing reads or writes needs no memory: the host need not know it.
        continue;
      }
      plan::NamedTensor* made = plan_.add_tensors();
      made->set_name(text("name"));
      made->set_kind(kKinds.at(text("kind")));
      made->set_type(elementTypeOf(*parseDType(text("type"))));
      auto numbers = [](mlir::Attribute attr, google::protobuf::RepeatedField<int64_t>* to) {
        ArrayRef<int64_t> values = cast<DenseI64ArrayAttr>(attr).asArrayRef();
        to->Assign(values.begin(), values.end());
      };
      numbers(tensor.get("shape"), made->mutable_shape());
      numbers(tensor.get("file_shape"), made->mutable_file_shape());
      auto pad = tensor.getAs<FloatAttr>("pad_value");
      made->set_pad_value(pad ? pad.getValueAsDouble() : 0);
      auto offsets = tensor.getAs<ArrayAttr>("offsets");
      auto valid = tensor.getAs<ArrayAttr>("valid");
      for (size_t rank = 0; rank < offsets.size(); ++rank) {
        plan::Slice* slice = made->add_slices();
        numbers(offsets[rank], slice->mutable_offset());
        numbers(valid[rank], slice->mutable_valid());
      }
      made->set_buffer(buffers_->of(valueNamed(text("value")), storage->second));
    }
  }

  // Some argument or result of that name: it has the buffer's type and shape.
  Value valueNamed(const std::string& name) {
    for (func::FuncOp function : functions_) {
      for (unsigned i = 0; i < function.getNumArguments(); ++i) {
        if (function.getArgAttrOfType<StringAttr>(i, "dist.value").getValue() == name) {
          return function.getArgument(i);
        }
      }
      for (unsigned i = 0; i < function.getNumResults(); ++i) {
        if (function.getResultAttrOfType<StringAttr>(i, "dist.value").getValue() == name) {
          return returned(function, i);
        }
      }
    }
    return Value();
  }

  ModuleOp module_;
  plan::Plan plan_;
  std::vector<func::FuncOp> functions_;
  std::vector<plan::FunctionKind> kinds_;
  StorageAssignment storage_;
  BufferTable* buffers_ = nullptr;  // while run() runs
  llvm::DenseMap<mlir::Attribute, uint32_t> groupSets_;
  std::map<std::pair<std::string, int64_t>, uint32_t> locations_;
  std::vector<std::vector<int64_t>> columns_;
  int64_t workspace_ = 0;
};

}  // namespace

absl::StatusOr<plan::Plan> emitPlan(ModuleOp module) {
  PlanEmitter emitter(module);
  if (failed(emitter.run())) {
    return absl::InvalidArgumentError("the plan could not be emitted; see the diagnostics");
  }
  plan::Plan plan = emitter.takePlan();
  if (absl::Status status = validatePlan(plan); !status.ok()) {
    return status;
  }
  return plan;
}

}  // namespace weft
