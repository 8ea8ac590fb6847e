// The option schedule = "auto": the fastest schedule that fits in memory.
//
// Every kind that serves the program's stages, micro-batches and stages per rank is compiled; its table is simulated
// with the stages' times on the machine, its memory is the plan's own. The shortest whose peak is within the limit is
// taken, of equally long ones the smallest. With recompute = "auto" a kind that does not fit is tried with
// recomputation, unless it is longer without it already than the best so far. The record in the decisions lists all
// that were considered.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "mlir/IR/BuiltinOps.h"
#include "passes/choose/choose_recompute.h"
#include "runtime/plan/plan.pb.h"

namespace weft {

// Compiles copies of `module` and writes the best candidate into the module's options. `memoryLimit`: bytes per rank,
// 0 = none; `recompute`: may operators be computed again to fit. Returns the decisions record to realise, "" where the
// options say it all. Errors: no kind serves the numbers (each with its reason); none fits (with the least that any
// needs).
absl::StatusOr<std::string> chooseSchedule(mlir::ModuleOp module, int64_t memoryLimit, bool recompute,
                                           const CompilerHalves& halves);

}  // namespace weft
