// Exact least-cost assignment of a set of variables, by elimination.
//
// A variable takes one of a few values; a table gives a cost to each combination of the values of some variables; what
// is sought has the least sum over all tables. Variables are eliminated one after the other, that first whose tables
// together have the fewest combinations: they are added and minimized over it, which leaves a table over its neighbors
// (bucket elimination: Dechter, "Bucket elimination: a unifying framework for reasoning", 1999). What a program's
// layers pass on to each other is little, so the tables stay small however long the program is.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "planner/machine/picoseconds.h"

namespace weft {

// A combination that cannot be; sums with it cannot be either.
inline constexpr Picoseconds kImpossible = INT64_MAX / 4;

constexpr Picoseconds sumOfCosts(Picoseconds a, Picoseconds b) {
  return std::min(kImpossible, a + b);
}

// Costs of the combinations of `variables`, which are distinct; the last one's value changes fastest.
struct CostTable {
  std::vector<int> variables;
  std::vector<Picoseconds> costs;

  friend bool operator==(const CostTable&, const CostTable&) = default;
};

struct AssignmentProblem {
  std::vector<int> values;  // how many each variable has
  std::vector<CostTable> tables;

  friend bool operator==(const AssignmentProblem&, const AssignmentProblem&) = default;
};

struct Assignment {
  std::vector<int> values;
  bool exact = true;      // it is known to be the best of all
  bool searched = false;  // elimination would have kept variables
  Picoseconds cost = 0;   // of `values`
  Picoseconds bound = 0;  // no assignment costs less; of an elimination that kept variables: not known
};

Picoseconds costOf(const AssignmentProblem& problem, const std::vector<int>& values);

// How many entries exact elimination looks at; mostInAll + 1 where that are more, or more than `mostEach` of one
// variable. Of the tables only the variables count.
int64_t entriesToEliminate(const AssignmentProblem& problem, int64_t mostEach, int64_t mostInAll);

namespace internal {
class KnownTables;
}

// What was minimized before. A problem that is asked again with few of its costs changed is minimized only where they
// count; what is equal elsewhere, as equal layers of a program are, once. It changes no answer.
class EliminationMemo {
 public:
  EliminationMemo();
  ~EliminationMemo();

  // For one elimination: empty again where more is known than is worth its memory.
  internal::KnownTables& tables();

 private:
  static constexpr int64_t kMostKept = 1 << 24;  // entries of tables
  std::unique_ptr<internal::KnownTables> tables_;
};

// Of equal assignments that whose variables, in the reverse order of elimination, have the smaller values. Where a
// table would have more than `mostEntries`, the variable whose tables have the most, or the most neighbors, keeps value
// 0, and the answer is the best of those that have it; value 0 of all variables must be possible then.
Assignment eliminate(const AssignmentProblem& problem, int64_t mostEntries, EliminationMemo* memo = nullptr);

}  // namespace weft
