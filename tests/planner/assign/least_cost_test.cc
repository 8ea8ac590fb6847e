#include "planner/assign/least_cost.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "tests/planner/assign/random_problem.h"

namespace weft::testing {
namespace {

using ::testing::ElementsAre;

constexpr int64_t kAnyTable = 1 << 20;

Picoseconds sumOf(const AssignmentProblem& problem, const std::vector<int>& values) {
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
    least = std::min(least, sumOf(problem, values));
    size_t v = 0;
    while (v < values.size() && ++values[v] == problem.values[v]) {
      values[v++] = 0;
    }
    if (v == values.size()) {
      return least;
    }
  }
}

TEST(LeastCost, IsTheLeastOfAllAssignments) {
  std::mt19937 random(7);
  for (int i = 0; i < 2000; ++i) {
    const AssignmentProblem problem = randomProblem(random);
    const Assignment found = leastCost(problem, kAnyTable);
    EXPECT_TRUE(found.exact);
    EXPECT_EQ(sumOf(problem, found.values), leastOfAll(problem)) << i;
  }
}

TEST(LeastCost, OfEqualOnesTheFirst) {
  EXPECT_THAT(leastCost({{3, 2}, {{{0, 1}, {5, 5, 5, 5, 5, 5}}}}, kAnyTable).values, ElementsAre(0, 0));
}

TEST(LeastCost, OfAVariableThatNothingPricesTheFirst) {
  EXPECT_THAT(leastCost({{4, 2}, {{{1}, {3, 1}}}}, kAnyTable).values, ElementsAre(0, 1));
}

// With tables of up to 8 entries not all can be joined; what is found is possible, and no worse than the start.
// Whoever asks how much work it is, is told of the order in which it is done.
TEST(Eliminate, IsExactWhereItsWorkWasFoundSmallEnough) {
  std::mt19937 random(3);
  int exact = 0;
  for (int i = 0; i < 500; ++i) {
    const AssignmentProblem problem = randomProblem(random);
    for (const int64_t most : {4, 16, 64}) {
      const bool isExact = eliminate(problem, most).exact;
      EXPECT_EQ(entriesToEliminate(problem, most, kAnyTable) <= kAnyTable, isExact) << "seed " << i << ", " << most;
      exact += isExact ? 1 : 0;
    }
  }
  EXPECT_GT(exact, 300);
  EXPECT_LT(exact, 1400);
}

TEST(Eliminate, KeepsVariablesWhereTablesWouldBeTooLarge) {
  std::mt19937 random(11);
  int cut = 0;
  for (int i = 0; i < 500; ++i) {
    const AssignmentProblem problem = randomProblem(random);
    const Assignment found = eliminate(problem, 8);
    cut += found.exact ? 0 : 1;
    EXPECT_LE(sumOf(problem, found.values), sumOf(problem, std::vector<int>(problem.values.size(), 0))) << i;
    EXPECT_GE(sumOf(problem, found.values), leastOfAll(problem)) << i;
  }
  EXPECT_GT(cut, 50);
}

// The same where the rest is searched: these are small enough for the best of all, tables over three variables
// included.
TEST(LeastCost, WhereTablesWouldBeTooLargeTheRestIsSearched) {
  std::mt19937 random(11);
  for (int i = 0; i < 500; ++i) {
    const AssignmentProblem problem = randomProblem(random);
    const Assignment found = leastCost(problem, 8);
    EXPECT_TRUE(found.exact) << i;
    EXPECT_EQ(found.cost, sumOf(problem, found.values)) << i;
    EXPECT_EQ(found.cost, leastOfAll(problem)) << i;
    EXPECT_EQ(found.bound, found.cost) << i;
  }
}

// 60 variables with six neighbors each: elimination would need tables of 4^20 entries or so.
AssignmentProblem wideProblem(std::mt19937& random, Picoseconds unit) {
  AssignmentProblem problem;
  for (int v = 0; v < 60; ++v) {
    problem.values.push_back(2 + static_cast<int>(random() % 4));
    CostTable own{{v}, {}};
    for (int x = 0; x < problem.values[v]; ++x) {
      own.costs.push_back(unit * static_cast<Picoseconds>(random() % 100));
    }
    problem.tables.push_back(std::move(own));
    for (int i = 0; i < 3 && v > 0; ++i) {
      const int other = static_cast<int>(random() % v);
      CostTable pair{{other, v}, {}};
      const int turn = static_cast<int>(random() % 2);
      for (int entry = 0; entry < problem.values[other] * problem.values[v]; ++entry) {
        const bool same = (entry / problem.values[v] + turn) % problem.values[v] == entry % problem.values[v];
        pair.costs.push_back(same ? 0 : unit * static_cast<Picoseconds>(10 + random() % 40));
      }
      pair.costs.back() = random() % 4 == 0 ? kImpossible : pair.costs.back();
      problem.tables.push_back(std::move(pair));
    }
  }
  return problem;
}

TEST(LeastCost, OfWideProblemsIsNeverWorseThanEliminationAndNearTheBound) {
  constexpr int64_t kMostEntries = 1 << 6;
  std::mt19937 random(5);
  int better = 0;
  for (int i = 0; i < 6; ++i) {
    const AssignmentProblem problem = wideProblem(random, i % 2 == 0 ? 1 : Picoseconds{1} << 45);
    const Assignment kept = eliminate(problem, kMostEntries);
    const Assignment found = leastCost(problem, kMostEntries);
    EXPECT_FALSE(kept.exact) << i;
    EXPECT_EQ(found.cost, sumOf(problem, found.values)) << i;
    EXPECT_LE(found.cost, kept.cost) << i;
    better += found.cost < kept.cost ? 1 : 0;
    EXPECT_LE(found.bound, found.cost) << i;
    EXPECT_GT(static_cast<double>(found.bound), 0.85 * static_cast<double>(found.cost)) << i;
    EXPECT_EQ(found.exact, found.bound == found.cost) << i;
  }
  EXPECT_GT(better, 3);
}

// One that is known takes the place of elimination's: the answer is no worse, though some of what it chose costs more.
TEST(LeastCost, OfWideProblemsBeginsWithWhatIsKnown) {
  constexpr int64_t kMostEntries = 1 << 6;
  std::mt19937 random(9);
  int better = 0;
  for (int i = 0; i < 6; ++i) {
    AssignmentProblem problem = wideProblem(random, 1);
    const Assignment before = leastCost(problem, kMostEntries);
    EXPECT_TRUE(before.searched) << i;
    for (CostTable& table : problem.tables) {
      if (table.variables.size() == 1) {
        table.costs[before.values[table.variables[0]]] += static_cast<Picoseconds>(random() % 30);
      }
    }
    const Picoseconds known = sumOf(problem, before.values);
    const Assignment found = leastCost(problem, kMostEntries, nullptr, {before.values, true});
    EXPECT_TRUE(found.searched) << i;
    EXPECT_EQ(found.cost, sumOf(problem, found.values)) << i;
    EXPECT_LE(found.cost, known) << i;
    better += found.cost < known ? 1 : 0;
    EXPECT_LE(found.bound, found.cost) << i;
  }
  EXPECT_GT(better, 3);
  // What elimination has no part in is kept where nothing better is found, and made better where it can be.
  const AssignmentProblem problem = wideProblem(random, 1);
  const Assignment best = leastCost(problem, kMostEntries);
  EXPECT_LE(leastCost(problem, kMostEntries, nullptr, {best.values}).cost, best.cost);
  std::vector<int> spoiled = best.values;
  spoiled[0] = (spoiled[0] + 1) % problem.values[0];
  EXPECT_LE(leastCost(problem, kMostEntries, nullptr, {spoiled}).cost, best.cost);
  const AssignmentProblem narrow = randomProblem(random);
  EXPECT_FALSE(leastCost(narrow, 1 << 20).searched);
}

// Problems whose costs change from one question to the next, of one memo: as if each were asked alone.
TEST(LeastCost, AMemoChangesNoAnswer) {
  std::mt19937 random(7);
  for (int i = 0; i < 200; ++i) {
    AssignmentProblem problem = randomProblem(random);
    const std::vector<CostTable> first = problem.tables;
    problem.tables.insert(problem.tables.end(), first.begin(), first.end());  // equal contents
    EliminationMemo memo;
    for (int round = 0; round < 4; ++round) {
      for (const int64_t most : {int64_t{8}, kAnyTable}) {
        const Assignment with = eliminate(problem, most, &memo);
        const Assignment alone = eliminate(problem, most);
        EXPECT_EQ(with.values, alone.values) << "problem " << i << ", round " << round;
        EXPECT_EQ(with.cost, alone.cost);
        EXPECT_EQ(with.exact, alone.exact);
        EXPECT_TRUE(most < kAnyTable || with.cost == leastOfAll(problem)) << "problem " << i << ", round " << round;
      }
      if (!problem.tables.empty()) {
        CostTable& changed = problem.tables[random() % problem.tables.size()];
        changed.costs[random() % changed.costs.size()] += static_cast<Picoseconds>(random() % 20);
      }
    }
  }
}

}  // namespace
}  // namespace weft::testing
