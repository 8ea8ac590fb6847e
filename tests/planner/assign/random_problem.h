// Small random problems of assignments.
#pragma once

#include <random>
#include <utility>
#include <vector>

#include "planner/assign/eliminate.h"

namespace weft::testing {

// Up to 8 variables with up to 4 values, joined in pairs and threes; some combinations are impossible.
inline AssignmentProblem randomProblem(std::mt19937& random) {
  AssignmentProblem problem;
  for (unsigned v = 0, count = 2 + random() % 7; v < count; ++v) {
    problem.values.push_back(1 + static_cast<int>(random() % 4));
  }
  for (unsigned t = 0, count = random() % 14; t < count; ++t) {
    CostTable table;
    int64_t entries = 1;
    for (unsigned v = 0; v < problem.values.size() && table.variables.size() < 3; ++v) {
      if (random() % 3 == 0) {
        table.variables.push_back(static_cast<int>(v));
        entries *= problem.values[v];
      }
    }
    for (int64_t i = 0; i < entries; ++i) {
      table.costs.push_back(i > 0 && random() % 8 == 0 ? kImpossible : static_cast<Picoseconds>(random() % 50));
    }
    problem.tables.push_back(std::move(table));
  }
  return problem;
}

}  // namespace weft::testing
