// The least-cost assignment of a set of variables: exact by elimination where its tables stay small, else near the
// least, with a bound.
#pragma once

#include <cstdint>
#include <vector>

#include "planner/assign/eliminate.h"

namespace weft {

// As eliminate() where no table has more than `mostEntries`. Elsewhere, where elimination would keep variables, all
// variables are open to a search within a budget of counted steps (solve.h): the answer is never worse than that of
// the elimination, and `bound` says how far from the best of all it can be. `known`: where elimination is known to keep
// variables, an assignment that takes the place of its answer; empty: nothing is known.
Assignment leastCost(const AssignmentProblem& problem, int64_t mostEntries, EliminationMemo* memo = nullptr,
                     const std::vector<int>& known = {});

}  // namespace weft
