// The budget of kept bytes of one submesh, of all micro-batches in flight, narrowed by what candidates were predicted
// to need.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "planner/cost/step_model.h"
#include "planner/recompute/knapsack.h"

namespace weft {

class BudgetSearch {
 public:
  // `little`: a choice that takes no more than this longer than another is as good.
  BudgetSearch(std::shared_ptr<const recompute::Knapsack> knapsack, Picoseconds little)
      : knapsack_(std::move(knapsack)), little_(little), high_(knapsack_->most()) {}

  // To begin with: the plan without recomputation.
  void start(const SubmeshNeeds& base, int64_t limit) {
    least_ = lastPeak_ = base.peakBytes;
    done_ = fits_ = base.peakBytes <= limit;
    if (!done_) {
      aim(high_ - (base.peakBytes - limit));
    }
  }

  // No choice makes the peak lower than this.
  int64_t leastPeak(const SubmeshNeeds& base) const {
    return base.peakBytes - (knapsack_->most() - knapsack_->least());
  }

  bool done() const { return done_; }
  bool fits() const { return fits_; }
  int64_t least() const { return least_; }
  // The selection to try next; once the search is done, the best that fits. nullopt: nothing is recomputed.
  const std::optional<recompute::Selection>& selection() const { return done_ ? best_ : next_; }

  void learn(const SubmeshNeeds& needs, int64_t limit) {
    least_ = std::min(least_, needs.peakBytes);
    if (done_) {
      return;
    }
    if (needs.peakBytes <= limit) {
      fits_ = true;
      best_ = next_;
      low_ = next_->bytes;
      aim(low_ + limit - needs.peakBytes);
    } else {
      high_ = next_->bytes;
      // What runs again needs memory too: as little may hardly be less, or no less at all.
      stride_ *= needs.peakBytes < lastPeak_ ? 1 : 8;
      lastPeak_ = needs.peakBytes;
      aim(high_ - (needs.peakBytes - limit) * stride_);
      stride_ *= 2;
    }
  }

  void finish() { done_ = true; }

  // After failure: any choice between, as what runs again needs memory too.
  void sweep(int part, int parts) {
    next_ = knapsack_->solve(knapsack_->least() + (knapsack_->most() - knapsack_->least()) * part / parts);
    done_ = false;
  }
  void learnSwept(const SubmeshNeeds& needs, int64_t limit) {
    least_ = std::min(least_, needs.peakBytes);
    if (needs.peakBytes <= limit && (!fits_ || next_->time < best_->time)) {
      fits_ = true;
      best_ = next_;
    }
    done_ = true;
  }

 private:
  // Next comes the best within `budget`, kept between what is known to fit and known not to.
  void aim(int64_t budget) {
    const bool between = budget > low_ && budget < high_;
    budget = between ? budget : low_ < 0 ? knapsack_->least() : low_ + (high_ - low_) / 2;
    next_ = knapsack_->solve(std::min(std::max(budget, knapsack_->least()), high_ - 1));
    const bool known = !next_ || next_->bytes <= low_ || next_->bytes >= high_;
    done_ = known || (fits_ && next_->time + little_ >= best_->time);
  }

  std::shared_ptr<const recompute::Knapsack> knapsack_;
  Picoseconds little_;
  int64_t low_ = -1;  // kept bytes that fit
  int64_t high_;      // kept bytes that do not
  std::optional<recompute::Selection> next_;
  std::optional<recompute::Selection> best_;
  int64_t least_ = 0;
  int64_t stride_ = 1;
  int64_t lastPeak_ = 0;
  bool fits_ = false;
  bool done_ = false;
};

}  // namespace weft
