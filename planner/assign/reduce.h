// Makes a model smaller without losing its best plans: what is left may be solved instead.
//
//   const Reduced reduced = reduce(model, {}, ticks);
//   std::vector<int> values = reduced.expand(solutionOf(reduced.model));   // costs reduced.constant more
//
// - Values that no plan can take go: forbidden ones, those that every value of a neighbor forbids.
// - A variable with one value left becomes part of its neighbors' costs.
// - A table that is the sum of a cost for its row and one for its column becomes part of the two variables' costs.
// - A follower, a variable whose value another one's value leaves no choice, becomes part of that one. Of graphs from
//   compilers nine operators in ten are followers (element-wise operators lie as their operands do).
// - A variable with one or two neighbors that takes no memory is minimized out: a table between its neighbors remains.
// - A value that another one of the variable can stand in for, at no more cost whatever the neighbors take and with no
//   more memory in any row, goes.
#pragma once

#include <vector>

#include "planner/assign/model.h"

namespace weft::assign {

// Which of them; tests switch them off.
struct Reductions {
  bool oneValue = true;
  bool sums = true;
  bool followers = true;
  bool oneNeighbor = true;
  bool twoNeighbors = true;
  bool dominated = true;
};

// How a variable that is gone follows from those that are left.
struct Gone {
  int variable = 0;
  std::vector<int> neighbors;  // at most two
  std::vector<int> value;      // for each combination of the neighbors' values, the last one's fastest
};

struct Reduced {
  bool possible = true;  // false: no plan costs less than kForbidden and fits
  Model model;
  Cost constant = 0;

  // Of the model that was reduced.
  std::vector<int> expand(const std::vector<int>& values) const;
  // The other way; where a value has gone the first that is left stands in for it.
  std::vector<int> project(const std::vector<int>& values) const;

  std::vector<int> sizes;                // numbers of values of the variables of the model that was reduced
  std::vector<int> variables;            // that are left, as numbers of that model
  std::vector<std::vector<int>> values;  // of each of these: which of its values are left
  std::vector<Gone> gone;                // in the order in which they went
};

Reduced reduce(Model model, const Reductions& reductions, Ticks& ticks);

}  // namespace weft::assign
