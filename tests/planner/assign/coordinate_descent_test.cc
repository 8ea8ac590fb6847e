#include "planner/assign/coordinate_descent.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "tests/planner/assign/random_problem.h"

namespace weft::testing {
namespace {

using ::testing::ElementsAre;

// Costs that are known from below, and what they come to in truth.
struct Hidden {
  AssignmentProblem known;
  AssignmentProblem truth;

  int asked = 0;  // how often the truth was new

  // Of the entries that these values take.
  absl::Status reveal(const std::vector<int>& values) {
    for (size_t t = 0; t < known.tables.size(); ++t) {
      int64_t entry = 0;
      for (const int variable : known.tables[t].variables) {
        entry = entry * known.values[variable] + values[variable];
      }
      asked += known.tables[t].costs[entry] != truth.tables[t].costs[entry] ? 1 : 0;
      known.tables[t].costs[entry] = truth.tables[t].costs[entry];
    }
    return absl::OkStatus();
  }
  absl::Status descend(std::vector<int>& values, int followers) {
    const auto price = [this](const std::vector<int>& asked) { return reveal(asked); };
    return CoordinateDescent(known, followers).run(price, values);
  }
};

Hidden hidden(const AssignmentProblem& known) {
  return {known, known};
}

// Of one variable: value 1 seems to cost least and costs more than value 0 in truth, value 2 costs what it seems to.
TEST(CoordinateDescent, WhatOnlySeemsToCostLessIsNotTaken) {
  Hidden problem = hidden({{3}, {{{0}, {10, 5, 7}}}});
  problem.truth.tables[0].costs[1] = 12;
  std::vector<int> values = {0};
  ASSERT_TRUE(problem.descend(values, 1).ok());
  EXPECT_THAT(values, ElementsAre(2));
  EXPECT_EQ(problem.known.tables[0].costs[1], 12);
}

TEST(CoordinateDescent, TheTruthOfWhatSeemsToCostMoreIsNotAsked) {
  Hidden problem = hidden({{3}, {{{0}, {10, 11, 7}}}});
  problem.truth.tables[0].costs[1] = 12;
  std::vector<int> values = {0};
  ASSERT_TRUE(problem.descend(values, 1).ok());
  EXPECT_THAT(values, ElementsAre(2));
  EXPECT_EQ(problem.asked, 0);
}

// A change makes another variable's change worth it.
TEST(CoordinateDescent, ANeighborIsLookedAtAgain) {
  Hidden problem = hidden({{2, 2}, {{{0}, {0, 1}}, {{1}, {5, 0}}, {{0, 1}, {3, 4, 6, 0}}}});
  std::vector<int> values = {0, 0};  // 8; the first alone would cost 12
  ASSERT_TRUE(problem.descend(values, 2).ok());
  EXPECT_THAT(values, ElementsAre(1, 1));
}

// Two readers read one of two forms each (variables 2 and 3 say whether they are made, for 10 and for 3).
AssignmentProblem twoReaders() {
  AssignmentProblem problem = {{2, 2, 2, 2}, {{{2}, {10, 0}}, {{3}, {3, 0}}, {{0}, {0, 4}}}};
  for (const int reader : {0, 1}) {
    problem.tables.push_back({{reader, 2}, {0, kImpossible, 0, 0}});
    problem.tables.push_back({{reader, 3}, {0, 0, 0, kImpossible}});
  }
  return problem;
}

TEST(CoordinateDescent, WhatAValueNeedsFollowsIt) {
  const AssignmentProblem problem = twoReaders();
  std::vector<int> values = {0, 1, 1, 1};
  CoordinateDescent(problem, 2).follow(values);
  EXPECT_THAT(values, ElementsAre(0, 1, 0, 0)) << "each form has a reader";
  values = {1, 1, 0, 1};
  CoordinateDescent(problem, 2).follow(values);
  EXPECT_THAT(values, ElementsAre(1, 1, 1, 0)) << "the first form has none";
}

TEST(CoordinateDescent, AChangePaysForWhatFollowsIt) {
  Hidden problem = hidden(twoReaders());
  std::vector<int> values = {0, 1, 0, 0};  // 13; with the first reader at 1 3 + 4
  ASSERT_TRUE(problem.descend(values, 2).ok());
  EXPECT_THAT(values, ElementsAre(1, 1, 1, 0));
  problem = hidden(twoReaders());
  values = {0, 0, 0, 1};  // 10; with either reader at 1 both forms are made
  ASSERT_TRUE(problem.descend(values, 2).ok());
  EXPECT_THAT(values, ElementsAre(0, 0, 0, 1));
}

TEST(CoordinateDescent, AnErrorOfAPriceIsReturned) {
  Hidden problem = hidden({{2}, {{{0}, {10, 5}}}});
  std::vector<int> values = {0};
  const auto price = [](const std::vector<int>&) { return absl::InternalError("no path"); };
  EXPECT_EQ(CoordinateDescent(problem.known, 1).run(price, values).message(), "no path");
}

// In truth no single change lowers what is found, and it costs no more than what there was.
TEST(CoordinateDescent, NoSingleChangeIsBetterInTruth) {
  std::mt19937 random(1);
  int changed = 0;
  for (int program = 0; program < 300; ++program) {
    const AssignmentProblem truth = randomProblem(random);
    const auto variables = static_cast<int>(truth.values.size());
    Hidden problem = {truth, truth};
    for (CostTable& table : problem.known.tables) {
      for (Picoseconds& cost : table.costs) {
        cost = cost == kImpossible ? cost : cost - static_cast<Picoseconds>(random() % (cost + 1));
      }
    }
    std::vector<int> values(variables, 0);
    ASSERT_TRUE(problem.reveal(values).ok());
    ASSERT_TRUE(problem.descend(values, variables).ok());
    const Picoseconds found = costOf(truth, values);
    EXPECT_EQ(costOf(problem.known, values), found) << "of program " << program;
    const Picoseconds before = costOf(truth, std::vector<int>(variables, 0));
    EXPECT_LE(found, before) << "of program " << program;
    changed += found < before ? 1 : 0;
    for (int v = 0; v < variables; ++v) {
      for (int x = 0; x < truth.values[v]; ++x) {
        std::vector<int> other = values;
        other[v] = x;
        EXPECT_GE(costOf(truth, other), found) << "of program " << program << ", variable " << v << " at " << x;
      }
    }
  }
  EXPECT_GT(changed, 100);
}

}  // namespace
}  // namespace weft::testing
