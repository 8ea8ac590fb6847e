// Gathers of the backward pass that run a second time, for the gradients of weights.
//
// Where a schedule runs these apart from the gradients of activations, what both read is kept from one to the other:
//
//   y = x w, w split along k over tp      dx = dy w^T and dw = x^T dy read dy whole, of which each rank made a part
//
// Of a pipeline that holds many micro-batches between the two that is much memory, for which other operators would have
// to be recomputed. To gather dy again takes one collective, and only the part is kept.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "planner/cost/step_model.h"
#include "planner/decisions.h"
#include "planner/search/choose_recompute.h"

namespace weft {

// A record of the model in which all such gathers run again; nothing where there are none, or nothing runs apart.
absl::StatusOr<std::optional<Decisions>> withGathersAgain(const Decisions& record, StepModel& model);

// What recomputation may begin with: `base` (asItIs) and, where that does not fit and something is gathered, its record
// with gathers that run again. That first with which the step is expected to be shorter within the limits, or what
// fits. The limits and the model outlive what is made.
class RecomputeStarts {
 public:
  static absl::StatusOr<RecomputeStarts> of(const MemoryLimits& limits, Attempt base, StepModel& model,
                                            recompute::KnownFronts& fronts);

  const Attempt& first() const { return starts_.front()->base(); }
  Picoseconds expected() const { return expectedOf(*starts_.front()); }
  // The best of these with the recomputation that it needs: of the first, and of the other where the first takes longer
  // than that is expected to. What runs again and lies from one half of a backward pass to the other is not expected,
  // so the first may turn out to be much longer. `useless` as Recomputation::run.
  absl::StatusOr<Attempt> run(Picoseconds useless) const;

 private:
  static Picoseconds expectedOf(const Recomputation& start) {
    return start.base().fits ? start.base().time : start.expected();
  }

  std::vector<std::unique_ptr<Recomputation>> starts_;
};

}  // namespace weft
