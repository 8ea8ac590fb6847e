// Which plans the bound of a request is for.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "planner/cost/bound.h"
#include "planner/cost/step_model.h"
#include "planner/request.h"
#include "planner/search/choose_open.h"

namespace weft {

// All that `request` could have become: in mode kAuto as many submeshes and micro-batches as it leaves open, else those
// that it has in what was chosen for it, `closed`. Its memory limit counts where that fits: where nothing was found
// that does, the bound is of plans that do not either. `program`: as the user wrote it. Error: stages that cannot be.
absl::StatusOr<BoundedPlans> boundedPlans(const std::shared_ptr<const ProgramGraph>& program,
                                          const CompileOptions& request, const ClosedRequest& closed,
                                          const Correction& correction);

}  // namespace weft
