// The schedule's decision as attributes of a module.
#pragma once

#include "mlir/IR/BuiltinOps.h"
#include "planner/decisions.h"

namespace weft {

// Without these attributes everything is one stage.
void setSchedule(mlir::ModuleOp module, const ScheduleDecision& schedule);
ScheduleDecision scheduleOf(mlir::ModuleOp module);

}  // namespace weft
