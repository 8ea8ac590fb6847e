// Writes down the places of storages and mailboxes and the regions that they lie in, as planStepMemory() finds them.
// The scheduled state is complete.

#include "ir/program/program.h"
#include "ir/program/schedule_attributes.h"
#include "passes/plan/step_program.h"

namespace weft {

#define GEN_PASS_DEF_PLANMEMORYPASS
#include "passes/generated/passes.h.inc"

namespace {

using namespace mlir;  // NOLINT

// Of the packer: a tenth of a second each for activations and transients, at most.
constexpr int64_t kPlanEffort = 40'000'000;

class PlanMemoryPass : public impl::PlanMemoryPassBase<PlanMemoryPass> {
 public:
  void runOnOperation() override {
    ModuleOp module = getOperation();
    const std::vector<SubmeshStep> steps = stepsOf(module);
    for (const auto& [i, submesh] : llvm::enumerate(submeshesOf(module))) {
      const StorageAssignment assignment = assignmentOf(submesh, steps[i]);
      setMemory(submesh, planStepMemory(steps[i].program, assignment, callsOf(submesh).step, kPlanEffort));
    }
    module->setAttr(kStateAttr, StringAttr::get(&getContext(), "scheduled"));
  }
};

}  // namespace
}  // namespace weft
