#include "passes/plan/emit_plan.h"

#include <algorithm>
#include <set>

#include "ir/dist/dist.h"
#include "ir/nn/nn.h"
#include "ir/program/decision_attributes.h"
#include "ir/program/program.h"
#include "llvm/Support/JSON.h"
#include "passes/gates/checks.h"
#include "passes/plan/buffers.h"
#include "passes/plan/constant_data.h"
#include "passes/plan/emit_instruction.h"
#include "passes/plan/step_program.h"
#include "planner/stage_table.h"
#include "planner/step/step_calls.h"
#include "planner/step/step_memory.h"
#include "runtime/base/status.h"
#include "runtime/plan/plan_file.h"

namespace weft {

using namespace mlir;  // NOLINT: the file is about MLIR ops throughout

namespace {

// Of the packer: a tenth of a second each for activations and transients, at most.
constexpr int64_t kPlanEffort = 40'000'000;

// The tensors that the host knows.
std::vector<DictionaryAttr> tensorsOf(ModuleOp module) {
  std::vector<DictionaryAttr> entries;
  if (auto list = module->getAttrOfType<ArrayAttr>(kTensorsAttr)) {
    for (mlir::Attribute entry : list) {
      entries.push_back(cast<DictionaryAttr>(entry));
    }
  }
  return entries;
}

std::set<std::string> visibleNames(ModuleOp module) {
  std::set<std::string> names;
  for (DictionaryAttr tensor : tensorsOf(module)) {
    names.insert(tensor.getAs<StringAttr>("value").getValue().str());
  }
  return names;
}

// Writes one submesh down.
class PlanEmitter {
 public:
  PlanEmitter(ModuleOp module, const SubmeshContext& context)
      : module_(module), context_(context), step_(stepOf(module, visibleNames(module), context)) {}

  LogicalResult run() {
    writeHeader(*meshOf(module_));
    const StorageAssignment storage = assignStorage(step_.program);
    const std::vector<FunctionCall> calls = callsOf(step_.program.functions, context_.table.orders[context_.submesh]);
    const StepMemory memory = planStepMemory(step_.program, storage, calls, kPlanEffort);
    BufferTable buffers(step_, storage, memory, plan_);
    InstructionEmitter instructions(module_, context_, buffers, plan_);
    for (size_t i = 0; i < step_.functions.size(); ++i) {
      if (failed(emitFunction(i, storage, buffers, instructions))) {
        return failure();
      }
    }
    emitTensors(storage, buffers);
    buffers.writeRegions();
    instructions.emitRankTable();
    emitSchedules(calls);
    return success();
  }

  plan::Plan takePlan() { return std::move(plan_); }

 private:
  void writeHeader(const Mesh& mesh) {
    plan_.set_format_version(kPlanFormatVersion);
    plan_.set_name(module_.getName() ? llvm::json::fixUTF8(*module_.getName()) : "step");
    plan_.set_mesh(mesh.print());
    plan_.set_ranks(mesh.ranks());
    plan_.set_micro_batches(mesh.microBatches());
  }

  LogicalResult emitFunction(size_t index, const StorageAssignment& storage, BufferTable& buffers,
                             InstructionEmitter& instructions) {
    func::FuncOp function = step_.functions[index];
    plan::Function* made = plan_.add_functions();
    made->set_name(function.getName().str());
    made->set_kind(step_.program.functions[index].kind);
    made->set_stage(step_.program.functions[index].stage);
    size_t at = 0;
    for (Operation& op : function.getBody().front().without_terminator()) {
      const bool view = storage.views[index][at++];
      if (auto constant = dyn_cast<ir::nn::ConstantOp>(op)) {
        if (failed(emitConstant(constant, buffers))) {
          return failure();
        }
      } else if (!view) {
        instructions.emit(&op, made->add_instructions());
      }
    }
    for (const Copy& copy : storage.copies[index]) {
      instructions.emitCopy(copy, step_.values[copy.like], storage.storages[copy.to].label, made->add_instructions());
    }
    return success();
  }

  LogicalResult emitConstant(ir::nn::ConstantOp constant, BufferTable& buffers) {
    FailureOr<std::string> data = constantData(constant);
    if (failed(data)) {
      return failure();
    }
    plan_.mutable_buffers(static_cast<int>(buffers.of(constant->getResult(0))))->set_data(*std::move(data));
    return success();
  }

  void emitSchedules(const std::vector<FunctionCall>& step) {
    const std::vector<FunctionCall> first = initCallsOf(step_.program.functions);
    for (int64_t rank = 0; rank < plan_.ranks(); ++rank) {
      plan::RankSchedule* schedule = plan_.add_schedules();
      for (const FunctionCall& call : first) {
        *schedule->add_init() = actionOf(call);
      }
      for (const FunctionCall& call : step) {
        *schedule->add_step() = actionOf(call);
      }
    }
  }

  static plan::Action actionOf(const FunctionCall& call) {
    plan::Action action;
    action.set_function(static_cast<uint32_t>(call.function));
    action.set_micro_batch(call.microBatch);
    return action;
  }

  void emitTensors(const StorageAssignment& assignment, BufferTable& buffers) {
    static const std::map<std::string, plan::TensorKind> kKinds = {{"input", plan::TENSOR_INPUT},
                                                                   {"parameter", plan::TENSOR_PARAMETER},
                                                                   {"state", plan::TENSOR_STATE},
                                                                   {"output", plan::TENSOR_OUTPUT}};
    for (DictionaryAttr tensor : tensorsOf(module_)) {
      auto text = [&](StringRef key) { return tensor.getAs<StringAttr>(key).getValue().str(); };
      const auto storage = assignment.named.find(text("value"));
      if (storage == assignment.named.end()) {
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
      made->set_buffer(buffers.of(valueNamed(text("value")), storage->second));
    }
  }

  // Any argument or result with this name: all of one name have the buffer's type and shape.
  Value valueNamed(const std::string& name) {
    for (const StepFunction& function : step_.program.functions) {
      for (const std::vector<StepName>* list : {&function.arguments, &function.results}) {
        const auto found = llvm::find_if(*list, [&](const StepName& entry) { return entry.name == name; });
        if (found != list->end()) {
          return step_.values[found->value];
        }
      }
    }
    return Value();
  }

  ModuleOp module_;
  const SubmeshContext& context_;
  const SubmeshStep step_;
  plan::Plan plan_;
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
