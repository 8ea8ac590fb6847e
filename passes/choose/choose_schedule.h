// The option schedule = "auto": the fastest schedule that fits in memory.
//
// Every kind that serves the program's stages, micro-batches and stages per rank is compiled; its table is simulated
// with the stages' times on the machine, its memory is the plan's own. The shortest whose peak is within the limit is
// taken, ties go to the lower peak memory. With recompute = "auto" a kind that does not fit is tried with
// recomputation, unless it is longer without it already than the best so far. The record in the decisions lists all
// that were considered.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "mlir/IR/BuiltinOps.h"
#include "passes/choose/choose_recompute.h"
#include "passes/decide/passes.h"
#include "planner/request.h"

namespace weft {

struct ScheduleSearchResult {
  ScheduleChoice schedule;
  std::optional<Decisions> decisions;  // a record to realize; none where the request says all else
};

// The compiler's two halves under a schedule.
using HalvesFor = std::function<CompilerHalves(const ScheduleChoice&)>;

// Compiles copies of `module`, which has stages, within `request.memoryLimit`; `recompute`: may operators be recomputed
// to fit. Errors: no kind serves the numbers (each with its reason); none fits (with the least that any needs).
absl::StatusOr<ScheduleSearchResult> chooseSchedule(mlir::ModuleOp module, const CompileOptions& request,
                                                    bool recompute, const HalvesFor& halvesFor);

}  // namespace weft
