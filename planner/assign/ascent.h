// Climbs: passes of a dual ascent, prices on the rows that its plans overflow, and its plans made into ones that fit.
#pragma once

#include <vector>

#include "planner/assign/dual_ascent.h"
#include "planner/assign/local_search.h"
#include "planner/assign/row_prices.h"

namespace weft::assign {

// The best plan that is known.
struct Incumbent {
  std::vector<int> values;  // empty: of another model, or none
  Cost cost = kForbidden;   // of `values`
  Cost upper = kForbidden;  // a better plan costs less than this

  // `unit`: differences of plans' costs are multiples of it.
  void improve(std::vector<int> plan, Cost planCost, Cost unit) {
    values = std::move(plan);
    cost = planCost;
    upper = planCost - unit + 1;
  }
  bool isKnown() const { return upper < kForbidden; }
};

class Ascent {
 public:
  // Begins with these prices; the references must outlive the object.
  Ascent(const Model& model, RowPrices prices, Cost unit, Ticks& ticks);

  // Makes a plan fit, and better one variable at a time; improves `best` where it is.
  void consider(std::vector<int> plan, Incumbent& best);
  // Up to so many passes there and back, until the bound hardly grows or so many ticks are used. Improves `best`.
  void climb(int rounds, int64_t ticks, Incumbent& best);
  // Where no plan was found that fits: prices until plans avoid the rows that overflow, if any can.
  void squeeze(Incumbent& best);
  // Goes back to the prices of the best bound.
  void settle();

  // The best one so far: no plan that fits costs less.
  Cost bound() const { return bound_; }
  const DualAscent& dual() const { return dual_; }
  const RowPrices& prices() const { return prices_.best(); }

 private:
  void reprice(const std::vector<int>& plan, const Incumbent& best);

  const Model& model_;
  Cost unit_;
  Ticks& ticks_;
  DualAscent dual_;
  LocalSearch search_;
  PriceAscent prices_;
  Cost bound_ = -kForbidden;
};

}  // namespace weft::assign
