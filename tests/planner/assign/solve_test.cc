#include "planner/assign/solve.h"

#include <gtest/gtest.h>

#include "planner/assign/dual_ascent.h"
#include "tests/planner/assign/random_model.h"
#include "tests/support/seeds.h"

namespace weft::testing {

// Of random models. main() sets them.
SeedRange seeds = {1, 1500};

namespace {

using assign::Model;
using assign::Solution;
using assign::SolveOptions;

void expectBestOfAll(const Model& model, const SolveOptions& options, uint64_t seed) {
  const assign::Cost least = leastOfAll(model);
  const Solution solution = solve(model, options);
  EXPECT_EQ(solution.isPossible(), least < assign::kForbidden) << seed;
  EXPECT_EQ(solution.isProvenImpossible(), least >= assign::kForbidden) << seed;
  EXPECT_EQ(solution.cost, least) << seed;
  EXPECT_EQ(solution.bound, least) << seed;
  if (solution.isPossible()) {
    EXPECT_EQ(costOf(model, solution.values), solution.cost) << seed;
    EXPECT_TRUE(fits(model, solution.values)) << seed;
  }
}

TEST(Solve, IsTheBestOfAllPlans) {
  for (uint64_t seed = seeds.first; seed <= seeds.last; ++seed) {
    expectBestOfAll(randomModel(static_cast<unsigned>(seed)), {}, seed);
  }
}

// Reductions and elimination would leave little to do for the ascent and the search.
TEST(Solve, IsTheBestOfAllPlansByAscentAndSearchAlone) {
  SolveOptions options;
  options.reductions = {false, false, false, false, false, false};
  options.eliminates = false;
  for (uint64_t seed = seeds.first; seed <= seeds.last; ++seed) {
    expectBestOfAll(randomModel(static_cast<unsigned>(seed)), options, seed);
  }
}

// With next to no budget there may be a gap, or no plan, but what is said is true; the more, the better.
TEST(Solve, BoundsHoldWhateverTheBudget) {
  int open = 0;
  for (uint64_t seed = seeds.first; seed <= seeds.last; ++seed) {
    const Model model = randomModel(static_cast<unsigned>(seed));
    const assign::Cost least = leastOfAll(model);
    SolveOptions options;
    options.reductions = {false, false, false, false, false, false};
    options.eliminates = false;
    for (const int64_t ticks : {0, 100, 1000, 4000}) {
      options.ticks = ticks;
      const Solution solution = solve(model, options);
      EXPECT_LE(solution.bound, least) << seed;
      EXPECT_GE(solution.cost, least) << seed;
      open += solution.bound < solution.cost ? 1 : 0;
    }
  }
  EXPECT_GT(open, 0);
}

TEST(Solve, AnswersTheSameTwice) {
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    const Model model = randomModel(static_cast<unsigned>(seed));
    const Solution first = solve(model, {});
    const Solution second = solve(model, {});
    EXPECT_EQ(first.values, second.values);
    EXPECT_EQ(first.ticks, second.ticks);
  }
}

// A grid: no reduction applies, and no table of an elimination would be small.
Model grid(int side, int values, unsigned seed) {
  std::mt19937 random(seed);
  Model model;
  for (int v = 0; v < side * side; ++v) {
    model.costs.emplace_back();
    model.residences.emplace_back();
    for (int x = 0; x < values; ++x) {
      model.costs[v].push_back(static_cast<assign::Cost>(random() % 100));
    }
  }
  for (int v = 0; v < side * side; ++v) {
    for (const int w : {v % side + 1 < side ? v + 1 : -1, v + side}) {
      if (w < 0 || w >= side * side) {
        continue;
      }
      std::vector<assign::Cost> costs;
      const unsigned apart = 10 + random() % 30;
      for (int i = 0; i < values * values; ++i) {
        costs.push_back(i / values == i % values ? 0 : static_cast<assign::Cost>(apart + random() % 10));
      }
      model.edges.push_back({v, w, assign::tableOf(std::move(costs))});
    }
  }
  return model;
}

TEST(Solve, WideGridsWithinTwoPercent) {
  for (unsigned seed = 1; seed <= 3; ++seed) {
    const Model model = grid(20, 6, seed);
    SolveOptions options;
    options.ticks = 100 * 1000 * 1000;
    const Solution solution = solve(model, options);
    ASSERT_TRUE(solution.isPossible());
    EXPECT_EQ(costOf(model, solution.values), solution.cost);
    EXPECT_LE(static_cast<double>(solution.cost - solution.bound), 0.02 * static_cast<double>(solution.cost)) << seed;
  }
}

// Without a budget the answer is no worse than the plan that was known, and what is found alone is.
TEST(Solve, APlanThatIsKnownIsKept) {
  int worse = 0;
  for (unsigned seed = 1; seed <= 3; ++seed) {
    const Model model = grid(20, 6, seed);
    SolveOptions options;
    options.ticks = 100 * 1000 * 1000;
    const Solution known = solve(model, options);
    options.ticks = 1;
    worse += solve(model, options).cost > known.cost ? 1 : 0;
    options.start = known.values;
    const Solution kept = solve(model, options);
    EXPECT_LE(kept.cost, known.cost) << seed;
    EXPECT_EQ(costOf(model, kept.values), kept.cost) << seed;
  }
  EXPECT_GT(worse, 0);
}

// Whatever was passed, a plan costs what it did, and its bound and what values cost beyond it hold.
TEST(DualAscent, PassesCostsWithoutChangingPlans) {
  for (unsigned seed = 1; seed <= 200; ++seed) {
    Model model = randomModel(seed);
    model.capacity.clear();
    model.residences.assign(model.variables(), {});
    const assign::Cost least = leastOfAll(model);
    assign::Ticks ticks(1 << 30);
    assign::DualAscent dual(model, ticks);
    assign::Cost before = -assign::kForbidden;
    for (int i = 0; i < 10; ++i) {
      dual.pass(i % 2 == 0);
      EXPECT_GE(dual.bound(), before) << seed;
      before = dual.bound();
    }
    if (least >= assign::kForbidden) {
      continue;
    }
    EXPECT_LE(before, least) << seed;
    EXPECT_EQ(leastOfAll(dual.passed()) + dual.constant(), least) << seed;
    for (int v = 0; v < model.variables(); ++v) {
      const std::vector<assign::Cost> beyond = dual.beyond(v);
      for (int x = 0; x < model.valuesOf(v); ++x) {
        Model with = model;
        std::fill(with.costs[v].begin(), with.costs[v].end(), assign::kForbidden);
        with.costs[v][x] = model.costs[v][x];
        EXPECT_LE(std::min(assign::kForbidden, dual.bound() + beyond[x]), leastOfAll(with))
            << seed << " variable " << v << " value " << x;
      }
    }
  }
}

// With prices the bound holds of plans that fit.
TEST(DualAscent, PricesKeepTheBoundTrue) {
  std::mt19937 random(3);
  for (unsigned seed = 1; seed <= 300; ++seed) {
    const Model model = randomModel(seed);
    const assign::Cost least = leastOfAll(model);
    assign::Ticks ticks(1 << 30);
    assign::DualAscent dual(model, ticks);
    for (int i = 0; i < 4 && least < assign::kForbidden; ++i) {
      assign::RowPrices prices{3, {}};
      for (size_t row = 0; row < model.capacity.size(); ++row) {
        prices.ofRow.push_back(static_cast<int64_t>(random() % 30));
      }
      dual.setPrices(prices);
      dual.pass(true);
      dual.pass(false);
      EXPECT_LE(dual.bound(), least) << seed;
    }
  }
}

}  // namespace
}  // namespace weft::testing

int main(int argc, char** argv) {
  return weft::testing::runSeeded(argc, argv, weft::testing::seeds, 50000);
}
