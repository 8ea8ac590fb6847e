// Whether two records decide the same about one program, and where they do not.
//
// What is for people (labels, origins, notes, what was considered), prices and predictions do not count. An entry for a
// reshard counts where it says something else than what holds without it (planner/decisions.h).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "planner/decisions.h"

namespace weft {

struct DecisionDifferences {
  std::vector<std::string> whole;     // of the plan as a whole: "zero: 1 against 0"
  std::vector<int64_t> expansions;    // operators that one record alone expands
  std::vector<int64_t> operators;     // that differ in axes, stage, or whether they run again; by number
  std::vector<unsigned> arguments;    // that differ in layout, stage or gather
  std::vector<std::string> reshards;  // that differ in whether they run again

  bool none() const;
};

// Operators that one record alone has are none of `operators`: expansions and `whole` tell of them.
DecisionDifferences differencesOf(const Decisions& a, const Decisions& b);

// The first of them in words, what a says against what b says.
std::vector<std::string> textsOf(const DecisionDifferences& differences, const Decisions& a, const Decisions& b);

}  // namespace weft
