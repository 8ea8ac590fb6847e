#include "passes/stage/schedule_attributes.h"

#include "mlir/IR/Builders.h"
#include "passes/support/program.h"

namespace weft {

void setSchedule(mlir::ModuleOp module, const ScheduleDecision& schedule) {
  if (schedule.blocks.size() < 2) {
    return;
  }
  mlir::Builder builder(module.getContext());
  module->setAttr(kBlocksAttr, builder.getDenseI64ArrayAttr(schedule.blocks));
  module->setAttr("dist.schedule", builder.getStringAttr(schedule.kind));
  module->setAttr("dist.virtual", builder.getI64IntegerAttr(schedule.virtualStages));
  if (!schedule.table.empty()) {
    module->setAttr("dist.table", builder.getStringAttr(schedule.table));
  }
}

ScheduleDecision scheduleOf(mlir::ModuleOp module) {
  ScheduleDecision schedule;
  auto blocks = module->getAttrOfType<mlir::DenseI64ArrayAttr>(kBlocksAttr);
  auto kind = module->getAttrOfType<mlir::StringAttr>("dist.schedule");
  auto virtualStages = module->getAttrOfType<mlir::IntegerAttr>("dist.virtual");
  if (blocks && kind && virtualStages) {
    auto table = module->getAttrOfType<mlir::StringAttr>("dist.table");
    schedule = {kind.str(),
                virtualStages.getInt(),
                {blocks.asArrayRef().begin(), blocks.asArrayRef().end()},
                table ? table.str() : "",
                ""};
  }
  return schedule;
}

}  // namespace weft
