#include "passes/plan/emit_plan.h"

#include <algorithm>
#include <set>

#include "ir/dist/dist.h"
#include "ir/nn/nn.h"
#include "ir/program/decision_attributes.h"
#include "ir/program/program.h"
#include "kernels/describe/describe.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/JSON.h"
#include "passes/gates/checks.h"
#include "passes/plan/buffers.h"
#include "passes/plan/constant_data.h"
#include "passes/plan/instruction_facts.h"
#include "passes/plan/storage.h"
#include "planner/stage_table.h"
#include "runtime/base/status.h"
#include "runtime/plan/plan_file.h"

namespace weft {

using namespace mlir;  // NOLINT: the file is about MLIR ops throughout

namespace {

plan::FunctionKind functionKind(StringRef kind) {
  return llvm::StringSwitch<plan::FunctionKind>(kind)
      .Case("prologue", plan::PROLOGUE)
      .Case("forward", plan::FORWARD)
      .Case("backward", plan::BACKWARD)
      .Case("input_grad", plan::INPUT_GRAD)
      .Case("weight_grad", plan::WEIGHT_GRAD)
      .Case("update", plan::UPDATE)
      .Default(plan::INIT);
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

// A submesh among those of a program.
struct SubmeshContext {
  int64_t submesh = 0;
  const std::vector<int64_t>& submeshes;  // of each stage
  const schedule::Table& table;           // its ranks are submeshes
  const std::vector<int64_t>& inFlight;   // of each stage: most micro-batches between forward and gradient of the input
};

class PlanEmitter {
 public:
  PlanEmitter(ModuleOp module, const SubmeshContext& context) : module_(module), context_(context) {}

  LogicalResult run() {
    writeHeader(*meshOf(module_));
    readRankTable();
    for (func::FuncOp function : functionsInOrder(module_)) {
      functions_.push_back(function);
      auto stage = function->getAttrOfType<IntegerAttr>(kStageAttr);
      stages_.push_back(stage ? stage.getInt() : onlyStage());
    }
    storage_ = assignStorage(functions_, visibleNames());
    BufferTable buffers(storage_, stages_, calls(), plan_);
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
  const std::vector<schedule::Action>& order() const { return context_.table.orders[context_.submesh]; }

  // The stage of a submesh that owns one.
  int64_t onlyStage() const { return llvm::find(context_.submeshes, context_.submesh) - context_.submeshes.begin(); }

  void writeHeader(const Mesh& mesh) {
    plan_.set_format_version(kPlanFormatVersion);
    plan_.set_name(module_.getName() ? llvm::json::fixUTF8(*module_.getName()) : "step");
    plan_.set_mesh(mesh.print());
    plan_.set_ranks(mesh.ranks());
    plan_.set_micro_batches(mesh.microBatches());
  }

  void readRankTable() {
    auto table = module_->getAttrOfType<DenseIntElementsAttr>(kRankTableAttr);
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
    if (auto list = module_->getAttrOfType<ArrayAttr>(kTensorsAttr)) {
      for (mlir::Attribute entry : list) {
        entries.push_back(cast<DictionaryAttr>(entry));
      }
    }
    return entries;
  }

  LogicalResult emitFunction(func::FuncOp function, size_t index) {
    plan::Function* made = plan_.add_functions();
    made->set_name(function.getName().str());
    made->set_kind(functionKind(kindOf(function)));
    made->set_stage(stages_[index]);
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
      instruction->set_passes_sums(true);
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
    instruction->set_role(roleOf(op));
    if (const std::optional<plan::CollectiveKind> kind = collectiveKindOf(op)) {
      emitCollective(op, *kind, instruction);
    } else if (isa<ir::dist::SendOp, ir::dist::ReceiveOp>(op)) {
      emitTransfer(op, instruction);
    } else {
      emitKernel(op, instruction);
    }
  }

  void emitKernel(Operation* op, plan::Instruction* instruction) {
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
    workspace_ = std::max(workspace_, describe(spec, Target::kCpu).workspaceBytes);
    if (auto interface = dyn_cast<ir::OperatorInterface>(op)) {
      instruction->set_flops(interface.getFlops());
      instruction->set_passes_sums(interface.passesSums());
    }
  }

  void emitCollective(Operation* op, plan::CollectiveKind kind, plan::Instruction* instruction) {
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
    if (auto groups = op->getAttrOfType<ArrayAttr>("groups")) {
      collective->set_group_set(groupSet(groups));
    }
    if (auto source = op->getAttrOfType<DenseI64ArrayAttr>("source")) {
      collective->set_source_column(column({source.asArrayRef().begin(), source.asArrayRef().end()}));
    }
    if (auto members = op->getAttrOfType<ArrayAttr>(kMembersAttr)) {
      std::string names;
      for (auto name : members.getAsRange<StringAttr>()) {
        names += (names.empty() ? "" : ", ") + name.str();
      }
      (*instruction->mutable_attributes())["members"].set_text(names);
    }
  }

  // As many messages may be under way as the earlier stage has micro-batches in flight: it sends a micro-batch's
  // activation after its forward, and awaits the micro-batch's gradient before its backward ends. What is sent once per
  // step needs room for one. Of several stages the submesh owns, the one with most counts.
  void emitTransfer(Operation* op, plan::Instruction* instruction) {
    plan::Transfer* transfer = instruction->mutable_transfer();
    const int64_t other = op->getAttrOfType<IntegerAttr>("submesh").getInt();
    const bool perMicroBatch = isPerMicroBatch(kindOf(op->getParentOfType<func::FuncOp>()));
    transfer->set_send(isa<ir::dist::SendOp>(op));
    transfer->set_channel(static_cast<uint32_t>(op->getAttrOfType<IntegerAttr>("channel").getInt()));
    transfer->set_submesh(other);
    auto reason = op->getAttrOfType<StringAttr>("reason");
    transfer->set_reason(reason ? reason.getValue().str() : "");
    transfer->set_capacity(perMicroBatch ? std::max(mostInFlight(other), mostInFlight(context_.submesh)) : 1);
    if (!transfer->send()) {
      transfer->set_mailbox(buffers_->mailbox(op->getResult(0), transfer->capacity()));
      emitBoxes(op, transfer);
    }
  }

  // Written flat: source, target, then for each dimension both offsets and the size.
  static void emitBoxes(Operation* op, plan::Transfer* transfer) {
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

  int64_t mostInFlight(int64_t submesh) const {
    int64_t most = 1;
    for (size_t stage = 0; stage < context_.submeshes.size(); ++stage) {
      most = context_.submeshes[stage] == submesh ? std::max(most, context_.inFlight[stage]) : most;
    }
    return most;
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

  void emitRankTable() {
    plan::RankTable* table = plan_.mutable_rank_table();
    table->set_columns(static_cast<int64_t>(columns_.size()));
    for (int64_t rank = 0; rank < plan_.ranks(); ++rank) {
      for (const std::vector<int64_t>& column : columns_) {
        table->add_values(column[rank]);
      }
    }
  }

  void addCalls(plan::FunctionKind kind, const schedule::Action& of, std::vector<Call>& calls) {
    for (size_t f = 0; f < functions_.size(); ++f) {
      const bool perMicroBatch = isPerMicroBatch(kindOf(functions_[f]));
      if (functionKind(kindOf(functions_[f])) == kind && (!perMicroBatch || stages_[f] == of.stage)) {
        calls.push_back({static_cast<int>(f), of.micro});
      }
    }
  }

  // The calls of one step: prologue, the micro-batches in the submesh's order, then the update.
  std::vector<Call> calls() {
    std::vector<Call> calls;
    const auto add = [&](plan::FunctionKind kind, const schedule::Action& of) { addCalls(kind, of, calls); };
    add(plan::PROLOGUE, {});
    for (const schedule::Action& action : order()) {
      addMicroBatchAction(action, add);
    }
    add(plan::UPDATE, {});
    return calls;
  }

  void emitSchedules() {
    std::vector<Call> first;
    addCalls(plan::INIT, {}, first);
    const std::vector<Call> step = calls();
    for (int64_t rank = 0; rank < plan_.ranks(); ++rank) {
      plan::RankSchedule* schedule = plan_.add_schedules();
      for (const Call& call : first) {
        *schedule->add_init() = actionOf(call);
      }
      for (const Call& call : step) {
        *schedule->add_step() = actionOf(call);
      }
    }
  }

  static plan::Action actionOf(const Call& call) {
    plan::Action action;
    action.set_function(static_cast<uint32_t>(call.function));
    action.set_micro_batch(call.microBatch);
    return action;
  }

  // A whole backward is one function, or both halves of it.
  template <typename Add>
  static void addMicroBatchAction(const schedule::Action& action, const Add& add) {
    using schedule::ActionKind;
    if (action.kind == ActionKind::kForward) {
      return add(plan::FORWARD, action);
    }
    if (action.kind == ActionKind::kBackward) {
      add(plan::BACKWARD, action);
    }
    if (action.kind != ActionKind::kWeightGrad) {
      add(plan::INPUT_GRAD, action);
    }
    if (action.kind != ActionKind::kInputGrad) {
      add(plan::WEIGHT_GRAD, action);
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

  // Any argument or result with this dist.value: all of one name have the buffer's type and shape.
  Value valueNamed(const std::string& name) {
    for (func::FuncOp function : functions_) {
      for (unsigned i = 0; i < function.getNumArguments(); ++i) {
        if (function.getArgAttrOfType<StringAttr>(i, kValueAttr).getValue() == name) {
          return function.getArgument(i);
        }
      }
      for (unsigned i = 0; i < function.getNumResults(); ++i) {
        if (function.getResultAttrOfType<StringAttr>(i, kValueAttr).getValue() == name) {
          return returned(function, i);
        }
      }
    }
    return Value();
  }

  ModuleOp module_;
  const SubmeshContext& context_;
  plan::Plan plan_;
  std::vector<func::FuncOp> functions_;
  std::vector<int64_t> stages_;  // of each function
  StorageAssignment storage_;
  BufferTable* buffers_ = nullptr;  // while run() runs
  llvm::DenseMap<mlir::Attribute, uint32_t> groupSets_;
  std::map<std::pair<std::string, int64_t>, uint32_t> locations_;
  std::vector<std::vector<int64_t>> columns_;
  int64_t workspace_ = 0;
};

absl::StatusOr<plan::Plan> emitSubmesh(ModuleOp submesh, const SubmeshContext& context) {
  PlanEmitter emitter(submesh, context);
  if (failed(emitter.run())) {
    return absl::InvalidArgumentError("the plan could not be emitted; see the diagnostics");
  }
  return emitter.takePlan();
}

// Appends a submesh's slices, behind empty ones for the ranks before that have none.
void addSlices(const plan::NamedTensor& tensor, int64_t before, plan::NamedTensor* made) {
  const auto addNone = [&](int64_t count) {
    for (int64_t rank = 0; rank < count; ++rank) {
      plan::Slice* slice = made->add_slices();
      slice->mutable_offset()->Resize(tensor.shape_size(), 0);
      slice->mutable_valid()->Resize(tensor.shape_size(), 0);
    }
  };
  addNone(before - made->slices_size());
  made->mutable_slices()->MergeFrom(tensor.slices());
}

plan::NamedTensor tensorWithoutSlices(plan::NamedTensor tensor) {
  tensor.clear_slices();
  return tensor;
}

// For people: "stages=2 of dp=2", or the submeshes' meshes where they differ.
std::string meshesText(const std::vector<plan::Plan>& submeshes) {
  const bool same =
      llvm::all_of(submeshes, [&](const plan::Plan& submesh) { return submesh.mesh() == submeshes[0].mesh(); });
  if (same) {
    return "stages=" + std::to_string(submeshes.size()) + " of " + submeshes[0].mesh();
  }
  std::string text;
  for (const plan::Plan& submesh : submeshes) {
    text += (text.empty() ? "" : "; ") + submesh.mesh();
  }
  return text;
}

// What the host needs of a program with stages.
plan::Plan joinSubmeshes(std::vector<plan::Plan> submeshes) {
  plan::Plan joined;
  joined.set_format_version(kPlanFormatVersion);
  joined.set_name(submeshes[0].name());
  joined.set_mesh(meshesText(submeshes));
  joined.set_micro_batches(submeshes[0].micro_batches());
  std::map<std::string, int> known;
  int64_t ranks = 0;
  for (const plan::Plan& submesh : submeshes) {
    for (const plan::NamedTensor& tensor : submesh.tensors()) {
      const auto [it, added] = known.try_emplace(tensor.name(), joined.tensors_size());
      if (added) {
        plan::NamedTensor* made = joined.add_tensors();
        *made = tensor;
        made->clear_slices();
        made->clear_buffer();
      }
      addSlices(tensor, ranks, joined.mutable_tensors(it->second));
    }
    ranks += submesh.ranks();
    joined.mutable_memory()->set_peak_bytes(std::max(joined.memory().peak_bytes(), submesh.memory().peak_bytes()));
  }
  joined.set_ranks(ranks);
  for (plan::NamedTensor& tensor : *joined.mutable_tensors()) {
    addSlices(tensorWithoutSlices(tensor), ranks, &tensor);
  }
  return joined;
}

}  // namespace

absl::StatusOr<plan::Plan> emitPlan(ModuleOp module) {
  if (failed(checkScheduled(module))) {
    return absl::InvalidArgumentError("the plan could not be emitted; see the diagnostics");
  }
  const llvm::SmallVector<ModuleOp> modules = submeshesOf(module);
  const auto count = static_cast<int64_t>(modules.size());
  FailureOr<Mesh> mesh = meshOf(module);
  if (failed(mesh)) {
    return absl::InvalidArgumentError("the module has no mesh");
  }
  const ScheduleDecision schedule = scheduleOf(module);
  const bool backward = trains(module);
  WEFT_ASSIGN_OR_RETURN(const schedule::Table table, stageTable(schedule, mesh->microBatches(), backward));
  std::vector<int64_t> inFlight = inFlightOf(table);
  if (!backward) {
    inFlight.assign(inFlight.size(), 1);
  }
  std::vector<plan::Plan> plans;
  for (int64_t submesh = 0; submesh < count; ++submesh) {
    WEFT_ASSIGN_OR_RETURN(plans.emplace_back(),
                          emitSubmesh(modules[submesh], {submesh, schedule.submeshes, table, inFlight}));
  }
  plan::Plan plan = count == 1 ? std::move(plans[0]) : joinSubmeshes(plans);
  for (int64_t submesh = 0; count > 1 && submesh < count; ++submesh) {
    *plan.add_submeshes() = std::move(plans[submesh]);
  }
  if (auto decisions = module->getAttrOfType<ir::dist::DecisionsAttr>(kDecisionsAttr)) {
    plan.set_decisions(decisions.getRecord().text());
  }
  plan.set_program("train");
  WEFT_RETURN_IF_ERROR(validatePlan(plan));
  return plan;
}

}  // namespace weft
