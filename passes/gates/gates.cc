// The passes around the checks.

#include "passes/gates/checks.h"
#include "passes/gates/passes.h"

namespace weft {
namespace {

using namespace mlir;  // NOLINT

using Check = LogicalResult (*)(ModuleOp);

class GatePass : public PassWrapper<GatePass, OperationPass<ModuleOp>> {
 public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(GatePass)
  GatePass(StringRef argument, StringRef description, Check check)
      : argument_(argument), description_(description), check_(check) {}

  StringRef getArgument() const override { return argument_; }
  StringRef getDescription() const override { return description_; }
  void runOnOperation() override {
    if (failed(check_(getOperation()))) {
      return signalPassFailure();
    }
    markAllAnalysesPreserved();
  }

 private:
  StringRef argument_;
  StringRef description_;
  Check check_;
};

}  // namespace

std::unique_ptr<Pass> createVerifyLogicalPass() {
  return std::make_unique<GatePass>("weft-verify-logical", "Check the logical state", checkLogical);
}

std::unique_ptr<Pass> createVerifyLaidOutPass() {
  return std::make_unique<GatePass>("weft-verify-laid-out", "Check that values have layouts, and the record fits",
                                    checkLaidOut);
}

std::unique_ptr<Pass> createVerifyAnnotatedPass() {
  return std::make_unique<GatePass>("weft-verify-annotated", "Check the annotated state", checkAnnotated);
}

std::unique_ptr<Pass> createVerifyCutPass() {
  return std::make_unique<GatePass>("weft-verify-cut", "Check functions of global shapes with layouts", checkCut);
}

std::unique_ptr<Pass> createVerifyLocalPass() {
  return std::make_unique<GatePass>("weft-verify-local", "Check the local state", checkLocal);
}

std::unique_ptr<Pass> createVerifyScheduledPass() {
  return std::make_unique<GatePass>("weft-verify-scheduled", "Check the scheduled state", checkScheduled);
}

}  // namespace weft
