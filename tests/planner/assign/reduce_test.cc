#include "planner/assign/reduce.h"

#include <gtest/gtest.h>

#include "tests/planner/assign/random_model.h"

namespace weft::testing {
namespace {

using assign::Model;
using assign::Reduced;
using assign::Reductions;
using assign::Ticks;

constexpr Reductions kNone = {false, false, false, false, false, false};
constexpr unsigned kSeeds = 600;

// The best plan of what is left, expanded, is a best plan of the model. Returns how many variables and values went.
int64_t expectSameOptimum(const Reductions& reductions) {
  int64_t gone = 0;
  for (unsigned seed = 1; seed <= kSeeds; ++seed) {
    const Model model = randomModel(seed);
    Ticks ticks(1 << 30);
    const Reduced reduced = reduce(model, reductions, ticks);
    const assign::Cost least = leastOfAll(model);
    if (!reduced.possible) {
      EXPECT_EQ(least, assign::kForbidden) << seed;
      continue;
    }
    const assign::Cost rest = leastOfAll(reduced.model);
    EXPECT_EQ(rest >= assign::kForbidden ? rest : rest + reduced.constant, least) << seed;
    for (int v = 0; v < model.variables(); ++v) {
      gone += model.valuesOf(v);
    }
    for (int v = 0; v < reduced.model.variables(); ++v) {
      gone -= reduced.model.valuesOf(v);
    }
  }
  return gone;
}

// Any plan of what is left is a plan of the model at the same cost and fits where that does.
void expectSamePlans(const Reductions& reductions) {
  std::mt19937 random(5);
  for (unsigned seed = 1; seed <= kSeeds; ++seed) {
    const Model model = randomModel(seed);
    Ticks ticks(1 << 30);
    const Reduced reduced = reduce(model, reductions, ticks);
    if (!reduced.possible) {
      continue;
    }
    for (int i = 0; i < 5; ++i) {
      std::vector<int> plan;
      for (int v = 0; v < reduced.model.variables(); ++v) {
        plan.push_back(static_cast<int>(random() % reduced.model.valuesOf(v)));
      }
      const assign::Cost cost = costOf(reduced.model, plan);
      if (cost < assign::kForbidden) {
        EXPECT_EQ(costOf(model, reduced.expand(plan)), cost + reduced.constant) << seed;
        EXPECT_EQ(fits(model, reduced.expand(plan)), fits(reduced.model, plan)) << seed;
      }
    }
  }
}

struct Case {
  const char* name;
  bool Reductions::* kind;
};

class ReductionAlone : public ::testing::TestWithParam<Case> {};

TEST_P(ReductionAlone, KeepsTheOptimumAndTakesSomething) {
  const int64_t before = expectSameOptimum(kNone);
  Reductions only = kNone;
  only.*GetParam().kind = true;
  EXPECT_GT(expectSameOptimum(only), before);
  expectSamePlans(only);
}

INSTANTIATE_TEST_SUITE_P(Kinds, ReductionAlone,
                         ::testing::Values(Case{"one_value", &Reductions::oneValue}, Case{"sums", &Reductions::sums},
                                           Case{"followers", &Reductions::followers},
                                           Case{"one_neighbor", &Reductions::oneNeighbor},
                                           Case{"two_neighbors", &Reductions::twoNeighbors},
                                           Case{"dominated", &Reductions::dominated}),
                         [](const auto& info) { return info.param.name; });

TEST(Reduce, AllTogetherKeepTheOptimum) {
  expectSameOptimum({});
  expectSamePlans({});
}

// A chain of followers is one variable, and with what it costs in all it is decided.
TEST(Reduce, FollowersOfFollowersBecomeOne) {
  Model model;
  const assign::Cost no = assign::kForbidden;
  for (int v = 0; v < 5; ++v) {
    model.costs.push_back({v, 3});
    model.residences.emplace_back();
    if (v > 0) {
      model.edges.push_back({v - 1, v, assign::tableOf({no, 0, 0, no})});
    }
  }
  Ticks ticks(1 << 20);
  const Reduced reduced = reduce(model, {}, ticks);
  EXPECT_EQ(reduced.model.variables(), 0);
  EXPECT_EQ(reduced.constant, 0 + 3 + 2 + 3 + 4);
  EXPECT_EQ(reduced.expand({}), (std::vector<int>{0, 1, 0, 1, 0}));
}

// A cheaper value that takes more memory stands in for no other.
TEST(Reduce, AValueThatTakesLessMemoryStays) {
  Model model;
  model.costs = {{1, 5}, {1, 5}};
  model.residences = {{{0, 1, {9, 2}}}, {{0, 1, {9, 2}}}};
  model.capacity = {11};
  Ticks ticks(1 << 20);
  const Reduced reduced = reduce(model, {}, ticks);
  ASSERT_EQ(reduced.model.variables(), 2);
  EXPECT_EQ(reduced.model.valuesOf(0), 2);
}

// Of times at which the same, or fewer, variables are in memory one row is enough; of those that cannot overflow none.
TEST(CompressRows, KeepsTheRowsThatBind) {
  Model model;
  model.costs = {{0, 0}, {0, 0}, {0, 0}};
  model.residences = {{{0, 4, {1, 5}}}, {{1, 3, {1, 5}}}, {{3, 4, {1, 2}}}};
  model.capacity = {9, 9, 9, 9};
  ASSERT_TRUE(compressRows(model));
  EXPECT_EQ(model.capacity, (std::vector<int64_t>{7}));
  EXPECT_EQ(model.rowNumbers.size(), 1u);
  EXPECT_EQ(model.residences[0][0].usage, (std::vector<int64_t>{0, 4}));
  EXPECT_TRUE(model.residences[2].empty());
  model.capacity = {-1};
  EXPECT_FALSE(compressRows(model));
}

}  // namespace
}  // namespace weft::testing
