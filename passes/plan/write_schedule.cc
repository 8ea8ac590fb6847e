// The schedule of each submesh as the calls of its ranks, and the room that its channels need under it.

#include "ir/dist/dist.h"
#include "ir/program/decision_attributes.h"
#include "ir/program/program.h"
#include "ir/program/schedule_attributes.h"
#include "passes/plan/step_program.h"
#include "planner/stage_table.h"
#include "planner/step/step_calls.h"

namespace weft {

#define GEN_PASS_DEF_WRITESCHEDULEPASS
#include "passes/generated/passes.h.inc"

namespace {

using namespace mlir;  // NOLINT: the file is about MLIR operations throughout

// How many messages may be under way between a send or a receive of this submesh and its other end.
template <typename Transfer>
void setCapacities(func::FuncOp function, const ScheduleDecision& schedule, const std::vector<int64_t>& inFlight,
                   int64_t submesh) {
  for (auto transfer : function.getOps<Transfer>()) {
    const int64_t other = static_cast<int64_t>(transfer.getSubmesh());
    transfer.setCapacity(channelCapacity(functionKind(function), {schedule.submeshes, inFlight, submesh, other}));
  }
}

class WriteSchedulePass : public impl::WriteSchedulePassBase<WriteSchedulePass> {
 public:
  void runOnOperation() override {
    ModuleOp module = getOperation();
    FailureOr<Mesh> mesh = meshOf(module);
    if (failed(mesh)) {
      return signalPassFailure();
    }
    const ScheduleDecision schedule = scheduleOf(module);
    const bool backward = trains(module);
    const absl::StatusOr<schedule::Table> table = stageTable(schedule, mesh->microBatches(), backward);
    if (!table.ok()) {
      module.emitError(std::string(table.status().message()));
      return signalPassFailure();
    }
    std::vector<int64_t> inFlight = inFlightOf(*table);
    if (!backward) {
      inFlight.assign(inFlight.size(), 1);
    }
    const std::vector<SubmeshStep> steps = stepsOf(module);
    for (const auto& [i, submesh] : llvm::enumerate(submeshesOf(module))) {
      const std::vector<StepFunction>& functions = steps[i].program.functions;
      setCalls(submesh, {initCallsOf(functions), callsOf(functions, table->orders[i])});
      for (func::FuncOp function : steps[i].functions) {
        setCapacities<ir::dist::SendOp>(function, schedule, inFlight, static_cast<int64_t>(i));
        setCapacities<ir::dist::ReceiveOp>(function, schedule, inFlight, static_cast<int64_t>(i));
      }
    }
  }
};

}  // namespace
}  // namespace weft
