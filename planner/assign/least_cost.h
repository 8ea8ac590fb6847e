// The least-cost assignment of a set of variables: exact by elimination where its tables stay small, else near the
// least, with a bound.
#pragma once

#include <cstdint>
#include <vector>

#include "planner/assign/eliminate.h"

namespace weft {

// An assignment that is known before.
struct KnownAssignment {
  std::vector<int> values = {};  // empty: none
  bool isElimination = false;    // elimination is known to keep variables, and this takes the place of its answer
};

// As eliminate() where no table has more than `mostEntries`. Elsewhere, where elimination would keep variables, all
// variables are open to a search within a budget of counted steps (solve.h): the answer is never worse than that of
// the elimination and than what is known, and `bound` says how far from the best of all it can be.
Assignment leastCost(const AssignmentProblem& problem, int64_t mostEntries, EliminationMemo* memo = nullptr,
                     const KnownAssignment& known = {});

}  // namespace weft
