#include "passes/plan/emit_plan.h"

#include <algorithm>

#include "ir/dist/dist.h"
#include "ir/nn/nn.h"
#include "ir/program/decision_attributes.h"
#include "ir/program/program.h"
#include "ir/program/schedule_attributes.h"
#include "llvm/Support/JSON.h"
#include "passes/plan/buffers.h"
#include "passes/plan/constant_data.h"
#include "passes/plan/emit_instruction.h"
#include "passes/plan/step_program.h"
#include "runtime/base/status.h"
#include "runtime/plan/plan_file.h"

namespace weft {

using namespace mlir;  // NOLINT: the file is about MLIR ops throughout

namespace {

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

// Writes one submesh down.
class PlanEmitter {
 public:
  PlanEmitter(ModuleOp module, int64_t submesh, const ScheduleDecision& schedule)
      : module_(module), submesh_(submesh), schedule_(schedule) {}

  LogicalResult run() {
    writeHeader(*meshOf(module_));
    BufferTable buffers(module_, plan_);
    InstructionEmitter instructions(module_, buffers, plan_);
    for (func::FuncOp function : functionsInOrder(module_)) {
      if (failed(emitFunction(function, buffers, instructions))) {
        return failure();
      }
    }
    emitTensors(buffers);
    buffers.writeRegions();
    instructions.emitRankTable();
    emitSchedules();
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

  LogicalResult emitFunction(func::FuncOp function, BufferTable& buffers, InstructionEmitter& instructions) {
    plan::Function* made = plan_.add_functions();
    made->set_name(function.getName().str());
    made->set_kind(functionKind(function));
    made->set_stage(stageOfFunction(function, schedule_, submesh_));
    for (Operation& op : function.getBody().front().without_terminator()) {
      if (auto constant = dyn_cast<ir::nn::ConstantOp>(op)) {
        if (failed(emitConstant(constant, buffers))) {
          return failure();
        }
      } else if (!op.hasAttr(kViewAttr)) {
        instructions.emit(&op, made->add_instructions());
      }
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

  void emitSchedules() {
    const SubmeshCalls calls = callsOf(module_);
    for (int64_t rank = 0; rank < plan_.ranks(); ++rank) {
      plan::RankSchedule* schedule = plan_.add_schedules();
      for (const FunctionCall& call : calls.init) {
        *schedule->add_init() = actionOf(call);
      }
      for (const FunctionCall& call : calls.step) {
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

  void emitTensors(BufferTable& buffers) {
    static const std::map<std::string, plan::TensorKind> kKinds = {{"input", plan::TENSOR_INPUT},
                                                                   {"parameter", plan::TENSOR_PARAMETER},
                                                                   {"state", plan::TENSOR_STATE},
                                                                   {"output", plan::TENSOR_OUTPUT}};
    for (DictionaryAttr tensor : tensorsOf(module_)) {
      auto text = [&](StringRef key) { return tensor.getAs<StringAttr>(key).getValue().str(); };
      const Value named = valueNamed(text("value"));
      if (!named) {
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
      made->set_buffer(buffers.of(named));
    }
  }

  // Any argument or result with this name: all of one name lie in one storage, in one type and shape. Null if nothing
  // has it.
  Value valueNamed(StringRef name) {
    const auto is = [&](DictionaryAttr attrs) { return attrs.getAs<StringAttr>(kValueAttr).getValue() == name; };
    for (func::FuncOp function : functionsInOrder(module_)) {
      for (BlockArgument argument : function.getArguments()) {
        if (is(function.getArgAttrDict(argument.getArgNumber()))) {
          return argument;
        }
      }
      for (unsigned i = 0; i < function.getNumResults(); ++i) {
        if (is(function.getResultAttrDict(i))) {
          return returned(function, i);
        }
      }
    }
    return Value();
  }

  ModuleOp module_;
  const int64_t submesh_;
  const ScheduleDecision& schedule_;
  plan::Plan plan_;
};

absl::StatusOr<plan::Plan> emitSubmesh(ModuleOp submesh, int64_t number, const ScheduleDecision& schedule) {
  PlanEmitter emitter(submesh, number, schedule);
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
  const llvm::SmallVector<ModuleOp> modules = submeshesOf(module);
  const auto count = static_cast<int64_t>(modules.size());
  const ScheduleDecision schedule = scheduleOf(module);
  std::vector<plan::Plan> plans;
  for (int64_t submesh = 0; submesh < count; ++submesh) {
    WEFT_ASSIGN_OR_RETURN(plans.emplace_back(), emitSubmesh(modules[submesh], submesh, schedule));
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
