// Gives every value its layout: logical -> annotated, without what moves values between layouts.
//
// The planner says in which layout each value lies and each operator reads its operands (planner/step/value_layouts.h).
// What an operator reads is written beside it (dist.reads); where a value lies otherwise, insert-transfers and
// insert-reshards put what moves it.

#include "ir/dist/dist.h"
#include "ir/layout/stage_mesh_text.h"
#include "ir/program/decision_attributes.h"
#include "ir/program/program.h"
#include "mlir/IR/Builders.h"
#include "passes/decide/build_program_graph.h"
#include "passes/gates/check_decisions.h"
#include "passes/partition/readers.h"
#include "passes/partition/record.h"
#include "planner/step/value_layouts.h"

namespace weft {

#define GEN_PASS_DEF_ASSIGNLAYOUTSPASS
#include "passes/generated/passes.h.inc"

namespace {

using namespace mlir;  // NOLINT

void setLayout(Value value, const Layout& layout, const Mesh& mesh) {
  value.setType(ir::dist::withLayout(value.getType(), layout.canonical(), mesh));
}

// Writes layouts and places on @step, whose values and operators are numbered as in the view.
class StepAnnotator {
 public:
  StepAnnotator(const GraphView& view, const Decisions& decisions, const StepLayouts& layouts)
      : view_(view), decisions_(decisions), meshes_(decisions.meshes()), layouts_(layouts) {}

  void run(func::FuncOp step) const {
    for (unsigned i = 0; i < step.getNumArguments(); ++i) {
      const int64_t stage = decisions_.arguments[i].stage;
      if (stage > 0) {
        step.setArgAttr(i, kStageAttr, Builder(step.getContext()).getI64IntegerAttr(stage));
      }
      setLayout(step.getArgument(i), layouts_.values[i], meshes_.ofStage(stage));
    }
    int number = 0;
    for (Operation& op : step.getBody().front().without_terminator()) {
      annotate(&op, number++);
    }
    refreshType(step);
  }

 private:
  void annotate(Operation* op, int number) const {
    const OperatorLayouts& layouts = layouts_.operators[number];
    const Mesh& mesh = meshes_.ofStage(layouts.place.stage);
    setPlace(op, layouts.place);
    setReads(op, layouts.reads, mesh);
    for (OpResult result : op->getResults()) {
      setLayout(result, layouts_.values[view_.resultOf(number, result.getResultNumber())], mesh);
    }
  }

  const GraphView& view_;
  const Decisions& decisions_;
  const StageMeshes meshes_;
  const StepLayouts& layouts_;
};

class AssignLayoutsPass : public impl::AssignLayoutsPassBase<AssignLayoutsPass> {
 public:
  void runOnOperation() override {
    ModuleOp module = getOperation();
    const Decisions* decisions = recordOf(getOperation());
    if (decisions == nullptr || failed(checkDecisions(stepFunction(module), *decisions))) {
      return signalPassFailure();
    }
    if (failed(assignStep(module, *decisions)) || failed(assignInit(module, *decisions))) {
      return signalPassFailure();
    }
    setSchedule(module, decisions->schedule);
    setMeshes(module, *decisions);
  }

 private:
  // The mesh that was decided, and those of the submeshes where they differ.
  static void setMeshes(ModuleOp module, const Decisions& decisions) {
    Builder builder(module.getContext());
    module->setAttr(kMeshAttr, ir::dist::MeshAttr::get(module.getContext(), decisions.mesh.print()));
    module->removeAttr(kStageMeshesAttr);
    if (!decisions.stageMeshes.empty()) {
      module->setAttr(kStageMeshesAttr, builder.getStringAttr(printStageMeshes(decisions.stageMeshes)));
      module->setAttr(kStripesAttr, builder.getI64IntegerAttr(decisions.stripes));
    }
  }

  static LogicalResult assignStep(ModuleOp module, const Decisions& decisions) {
    func::FuncOp step = stepFunction(module);
    FailureOr<ProgramGraph> graph = buildProgramGraph(step);
    if (failed(graph)) {
      return failure();
    }
    const GraphView view(*graph);
    const absl::StatusOr<StepLayouts> layouts = layoutsOf(view, decisions);
    if (!layouts.ok()) {
      return emitPlannerError(module, layouts.status()), failure();
    }
    StepAnnotator(view, decisions, *layouts).run(step);
    return success();
  }

  // @init: every generator makes its value in the argument's layout.
  static LogicalResult assignInit(ModuleOp module, const Decisions& decisions) {
    func::FuncOp init = initFunction(module);
    if (!init) {
      return success();
    }
    std::map<std::string, const ArgumentDecision*> byName;
    for (const ArgumentDecision& argument : decisions.arguments) {
      byName[argument.name] = &argument;
    }
    const StageMeshes meshes = decisions.meshes();
    for (unsigned i = 0; i < init.getNumResults(); ++i) {
      const std::string name = resultText(init, i, kNameAttr);
      const auto it = byName.find(name);
      if (it == byName.end()) {
        return init.emitError() << "result '" << name << "' is no argument of @step";
      }
      Value value = returned(init, i);
      const Mesh& mesh = meshes.ofStage(it->second->stage);
      setLayout(value, it->second->layout, mesh);
      value.getDefiningOp()->setAttr(kRunsInAttr, StringAttr::get(module.getContext(), "init"));
      value.getDefiningOp()->setAttr(kStageAttr, Builder(module).getI64IntegerAttr(it->second->stage));
    }
    refreshType(init);
    return success();
  }
};

}  // namespace
}  // namespace weft
