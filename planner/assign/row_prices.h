// Prices on memory rows, raised where plans overflow and lowered where they leave room, so that the bound grows
// (subgradient ascent with the step of Polyak, "Minimization of unsmooth functionals", 1969).
#pragma once

#include <vector>

#include "planner/assign/dual_ascent.h"

namespace weft::assign {

class PriceAscent {
 public:
  // Begins with these prices.
  explicit PriceAscent(RowPrices prices);

  const RowPrices& prices() const { return prices_; }
  // Of the greatest bound that learn() was told of.
  const RowPrices& best() const { return best_; }

  // `excess`: of each row under the plan that the prices led to; `bound`: with these prices; `target`: what the bound
  // may reach at most. Only rows that some plan overflowed most among their neighbors get a price: few of many bind.
  void learn(const std::vector<int64_t>& excess, Cost bound, Cost target);
  // Has the step become so small that nothing moves any more?
  bool settled() const;

  // Raises the prices of the rows that overflow, more each time, until any plan avoids them that can.
  void squeeze(const std::vector<int64_t>& excess);

 private:
  void activatePeaks(const std::vector<int64_t>& excess);
  void setPrice(size_t row, double price);

  RowPrices prices_;
  RowPrices best_;
  std::vector<char> active_;
  Cost bestBound_ = -kForbidden;
  double step_ = 1;
  int failures_ = 0;  // updates since the bound grew
};

}  // namespace weft::assign
