// The plan of a module whose memory is not planned yet.
#pragma once

#include "absl/status/statusor.h"
#include "mlir/IR/BuiltinOps.h"
#include "runtime/plan/plan.pb.h"

namespace weft::testing {

// Runs the phases behind form-buckets on a copy of the module, which is of the local state, and emits the plan.
absl::StatusOr<plan::Plan> planned(mlir::ModuleOp local);

}  // namespace weft::testing
