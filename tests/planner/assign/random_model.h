// Small models of every kind, and their best plans by enumeration.
#pragma once

#include <algorithm>
#include <random>
#include <vector>

#include "planner/assign/memory_rows.h"
#include "planner/assign/model.h"

namespace weft::testing {

inline bool fits(const assign::Model& model, const std::vector<int>& plan) {
  const std::vector<int64_t> excess = assign::excessOf(model, plan);
  return std::all_of(excess.begin(), excess.end(), [](int64_t row) { return row <= 0; });
}

// The least cost of a plan that fits; kForbidden: there is none.
inline assign::Cost leastOfAll(const assign::Model& model) {
  std::vector<int> plan(model.variables(), 0);
  assign::Cost least = assign::kForbidden;
  for (;;) {
    const assign::Cost cost = costOf(model, plan);
    least = cost < least && fits(model, plan) ? cost : least;
    int v = 0;
    while (v < model.variables() && ++plan[v] == model.valuesOf(v)) {
      plan[v++] = 0;
    }
    if (v == model.variables()) {
      return least;
    }
  }
}

// One of four: equal values only (turned by some), equal values free, anything with some pairs forbidden, a sum.
inline assign::Table randomTable(std::mt19937& random, int rows, int columns) {
  const unsigned kind = random() % 4;
  const int turn = static_cast<int>(random() % 5);
  std::vector<assign::Cost> costs;
  for (int x = 0; x < rows; ++x) {
    for (int y = 0; y < columns; ++y) {
      const auto any = static_cast<assign::Cost>(random() % 60);
      const assign::Cost kinds[] = {(x + turn) % 5 == y ? 0 : assign::kForbidden, x == y ? 0 : 10 + any % 3,
                                    random() % 6 == 0 ? assign::kForbidden : any - 5, 3 * x + 2 * y};
      costs.push_back(kinds[kind]);
    }
  }
  return assign::tableOf(std::move(costs));
}

// Up to 8 variables of up to 5 values, two models in three with up to 6 rows; a good part cannot be solved at all.
inline assign::Model randomModel(unsigned seed) {
  std::mt19937 random(seed);
  assign::Model model;
  const int count = 1 + static_cast<int>(random() % 8);
  const int rows = random() % 3 == 0 ? 0 : 1 + static_cast<int>(random() % 6);
  for (int v = 0; v < count; ++v) {
    model.costs.emplace_back();
    for (unsigned x = 0, values = 1 + random() % 5; x < values; ++x) {
      model.costs[v].push_back(random() % 15 == 0 ? assign::kForbidden : static_cast<assign::Cost>(random() % 50));
    }
    model.residences.emplace_back();
    for (unsigned i = 0, several = random() % 3; rows > 0 && i < several; ++i) {
      const int first = static_cast<int>(random() % rows);
      assign::Residence residence{first, first + static_cast<int>(random() % (rows - first + 1)), {}};
      for (int x = 0; x < model.valuesOf(v); ++x) {
        residence.usage.push_back(static_cast<int64_t>(random() % 20));
      }
      model.residences[v].push_back(residence);
    }
  }
  for (unsigned i = 0, edges = random() % (2 * count + 1); i < edges; ++i) {
    const int first = static_cast<int>(random() % count);
    const int second = static_cast<int>(random() % count);
    if (first != second) {
      model.edges.push_back({first, second, randomTable(random, model.valuesOf(first), model.valuesOf(second))});
    }
  }
  for (int row = 0; row < rows; ++row) {
    model.capacity.push_back(10 + static_cast<int64_t>(random() % 60));
  }
  return model;
}

}  // namespace weft::testing
