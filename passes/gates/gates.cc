// The passes around the checks.

#include "passes/gates/checks.h"

namespace weft {

using namespace mlir;  // NOLINT

#define GEN_PASS_DEF_VERIFYLOGICALPASS
#define GEN_PASS_DEF_VERIFYLAIDOUTPASS
#define GEN_PASS_DEF_VERIFYANNOTATEDPASS
#define GEN_PASS_DEF_VERIFYCUTPASS
#define GEN_PASS_DEF_VERIFYLOCALPASS
#define GEN_PASS_DEF_VERIFYORDEREDPASS
#define GEN_PASS_DEF_VERIFYSTOREDPASS
#define GEN_PASS_DEF_VERIFYSCHEDULEDPASS
#include "passes/generated/passes.h.inc"

namespace {

// A pass that checks and changes nothing.
template <template <typename> class Base, LogicalResult (*check)(ModuleOp)>
class Gate : public Base<Gate<Base, check>> {
 public:
  void runOnOperation() override {
    if (failed(check(this->getOperation()))) {
      return this->signalPassFailure();
    }
    this->markAllAnalysesPreserved();
  }
};

template class Gate<impl::VerifyLogicalPassBase, checkLogical>;
template class Gate<impl::VerifyLaidOutPassBase, checkLaidOut>;
template class Gate<impl::VerifyAnnotatedPassBase, checkAnnotated>;
template class Gate<impl::VerifyCutPassBase, checkCut>;
template class Gate<impl::VerifyLocalPassBase, checkLocal>;
template class Gate<impl::VerifyOrderedPassBase, checkOrdered>;
template class Gate<impl::VerifyStoredPassBase, checkStored>;
template class Gate<impl::VerifyScheduledPassBase, checkScheduled>;

}  // namespace
}  // namespace weft
