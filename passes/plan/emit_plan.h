// The last phase: from the scheduled state to the plan file's contents.
#pragma once

#include "absl/status/statusor.h"
#include "mlir/IR/BuiltinOps.h"
#include "runtime/plan/plan.pb.h"

namespace weft {

// Numbers everything and writes it down; chooses nothing. The module has passed the gate of the scheduled state.
// Deterministic: the same module gives the same bytes. Errors: a constant whose elements are not in the module,
// reported on the op as well; a plan that is inconsistent.
absl::StatusOr<plan::Plan> emitPlan(mlir::ModuleOp module);

}  // namespace weft
