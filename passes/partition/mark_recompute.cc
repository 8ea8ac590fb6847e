// Marks the operators, reshards and masks that the backward pass runs again, and its own gathers that run again for the
// gradients of weights, as the decisions say. It is the last step to the annotated state: reshards and masks have their
// marks too.

#include "ir/dist/dist.h"
#include "ir/program/program.h"
#include "mlir/IR/Builders.h"
#include "passes/partition/readers.h"
#include "passes/partition/record.h"
#include "passes/partition/value_layouts.h"
#include "planner/step/repeats.h"
#include "planner/step/time_layouts.h"

namespace weft {

#define GEN_PASS_DEF_MARKRECOMPUTEPASS
#include "passes/generated/passes.h.inc"

namespace {

using namespace mlir;  // NOLINT

bool isMove(Operation* op) {
  return isa<ir::dist::ReshardOp, ir::dist::MaskPadOp>(op);
}

// The name of a reshard or mask in the record.
ReshardDecision nameOf(Operation* op) {
  ReshardDecision name;
  if (auto mask = dyn_cast<ir::dist::MaskPadOp>(op)) {
    name.how = howOfMask(mask.getDims().empty() ? -1 : mask.getDims().front());
  } else {
    auto type = cast<RankedTensorType>(op->getResult(0).getType());
    name.how = cast<ir::dist::LayoutAttr>(type.getEncoding()).getText().str();
  }
  name.stage = stageOf(op);
  Value source = op->getOperand(0);
  while (source.getDefiningOp() != nullptr && isMove(source.getDefiningOp())) {
    source = source.getDefiningOp()->getOperand(0);
  }
  if (auto argument = dyn_cast<BlockArgument>(source)) {
    name.index = argument.getArgNumber();
  } else {
    name.id = idOf(source.getDefiningOp());
    name.index = cast<OpResult>(source).getResultNumber();
  }
  return name;
}

class MarkRecomputePass : public impl::MarkRecomputePassBase<MarkRecomputePass> {
 public:
  void runOnOperation() override {
    ModuleOp module = getOperation();
    const Decisions* decisions = recordOf(module);
    FailureOr<ModuleMeshes> meshes = stageMeshesOf(module);
    if (decisions == nullptr || failed(meshes)) {
      return signalPassFailure();
    }
    func::FuncOp step = stepFunction(module);
    ValueLayouts layouts(*std::move(meshes));
    if (failed(layouts.read(step))) {
      return signalPassFailure();
    }
    const Repeats repeats(*decisions);
    const GatherPolicies gathers(*decisions);
    for (Operation& op : step.getBody().front().without_terminator()) {
      op.removeAttr(kRecomputeAttr);
      if (runsAgain(&op, repeats, gathers, layouts)) {
        const bool isForward = placeOf(&op).where == RunsIn::kForward;
        op.setAttr(isForward ? kRecomputeAttr : kRecomputedAttr, UnitAttr::get(&getContext()));
      }
    }
    module->setAttr(kStateAttr, StringAttr::get(&getContext(), "annotated"));
  }

 private:
  static bool runsAgain(Operation* op, const Repeats& repeats, const GatherPolicies& gathers,
                        const ValueLayouts& layouts) {
    const auto isPartial = [&](Value value) { return partialOverTime(layouts.of(value)); };
    // A reshard that adds up what micro-batches make would count one twice.
    const bool partial = llvm::any_of(op->getResults(), isPartial) || (isMove(op) && isPartial(op->getOperand(0)));
    if (!isMove(op)) {
      return repeats.ofOperator(idOf(op), placeOf(op), partial);
    }
    Operation* source = op->getOperand(0).getDefiningOp();
    const bool isGatheredAgain = gathers.of(op->getOperand(0)) == GatherPolicy::kEachCall;
    const bool follows =
        isGatheredAgain || (source != nullptr && stageOf(source) == stageOf(op) && source->hasAttr(kRecomputeAttr));
    return repeats.ofMove(nameOf(op), placeOf(op), partial, follows);
  }
};

}  // namespace
}  // namespace weft
