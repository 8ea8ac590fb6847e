// The last phase: from the scheduled state to the plan file's contents.
#pragma once

#include "absl/status/statusor.h"
#include "mlir/IR/BuiltinOps.h"
#include "runtime/plan/plan.pb.h"

namespace weft {

// Assigns memory, numbers everything and writes it down. Deterministic: the same module gives the same bytes. Errors
// are reported on the op as well.
absl::StatusOr<plan::Plan> emitPlan(mlir::ModuleOp module);

}  // namespace weft
