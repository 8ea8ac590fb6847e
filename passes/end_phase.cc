#include "ir/program/program.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace weft {

using namespace mlir;  // NOLINT

#define GEN_PASS_DECL_ENDPHASEPASS  // its options
#define GEN_PASS_DEF_ENDPHASEPASS
#include "passes/generated/passes.h.inc"

namespace {

class EndPhasePass : public impl::EndPhasePassBase<EndPhasePass> {
 public:
  using Base::Base;

  void runOnOperation() override {
    if (phase.empty()) {
      getOperation().emitError("no phase to note; write --weft-end-phase=phase=NAME");
      return signalPassFailure();
    }
    getOperation()->setAttr(kPhaseDoneAttr, StringAttr::get(&getContext(), phase));
    markAllAnalysesPreserved();  // which read the program and its record
  }
};

}  // namespace
}  // namespace weft
