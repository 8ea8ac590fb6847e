#include "passes/stage/schedule_attributes.h"

#include "mlir/IR/Builders.h"
#include "passes/support/program.h"

namespace weft {

void setSchedule(mlir::ModuleOp module, const ScheduleDecision& schedule) {
  if (schedule.submeshes.size() < 2) {
    return;
  }
  mlir::Builder builder(module.getContext());
  module->setAttr(kSubmeshesAttr, builder.getDenseI64ArrayAttr(schedule.submeshes));
  module->setAttr("dist.schedule", builder.getStringAttr(schedule.kind));
  module->setAttr("dist.virtual", builder.getI64IntegerAttr(schedule.virtualStages));
  if (!schedule.table.empty()) {
    module->setAttr("dist.table", builder.getStringAttr(schedule.table));
  }
}

ScheduleDecision scheduleOf(mlir::ModuleOp module) {
  ScheduleDecision schedule;
  auto submeshes = module->getAttrOfType<mlir::DenseI64ArrayAttr>(kSubmeshesAttr);
  auto kind = module->getAttrOfType<mlir::StringAttr>("dist.schedule");
  auto virtualStages = module->getAttrOfType<mlir::IntegerAttr>("dist.virtual");
  if (submeshes && kind && virtualStages) {
    auto table = module->getAttrOfType<mlir::StringAttr>("dist.table");
    schedule = {kind.str(),
                virtualStages.getInt(),
                {submeshes.asArrayRef().begin(), submeshes.asArrayRef().end()},
                table ? table.str() : "",
                ""};
  }
  return schedule;
}

}  // namespace weft
