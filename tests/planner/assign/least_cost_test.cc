#include "planner/assign/least_cost.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

namespace weft::testing {
namespace {

using ::testing::ElementsAre;

constexpr int64_t kAnyTable = 1 << 20;

Picoseconds costOf(const AssignmentProblem& problem, const std::vector<int>& values) {
  Picoseconds sum = 0;
  for (const CostTable& table : problem.tables) {
    int64_t entry = 0;
    for (const int variable : table.variables) {
      entry = entry * problem.values[variable] + values[variable];
    }
    sum = std::min(kImpossible, sum + table.costs[entry]);
  }
  return sum;
}

Picoseconds leastOfAll(const AssignmentProblem& problem) {
  std::vector<int> values(problem.values.size(), 0);
  Picoseconds least = kImpossible;
  for (;;) {
    least = std::min(least, costOf(problem, values));
    size_t v = 0;
    while (v < values.size() && ++values[v] == problem.values[v]) {
      values[v++] = 0;
    }
    if (v == values.size()) {
      return least;
    }
  }
}

// Up to 8 variables with up to 4 values, joined in pairs and threes; some combinations are impossible.
AssignmentProblem randomProblem(std::mt19937& random) {
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

TEST(LeastCost, IsTheLeastOfAllAssignments) {
  std::mt19937 random(7);
  for (int i = 0; i < 2000; ++i) {
    const AssignmentProblem problem = randomProblem(random);
    const Assignment found = leastCost(problem, kAnyTable);
    EXPECT_TRUE(found.exact);
    EXPECT_EQ(costOf(problem, found.values), leastOfAll(problem)) << i;
  }
}

TEST(LeastCost, OfEqualOnesTheFirst) {
  EXPECT_THAT(leastCost({{3, 2}, {{{0, 1}, {5, 5, 5, 5, 5, 5}}}}, kAnyTable).values, ElementsAre(0, 0));
}

TEST(LeastCost, OfAVariableThatNothingPricesTheFirst) {
  EXPECT_THAT(leastCost({{4, 2}, {{{1}, {3, 1}}}}, kAnyTable).values, ElementsAre(0, 1));
}

// With tables of up to 8 entries not all can be joined; what is found is possible, and no worse than the start.
TEST(LeastCost, KeepsVariablesWhereTablesWouldBeTooLarge) {
  std::mt19937 random(11);
  int cut = 0;
  for (int i = 0; i < 500; ++i) {
    const AssignmentProblem problem = randomProblem(random);
    const Assignment found = leastCost(problem, 8);
    cut += found.exact ? 0 : 1;
    EXPECT_LE(costOf(problem, found.values), costOf(problem, std::vector<int>(problem.values.size(), 0))) << i;
    EXPECT_GE(costOf(problem, found.values), leastOfAll(problem)) << i;
  }
  EXPECT_GT(cut, 50);
}

}  // namespace
}  // namespace weft::testing
