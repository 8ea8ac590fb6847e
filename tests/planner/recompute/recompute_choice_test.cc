// The choice of what is recomputed, against enumeration: outcomes by their definition, one interval by all subsets,
// several intervals by all subsets of all their operators.

#include <gtest/gtest.h>

#include "planner/recompute/intervals.h"
#include "planner/recompute/knapsack.h"
#include "tests/planner/recompute/recompute_random.h"

namespace weft::recompute {
namespace {

using testing::allCosts;
using testing::appendRandom;
using testing::Cost;
using testing::costByDefinition;
using testing::leastTime;

std::vector<int64_t> budgetsOf(const Graph& graph) {
  int64_t all = 0;
  for (const Value& value : graph.values) {
    all += value.bytes;
  }
  std::vector<int64_t> budgets;
  for (int64_t budget = 0; budget <= all; budget += 64) {
    budgets.push_back(budget);
  }
  return budgets;
}

TEST(RecomputeOutcome, IsTheDefinition) {
  std::mt19937 random(11);
  for (int round = 0; round < 300; ++round) {
    Graph graph;
    appendRandom(random, 1 + round % 9, -1, graph);
    std::vector<bool> keep(graph.operators.size());
    std::set<int> kept;
    for (size_t op = 0; op < keep.size(); ++op) {
      keep[op] = random() % 2 == 0;
      if (keep[op]) {
        kept.insert(static_cast<int>(op));
      }
    }
    const Outcome outcome = outcomeOf(graph, keep);
    const Cost cost = costByDefinition(graph, kept);
    ASSERT_EQ(outcome.bytes, cost.bytes) << "round " << round;
    ASSERT_EQ(outcome.time, cost.time) << "round " << round;  // sums of whole numbers
  }
}

TEST(RecomputePareto, IsTheBestOfAllSubsets) {
  std::mt19937 random(12);
  int traded = 0;
  for (int round = 0; round < 150; ++round) {
    Graph graph;
    appendRandom(random, 2 + round % 9, -1, graph);
    const std::vector<Point> points = paretoPoints(graph);
    ASSERT_FALSE(points.empty());
    traded += points.size() > 1 ? 1 : 0;
    for (size_t p = 1; p < points.size(); ++p) {
      ASSERT_LT(points[p].bytes, points[p - 1].bytes);
      ASSERT_GT(points[p].time, points[p - 1].time);
    }
    const std::vector<Cost> costs = allCosts(graph);
    for (const int64_t budget : budgetsOf(graph)) {
      Picoseconds found = -1;
      for (const Point& point : points) {
        found = point.bytes <= budget && (found < 0 || point.time < found) ? point.time : found;
      }
      ASSERT_EQ(found, leastTime(costs, budget)) << "round " << round << ", budget " << budget;
    }
  }
  EXPECT_GT(traded, 75);  // else there was little to choose
}

// More than may be decided one by one: both ends stay, nothing is better than the best.
TEST(RecomputePareto, GroupsWhatIsTooMuch) {
  std::mt19937 random(13);
  for (int round = 0; round < 40; ++round) {
    Graph graph;
    appendRandom(random, 10, -1, graph);
    const std::vector<Point> exact = paretoPoints(graph);
    const std::vector<Point> grouped = paretoPoints(graph, 3);
    ASSERT_LE(candidatesOf(graph, 3).size(), 3U);
    ASSERT_EQ(grouped.front().bytes, exact.front().bytes);  // keeps everything
    ASSERT_EQ(grouped.front().time, exact.front().time);
    const std::vector<Cost> costs = allCosts(graph);
    for (const Point& point : grouped) {
      ASSERT_LE(leastTime(costs, point.bytes), point.time);
    }
  }
}

// A graph that differs in one figure, and another number of candidates, are other questions.
TEST(RecomputePareto, KnownFrontsAreThoseOfTheirGraphs) {
  std::mt19937 random(14);
  KnownFronts fronts;
  for (int round = 0; round < 40; ++round) {
    Graph graph;
    appendRandom(random, 2 + round % 9, -1, graph);
    std::vector<Graph> asked(4, graph);
    asked[1].operators.back().time += 1;
    asked[2].values.back().bytes += 64;
    asked[3].operators.front().mayKeep = !graph.operators.front().mayKeep;
    for (int again = 0; again < 2; ++again) {
      for (const Graph& each : asked) {
        ASSERT_EQ(fronts.of(each), paretoPoints(each)) << "round " << round;
        ASSERT_EQ(fronts.of(each, 2), paretoPoints(each, 2)) << "round " << round;
      }
    }
  }
}

TEST(RecomputeKnapsack, IsTheBestOfAllSelections) {
  std::mt19937 random(14);
  for (int round = 0; round < 100; ++round) {
    std::vector<IntervalClass> classes(1 + round % 3);
    for (IntervalClass& intervals : classes) {
      intervals.count = 1 + static_cast<int64_t>(random() % (round % 3 == 2 ? 2 : 3));
      int64_t bytes = 64 * (20 + random() % 10);
      Picoseconds time = 0;
      for (int p = 0; p < 4; ++p) {
        intervals.points.push_back({bytes, time, {}});
        bytes -= 64 * (1 + random() % 5);
        time += static_cast<Picoseconds>(1 + random() % 7);
      }
    }
    // All selections, interval by interval.
    std::vector<Cost> sums = {{}};
    for (const IntervalClass& intervals : classes) {
      for (int64_t interval = 0; interval < intervals.count; ++interval) {
        std::vector<Cost> next;
        for (const Cost& sum : sums) {
          for (const Point& point : intervals.points) {
            next.push_back({sum.bytes + point.bytes, sum.time + point.time});
          }
        }
        sums = std::move(next);
      }
    }
    const Knapsack knapsack(classes);
    for (int64_t budget = knapsack.least() - 64; budget <= knapsack.most() + 64; budget += 64) {
      const Picoseconds best = leastTime(sums, budget);
      const std::optional<Selection> selection = knapsack.solve(budget);
      ASSERT_EQ(selection.has_value(), best >= 0) << "round " << round << ", budget " << budget;
      if (selection) {
        ASSERT_EQ(selection->time, best) << "round " << round << ", budget " << budget;
        ASSERT_LE(selection->bytes, budget);
      }
    }
  }
}

// Sizes without a common divisor: the units are rounded, no selection exceeds its budget.
TEST(RecomputeKnapsack, RoundsUp) {
  IntervalClass intervals;
  intervals.points = {{1'000'003, 0, {}}, {700'001, 1, {}}, {13, 3, {}}};
  intervals.count = 50;
  const Knapsack knapsack({intervals});
  for (int64_t budget = knapsack.least(); budget <= knapsack.most(); budget += 77'777) {
    const std::optional<Selection> selection = knapsack.solve(budget);
    ASSERT_TRUE(selection);
    EXPECT_LE(selection->bytes, budget);
    // At most one unit for each interval is lost.
    EXPECT_GT(selection->bytes + 1'000'003 + 50 * (50'000'150 / Knapsack::kMaxUnits + 1), budget);
  }
  EXPECT_EQ(knapsack.solve(knapsack.most())->time, 0);
  EXPECT_FALSE(knapsack.solve(knapsack.least() - 1));
}

// Three layers of the same random operators; each begins with a border that is kept, and its last operator is. With
// `shared` each border also reads what the first operator of all makes, which is kept.
Graph threeLayers(std::mt19937& random, bool shared) {
  Graph layer;
  layer.values.push_back({-1, 128, -1, true});
  appendRandom(random, 3, 0, layer);
  layer.operators.back().mayRepeat = false;
  Graph stage;
  if (shared) {
    stage.operators.push_back({{}, 3, false, true});
    stage.values.push_back({0, 256, -1, true});
  }
  for (int i = 0; i < 3; ++i) {
    const auto op = static_cast<int>(stage.operators.size());
    const auto offset = static_cast<int>(stage.values.size());
    std::vector<int> inputs = i == 0 ? std::vector<int>() : std::vector<int>{offset - 1};
    if (shared) {
      inputs.push_back(0);
    }
    stage.operators.push_back({std::move(inputs), 3, false, true});
    stage.values.push_back({op, 128, -1, true});
    for (Operator copy : layer.operators) {
      for (int& input : copy.inputs) {
        input += offset;
      }
      stage.operators.push_back(copy);
    }
    for (size_t v = 1; v < layer.values.size(); ++v) {
      Value copy = layer.values[v];
      copy.op += op + 1;
      copy.storage = copy.storage < 0 ? -1 : copy.storage + offset;
      stage.values.push_back(copy);
    }
  }
  return stage;
}

TEST(RecomputeIntervals, TogetherAreTheBestOfAllSubsets) {
  std::mt19937 random(15);
  int repeated = 0;
  int traded = 0;
  for (int round = 0; round < 120; ++round) {
    const Graph stage = threeLayers(random, round % 2 == 1);
    const Intervals intervals = cutIntoIntervals({stage});
    std::vector<IntervalClass> classes;
    for (const Graph& graph : intervals.classes) {
      classes.push_back({paretoPoints(graph), 0});
    }
    int last = 0;
    for (const Interval& interval : intervals.intervals) {
      ASSERT_EQ(interval.first, last);
      last = interval.last;
      ++classes[interval.intervalClass].count;
    }
    ASSERT_EQ(last, static_cast<int>(stage.operators.size()));
    repeated += intervals.classes.size() < intervals.intervals.size() ? 1 : 0;
    const Knapsack knapsack(classes);
    traded += knapsack.least() < knapsack.most() ? 1 : 0;
    const std::vector<Cost> costs = allCosts(stage);
    for (const int64_t budget : budgetsOf(stage)) {
      const std::optional<Selection> selection = knapsack.solve(budget);
      ASSERT_EQ(selection ? selection->time : -1, leastTime(costs, budget))
          << "round " << round << ", budget " << budget;
    }
  }
  EXPECT_GT(repeated, 40);
  EXPECT_GT(traded, 40);
}

// An operator of one result, which it returns.
int append(Graph& stage, std::vector<int> inputs, int64_t bytes, Picoseconds time, bool read) {
  stage.operators.push_back({std::move(inputs), time, true, true});
  stage.values.push_back({static_cast<int>(stage.operators.size()) - 1, bytes, -1, read});
  return static_cast<int>(stage.values.size()) - 1;
}

// Twelve halves of layers, 6 + 6 alike, between two odd ends: the halves become layers of one class.
TEST(RecomputeIntervals, HalvesBecomeLayers) {
  Graph stage;
  int x = append(stage, {}, 64, 1, true);
  for (int layer = 0; layer < 6; ++layer) {
    for (int half = 0; half < 2; ++half) {
      int y = x;
      for (int i = 0; i < 5 + half; ++i) {
        y = append(stage, {y}, 128 + 64 * i + half * 64, 1 + i, true);
      }
      x = append(stage, {x, y}, 64, 1, true);
    }
  }
  append(stage, {x}, 640, 5, true);
  const Intervals intervals = cutIntoIntervals({stage});
  int layers = 0;
  for (const Interval& interval : intervals.intervals) {
    layers += interval.last - interval.first == 13 ? 1 : 0;
    if (interval.last - interval.first == 13) {
      EXPECT_EQ(interval.intervalClass, intervals.intervals[1].intervalClass);
    }
  }
  EXPECT_EQ(layers, 6);
}

// Four layers that read a mask and a constant, both made once: the layers are cut from each other, two of them in each
// interval as they do little, and what they share is kept. Their residual stream is read three times and lets no cut
// into a layer.
TEST(RecomputeIntervals, WhatManyLayersReadIsKept) {
  Graph stage;
  const int constant = append(stage, {}, 64, 5, false);
  const int ids = append(stage, {}, 64, 5, true);
  const int mask = append(stage, {ids}, 4096, 5, false);
  int x = append(stage, {ids}, 128, 1, true);
  const int begin = static_cast<int>(stage.operators.size());
  for (int layer = 0; layer < 4; ++layer) {
    const int scores = append(stage, {x, mask}, 1024, 3, true);
    const int y = append(stage, {x, scores}, 128, 2, true);
    const int wide = append(stage, {y, constant}, 512, 7, true);
    x = append(stage, {x, y, wide}, 128, 2, true);
  }
  append(stage, {x}, 640, 5, true);
  const Intervals intervals = cutIntoIntervals({stage});
  std::vector<int> layers;  // the classes of the intervals in them
  for (const Interval& interval : intervals.intervals) {
    if (interval.first >= begin && interval.last <= begin + 16) {
      EXPECT_EQ((interval.first - begin) % 8, 0);
      EXPECT_EQ(interval.last - interval.first, 8);
      layers.push_back(interval.intervalClass);
    }
    for (const int shared : {constant, mask}) {
      if (interval.first <= shared && shared < interval.last) {
        EXPECT_FALSE(intervals.classes[interval.intervalClass].operators[shared - interval.first].mayRepeat);
      }
    }
  }
  ASSERT_EQ(layers.size(), 2);
  EXPECT_EQ(layers[0], layers[1]);
  for (const Value& value : intervals.classes[layers[0]].values) {
    EXPECT_TRUE(value.op >= 0 || value.bytes == 0) << "what is kept once is not kept again by each layer";
  }
}

// What the operators of one layer read stays with it, though three of them do and the layer is too long for an exact
// choice: it may run again.
TEST(RecomputeIntervals, WhatOneLayerReadsMayRunAgain) {
  Graph stage;
  int x = append(stage, {}, 128, 1, true);
  std::vector<int> norms;
  for (int layer = 0; layer < 4; ++layer) {
    norms.push_back(append(stage, {x}, 128, 1, true));
    int y = norms.back();
    for (int i = 0; i < 3 * kMaxCandidates; ++i) {
      y = i < 3 ? append(stage, {y, norms.back()}, 512 + i, 3, true) : append(stage, {y}, 512 + i, 3, true);
    }
    x = append(stage, {x, y}, 128, 2, true);
  }
  append(stage, {x}, 640, 5, true);
  const Intervals intervals = cutIntoIntervals({stage});
  for (const Interval& interval : intervals.intervals) {
    for (const int norm : norms) {
      if (interval.first <= norm && norm < interval.last) {
        EXPECT_TRUE(intervals.classes[interval.intervalClass].operators[norm - interval.first].mayRepeat) << norm;
      }
    }
  }
}

// What the user wants recomputed is never kept, and no cut goes through it.
TEST(RecomputeIntervals, TheUsersWordStands) {
  Graph stage;
  for (int i = 0; i < 4; ++i) {
    stage.operators.push_back({i == 0 ? std::vector<int>() : std::vector<int>{i - 1}, 1, true, i != 1});
    stage.values.push_back({i, 64, -1, true});
  }
  const Intervals intervals = cutIntoIntervals({stage});
  for (const Interval& interval : intervals.intervals) {
    EXPECT_NE(interval.first, 2);
  }
  for (const Graph& graph : intervals.classes) {
    for (const Point& point : paretoPoints(graph)) {
      EXPECT_TRUE(graph.operators.size() < 2 || point.time >= 1);
    }
  }
}

}  // namespace
}  // namespace weft::recompute
