#include "passes/gates/check_stages.h"

#include "ir/program/decision_attributes.h"
#include "ir/program/module_meshes.h"
#include "ir/program/program.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "planner/stage_table.h"

namespace weft {

using namespace mlir;  // NOLINT

namespace {

LogicalResult checkStage(Location place, Attribute attribute, int64_t count) {
  auto stage = dyn_cast_or_null<IntegerAttr>(attribute);
  if (stage && stage.getInt() >= count) {
    return emitError(place) << kStageAttr << " is " << stage.getInt() << ", but the module has stages 0 to "
                            << count - 1;
  }
  return success();
}

LogicalResult checkFunction(func::FuncOp function, int64_t count) {
  if (failed(checkStage(function.getLoc(), function->getAttr(kStageAttr), count))) {
    return failure();
  }
  for (unsigned i = 0; i < function.getNumArguments(); ++i) {
    if (failed(checkStage(function.getLoc(), function.getArgAttr(i, kStageAttr), count))) {
      return failure();
    }
  }
  for (unsigned i = 0; i < function.getNumResults(); ++i) {
    if (failed(checkStage(function.getLoc(), function.getResultAttr(i, kStageAttr), count))) {
      return failure();
    }
  }
  return success();
}

// All three, or none.
LogicalResult checkPresent(ModuleOp module) {
  const bool submeshes = module->hasAttr(kSubmeshesAttr);
  for (const char* name : {kScheduleAttr, kVirtualAttr}) {
    if (module->hasAttr(name) != submeshes) {
      return module.emitError() << (submeshes ? name : kSubmeshesAttr) << " is missing beside "
                                << (submeshes ? kSubmeshesAttr : name) << "; a module with pipeline stages has "
                                << kSubmeshesAttr << ", " << kScheduleAttr << " and " << kVirtualAttr;
    }
  }
  return success();
}

}  // namespace

LogicalResult checkStages(ModuleOp module) {
  if (failed(checkPresent(module))) {
    return failure();
  }
  const ScheduleDecision schedule = scheduleOf(module);
  // Without stages nothing depends on the mesh here.
  FailureOr<Mesh> mesh = schedule.submeshes.size() == 1 ? FailureOr<Mesh>(Mesh()) : meshOf(module);
  if (failed(mesh)) {
    return failure();
  }
  if (absl::Status status = checkSchedule(schedule, mesh->microBatches(), trains(module)); !status.ok()) {
    return module.emitError(std::string(status.message()));
  }
  const auto count = static_cast<int64_t>(schedule.submeshes.size());
  const WalkResult walked = module.walk([&](Operation* op) {
    auto function = dyn_cast<func::FuncOp>(op);
    const bool fits = function ? succeeded(checkFunction(function, count))
                               : succeeded(checkStage(op->getLoc(), op->getAttr(kStageAttr), count));
    return fits ? WalkResult::advance() : WalkResult::interrupt();
  });
  return failure(walked.wasInterrupted());
}

}  // namespace weft
