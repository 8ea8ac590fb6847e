// Splits of other factors over the axes of the batch: an operator on weights alone has no batch, and one with few rows
// may have more of something else. Predictions with such splits take longer, so they are asked of few of the best
// plans.
#pragma once

#include <vector>

#include "planner/search/choose_open.h"
#include "planner/search/finalists.h"
#include "planner/search/plan_predictions.h"

namespace weft {

// The best of `plan`, which the first of the finalists came to, of the same on near meshes, and of other finalists that
// are hardly worse, each with the batch's axes free and as it is. Its record notes what was gained. Where `request` may
// not (Freedom::kBatchAxes), the plan.
ClosedRequest withBatchAxesFree(ClosedRequest plan, const std::vector<Finalist>& finalists,
                                const CompileOptions& request, PlanPredictions& plans);

}  // namespace weft
