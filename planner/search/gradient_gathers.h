// Gathers of the backward pass that run a second time, for the gradients of weights.
//
// Where a schedule runs these apart from the gradients of activations, what both read is kept from one to the other:
//
//   y = x w, w split along k over tp      dx = dy w^T and dw = x^T dy read dy whole, of which each rank made a part
//
// Of a pipeline that holds many micro-batches between the two that is much memory, for which other operators would have
// to be recomputed. To gather dy again takes one collective, and only the part is kept.
#pragma once

#include <optional>

#include "absl/status/statusor.h"
#include "planner/cost/step_model.h"
#include "planner/decisions.h"
#include "planner/search/choose_recompute.h"

namespace weft {

// A record of the model in which all such gathers run again; nothing where there are none, or nothing runs apart.
absl::StatusOr<std::optional<Decisions>> withGathersAgain(const Decisions& record, StepModel& model);

// `base` (asItIs), or its record with gathers that run again where `base` does not fit and they are expected to make
// the step within the limits shorter.
absl::StatusOr<Attempt> gatheringAgainIn(const MemoryLimits& limits, Attempt base, StepModel& model);

}  // namespace weft
