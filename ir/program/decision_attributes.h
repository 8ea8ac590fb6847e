// The decisions as attributes of a module.
#pragma once

#include "mlir/IR/BuiltinOps.h"
#include "planner/decisions.h"

namespace weft {

// Without these attributes everything is one stage.
void setSchedule(mlir::ModuleOp module, const ScheduleDecision& schedule);
ScheduleDecision scheduleOf(mlir::ModuleOp module);

// The decisions record of a module; null before the phase `decide`.
const Decisions* decisionsOf(mlir::ModuleOp module);
void setDecisions(mlir::ModuleOp module, Decisions decisions);

}  // namespace weft
