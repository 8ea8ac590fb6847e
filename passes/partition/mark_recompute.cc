// Marks the operators and reshards whose results the backward pass computes again, as the decisions say. It is the last
// step to the annotated state: reshards and masks have their marks too.

#include "ir/program/program.h"
#include "mlir/IR/Builders.h"
#include "passes/partition/passes.h"
#include "passes/partition/readers.h"
#include "passes/partition/recompute.h"
#include "passes/partition/record.h"

namespace weft {
namespace {

using namespace mlir;  // NOLINT

class MarkRecomputePass : public PassWrapper<MarkRecomputePass, OperationPass<ModuleOp>> {
 public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(MarkRecomputePass)
  StringRef getArgument() const override { return "weft-mark-recompute"; }
  StringRef getDescription() const override { return "Mark what the backward pass computes again"; }

  void runOnOperation() override {
    ModuleOp module = getOperation();
    const Decisions* decisions = getAnalysis<RecordAnalysis>().get();
    if (decisions == nullptr) {
      return signalPassFailure();
    }
    markRecomputed(stepFunction(module), *decisions);
    module->setAttr(kStateAttr, StringAttr::get(&getContext(), "annotated"));
  }
};

}  // namespace

std::unique_ptr<Pass> createMarkRecomputePass() {
  return std::make_unique<MarkRecomputePass>();
}

}  // namespace weft
