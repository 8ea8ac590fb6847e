// Marks the operators and reshards whose results the backward pass computes again, as the decisions say. It is the last
// step to the annotated state: reshards and masks have their marks too.

#include "ir/program/program.h"
#include "mlir/IR/Builders.h"
#include "passes/partition/readers.h"
#include "passes/partition/recompute.h"
#include "passes/partition/record.h"

namespace weft {

#define GEN_PASS_DEF_MARKRECOMPUTEPASS
#include "passes/generated/passes.h.inc"

namespace {

using namespace mlir;  // NOLINT

class MarkRecomputePass : public impl::MarkRecomputePassBase<MarkRecomputePass> {
 public:
  void runOnOperation() override {
    ModuleOp module = getOperation();
    const Decisions* decisions = recordOf(getOperation());
    if (decisions == nullptr) {
      return signalPassFailure();
    }
    markRecomputed(stepFunction(module), *decisions);
    module->setAttr(kStateAttr, StringAttr::get(&getContext(), "annotated"));
  }
};

}  // namespace
}  // namespace weft
