#include "ir/program/decision_attributes.h"

#include "ir/dist/dist.h"
#include "ir/program/program.h"
#include "mlir/IR/Builders.h"

namespace weft {

void setSchedule(mlir::ModuleOp module, const ScheduleDecision& schedule) {
  if (schedule.submeshes.size() < 2) {
    return;
  }
  mlir::Builder builder(module.getContext());
  module->setAttr(kSubmeshesAttr, builder.getDenseI64ArrayAttr(schedule.submeshes));
  module->setAttr(kScheduleAttr, builder.getStringAttr(schedule.kind));
  module->setAttr(kVirtualAttr, builder.getI64IntegerAttr(schedule.virtualStages));
  if (!schedule.table.empty()) {
    module->setAttr(kTableAttr, builder.getStringAttr(schedule.table));
  }
}

ScheduleDecision scheduleOf(mlir::ModuleOp module) {
  ScheduleDecision schedule;
  auto submeshes = module->getAttrOfType<mlir::DenseI64ArrayAttr>(kSubmeshesAttr);
  auto kind = module->getAttrOfType<mlir::StringAttr>(kScheduleAttr);
  auto virtualStages = module->getAttrOfType<mlir::IntegerAttr>(kVirtualAttr);
  if (submeshes && kind && virtualStages) {
    auto table = module->getAttrOfType<mlir::StringAttr>(kTableAttr);
    schedule = {kind.str(),
                virtualStages.getInt(),
                {submeshes.asArrayRef().begin(), submeshes.asArrayRef().end()},
                table ? table.str() : "",
                ""};
  }
  return schedule;
}

const Decisions* decisionsOf(mlir::ModuleOp module) {
  auto attr = module->getAttrOfType<ir::dist::DecisionsAttr>(kDecisionsAttr);
  return attr ? &attr.getRecord().decisions() : nullptr;
}

void setDecisions(mlir::ModuleOp module, Decisions decisions) {
  module->setAttr(kDecisionsAttr,
                  ir::dist::DecisionsAttr::get(module.getContext(), ir::dist::DecisionsRecord(std::move(decisions))));
}

}  // namespace weft
