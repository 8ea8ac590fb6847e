// The option recompute = "auto": what the backward pass recomputes, so that the step fits in memory in the least time.
//
//   1. Without recomputation the model says what each submesh needs. If that fits the limit, stop.
//   2. The stages' forward passes are cut into intervals; of each class of equal ones all sensible choices are known
//      (planner/recompute/).
//   3. For each submesh a knapsack: the least extra time within a budget of kept bytes. A byte kept of one micro-batch
//      costs as many bytes as its stage has micro-batches in flight (slots); stages of one submesh differ in that.
//   4. The model says what the choice needs; the budget is corrected by what that is above or below the limit, until it
//      fits and nothing cheaper does, or kRounds choices are tried. Where none fits, and no plan is known or the
//      program is tiny (kOperatorsOfTiny), budgets over the whole range are tried.
//   5. Beside it the fewest whole intervals that fit; the shorter of the two is taken.
//   6. In a tiny program single operators are kept after all where it fits without their recomputation, too: a few, the
//      longest first.
// Submeshes do not share memory, and no step is shortened by a longer stage: each is solved by itself, all are asked
// for at once.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "planner/cost/step_model.h"
#include "planner/decisions.h"
#include "planner/memory_limits.h"
#include "planner/recompute/pareto.h"

namespace weft {

// A record, as far as choosing between records goes.
struct Attempt {
  Decisions decisions;
  int64_t peakBytes = 0;  // of the rank that needs most
  Picoseconds time = 0;   // of the step
  bool fits = false;
  std::vector<SubmeshNeeds> submeshes = {};
  std::vector<Picoseconds> stageTimes = {};  // of each stage, of one micro-batch
  Picoseconds fastest = 0;                   // of all schedules that were considered, whether they fit or not
};

// Of two attempts the better: one that fits, of those the shorter, ties by memory; of others that with the lower peak.
bool isBetter(const Attempt& a, const Attempt& b);

// No time is too long, and where nothing fits the least peak is looked for.
inline constexpr Picoseconds kAnyTime = INT64_MAX;
// No time is too long, but nothing more is tried of what does not fit as it is expected to.
inline constexpr Picoseconds kAnyThatFits = kAnyTime - 1;

// What the model expects of a record, within the limits of its ranks.
absl::StatusOr<Attempt> asItIs(const MemoryLimits& limits, const Decisions& record, StepModel& model);

// What may be recomputed of a record, prepared: it may be asked more than once. `limits` and the model outlive it.
class Recomputation {
 public:
  // `base`: asItIs, of a record that is the model's with any schedule on the same submeshes.
  static absl::StatusOr<std::unique_ptr<Recomputation>> of(const MemoryLimits& limits, Attempt base, StepModel& model,
                                                           recompute::KnownFronts& fronts);
  virtual ~Recomputation() = default;

  virtual const Attempt& base() const = 0;
  // What a step may be expected to take with the recomputation that it needs within the limits, without asking the
  // model: kAnyTime where it cannot fit.
  virtual Picoseconds expected() const = 0;
  // The shortest step that fits; where none does, that with the least peak of all tried, the base among them. Looks no
  // further where that takes `useless` or longer, and gives then what does not fit.
  virtual absl::StatusOr<Attempt> run(Picoseconds useless) const = 0;
};

}  // namespace weft
