// The option schedule = "auto": the fastest schedule that fits in memory.
//
// Every kind that serves the program's stages, micro-batches and stages per rank, but gpipe, which takes as long as
// 1f1b in more memory, is predicted: its table is simulated with the stages' times on the machine, its memory is the
// model's. The shortest whose peak is within the limit is taken, ties go to the lower peak memory. With recompute =
// "auto" a kind that does not fit is tried with recomputation, unless it is longer without it already than the best so
// far. The record in the decisions lists all that were considered.
#pragma once

#include <functional>

#include "absl/status/statusor.h"
#include "planner/decisions.h"
#include "planner/derive/derive.h"
#include "planner/request.h"
#include "planner/search/choose_recompute.h"

namespace weft {

// A record under a kind of schedule, with its model.
struct ScheduledModel {
  Decisions record;
  StepModel* model = nullptr;
};

using ModelFor = std::function<absl::StatusOr<ScheduledModel>(const ScheduleChoice&)>;

// Within `limits`; `recompute`: may operators be recomputed to fit. Where none fits, the one with the
// least peak, which does not `fits`. Error: no kind serves the numbers (each with its reason).
// Recomputation that makes a step `useless` or longer is not looked for (fitIn).
absl::StatusOr<Attempt> chooseSchedule(const CompileOptions& request, const MemoryLimits& limits,
                                       recompute::KnownFronts& fronts, bool recompute, const ModelFor& modelFor,
                                       Picoseconds useless = kAnyTime);

}  // namespace weft
