// The option schedule = "auto": the fastest schedule that fits in memory.
//
// Every kind that serves the program's stages, micro-batches and stages per rank is compiled; its table is simulated
// with the stages' times on the machine, its memory is the plan's own. The shortest whose peak is within the limit is
// taken, of equally long ones the smallest. The record in the decisions lists all that were considered.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "mlir/IR/BuiltinOps.h"
#include "passes/stage/step_time.h"
#include "runtime/plan/plan.pb.h"

namespace weft {

// Compiles copies of `module` with `compile` and writes the best candidate into the module's options. `memoryLimit`:
// bytes per rank, 0 = none. Errors: no kind serves the numbers (each with its reason); none fits (with the least that
// any needs).
absl::Status chooseSchedule(mlir::ModuleOp module, int64_t memoryLimit,
                            const std::function<absl::StatusOr<plan::Plan>(mlir::ModuleOp)>& compile);

}  // namespace weft
