// The best plan of a model that can be found within a budget, and a bound on all plans.
//
// 1. The model is reduced (reduce.h); without memory rows its parts that no edge joins are solved apart.
// 2. What remains narrow and without memory is solved exactly, by elimination (eliminate.h).
// 3. Elsewhere a dual ascent (dual_ascent.h) bounds all plans, with prices on the memory rows that plans overflow, and
//    suggests plans, which are changed until they fit and then while they get cheaper (local_search.h). So is a plan
//    that is known before.
// 4. Values that cost more beyond the bound than the best plan are dropped, which lets reductions take more: again
//    from 1, with the costs where the ascent has passed them to.
// 5. What is left is searched to the end as far as the budget lasts (branch_and_bound.h).
//
//   const Solution solution = solve(model, {});
//   if (solution.isPossible()) use(solution.values);
#pragma once

#include <vector>

#include "planner/assign/model.h"
#include "planner/assign/reduce.h"

namespace weft::assign {

struct SolveOptions {
  int64_t ticks = int64_t{3} * 1000 * 1000 * 1000;  // entries of tables to look at: some nanoseconds each
  Cost unit = 1;                                    // differences of plans' costs are multiples of it
  Cost upper = kForbidden;                          // only plans that cost less are asked for
  std::vector<int> start = {};                      // a plan to make better; empty: none is known
  Reductions reductions;
  bool eliminates = true;  // tests switch it off
};

struct Solution {
  std::vector<int> values;   // empty: no plan was found
  Cost cost = kForbidden;    // of them
  Cost bound = -kForbidden;  // no plan costs less; kForbidden: there is none
  int64_t ticks = 0;

  bool isPossible() const { return cost < kForbidden; }
  bool isProvenImpossible() const { return bound >= kForbidden; }
};

Solution solve(const Model& model, const SolveOptions& options);

}  // namespace weft::assign
