// The cut of segments into stages, against every cut there is.
#include "planner/search/cut_stages.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <optional>
#include <random>

#include "absl/strings/str_cat.h"
#include "planner/schedule/generate.h"
#include "planner/schedule/simulate.h"

namespace weft {
namespace {

SegmentCosts randomCosts(std::mt19937& generator, int segments) {
  const auto below = [&](int most) { return static_cast<int64_t>(generator() % most); };
  SegmentCosts costs;
  for (int i = 0; i < segments; ++i) {
    SegmentCost cost;
    cost.time = 1 + below(20);
    cost.onceTime = below(3);
    cost.heldBytes = below(30);
    cost.activations.toInputs = 5 + below(20);
    cost.passingBytes = below(10);
    cost.savings.push_back({1 + below(2), below(2)});
    cost.savings.push_back({1 + below(2), 2 * cost.savings[0].bytes + below(3)});
    costs.segments.push_back(cost);
  }
  return costs;
}

PipelineShape shapeOf(int64_t submeshes, int64_t virtualStages, int64_t microBatches) {
  const char* kind = virtualStages == 1 ? "1f1b" : "interleaved";
  const CompileOptions request = {.schedule = submeshes * virtualStages > 1 ? kind : "auto"};
  const std::vector<PipelineShape> shapes = pipelineShapes(request, submeshes, virtualStages, microBatches, true);
  EXPECT_EQ(shapes.size(), 1U);
  return shapes.at(0);
}

// Calls with the first segments of every cut into so many stages.
void eachCut(int segments, int64_t stages, std::vector<int>& first, const std::function<void()>& call) {
  if (static_cast<int64_t>(first.size()) == stages) {
    return call();
  }
  for (int next = first.empty() ? 0 : first.back() + 1; next < (first.empty() ? 1 : segments); ++next) {
    first.push_back(next);
    eachCut(segments, stages, first, call);
    first.pop_back();
  }
}

TEST(CutStages, HasTheShortestLongestStageOfAllCuts) {
  std::mt19937 generator(1);
  int limited = 0;
  int none = 0;
  int better = 0;
  for (int round = 0; round < 500; ++round) {
    const int segments = 2 + static_cast<int>(generator() % 7);
    const SegmentCosts costs = randomCosts(generator, segments);
    const int64_t stages = 1 + static_cast<int64_t>(generator() % segments);
    const int64_t virtualStages = stages % 2 == 0 && generator() % 3 == 0 ? 2 : 1;
    const PipelineShape shape =
        shapeOf(stages / virtualStages, virtualStages, 1 + static_cast<int64_t>(generator() % 6));
    const int64_t limit = generator() % 2 == 0 ? 0 : 20 + static_cast<int64_t>(generator() % 300);
    std::optional<StageCut> shortest;
    Picoseconds least = std::numeric_limits<Picoseconds>::max();
    std::vector<int> first;
    eachCut(segments, stages, first, [&] {
      const StageCut cut = withStages(costs, shape, limit, first);
      if (cut.fits) {
        shortest = !shortest || cut.longest < shortest->longest ? cut : *shortest;
        least = std::min(least, cut.time);
      }
    });
    SCOPED_TRACE(absl::StrCat("round ", round, ": ", segments, " segments, ", stages, " stages, limit ", limit));
    const StageCut found = cutStages(costs, shape, limit);
    EXPECT_EQ(found.fits, shortest.has_value());
    EXPECT_EQ(static_cast<int64_t>(found.first.size()), stages);
    if (shortest) {
      if (virtualStages == 1) {
        EXPECT_EQ(found.longest, shortest->longest);
      } else {
        EXPECT_GE(found.time, least) << "the best of all cuts";
        better += found.time < shortest->time ? 1 : 0;
      }
      limited += found.limited ? 1 : 0;
    } else {
      ++none;
    }
  }
  EXPECT_GT(limited, 5);
  EXPECT_GT(none, 20);
  EXPECT_GT(better, 2) << "segments move to submeshes that have less to do";
}

// Two submeshes of two stages each, in a V: the first stage holds eight micro-batches, the others one. Each layer takes
// 10, and 3 more if its 10 bytes of a micro-batch are not kept.
PipelineShape smallV() {
  PipelineShape shape = {.microBatches = 1, .virtualStages = 2, .submeshOf = {0, 1, 1, 0}};
  shape.held = {{1, 8, 0}, {1, 1, 0}, {1, 1, 0}, {1, 1, 0}};
  return shape;
}

SegmentCost layer() {
  SegmentCost cost{.time = 10};
  cost.activations.toWeights = 10;
  cost.savings = {{10, 3}};
  return cost;
}

// 8 * 20 + 20 bytes on submesh 0: of the first stage one layer run again saves 80, of the last 10.
TEST(CutStages, RecomputesWhereASubmeshSavesMost) {
  const SegmentCosts costs = {.segments = std::vector<SegmentCost>(8, layer())};
  const StageCut cut = withStages(costs, smallV(), 100, {0, 2, 4, 6});
  EXPECT_TRUE(cut.fits);
  EXPECT_EQ(cut.time, 40 + 3);
  EXPECT_EQ(cut.longest, 20 + 3);
  EXPECT_EQ(cut.peakBytes, 100);
  EXPECT_EQ(withStages(costs, smallV(), 90, {0, 2, 4, 6}).time, 40 + 3 + 1) << "a part of one";
}

// Stages that are shortest each by itself within the memory may lie unevenly on submeshes, as those of the first half
// of a V hold more micro-batches.
TEST(CutStages, IsNoLongerThanTheCutWithoutALimitIsWithinIt) {
  PipelineShape shape = {.microBatches = 1, .virtualStages = 2, .submeshOf = {0, 1, 2, 3, 3, 2, 1, 0}};
  for (const int64_t held : {8, 7, 6, 5, 1, 1, 1, 1}) {
    shape.held.push_back({held, held, 0});
  }
  std::mt19937 generator(3);
  int limited = 0;
  for (int round = 0; round < 300; ++round) {
    SegmentCost each = layer();  // each further byte that is not kept costs more
    each.time = 100;
    each.activations.toWeights = 40;
    each.savings = {{10, 1}, {10, 4}, {10, 20}};
    SegmentCosts costs = {.segments = std::vector<SegmentCost>(16 + generator() % 16, each)};
    costs.segments[0] = SegmentCost{.time = 1};
    costs.segments.back().time = 100 + static_cast<Picoseconds>(generator() % 100);
    const int64_t limit = 200 + static_cast<int64_t>(generator() % 1000);
    const StageCut alike = withStages(costs, shape, limit, cutStages(costs, shape, 0).first);
    const StageCut found = cutStages(costs, shape, limit);
    EXPECT_GE(found.fits, alike.fits) << "round " << round;
    if (alike.fits) {
      EXPECT_LE(found.time, alike.time) << "round " << round;
      limited += alike.limited ? 1 : 0;
    }
  }
  EXPECT_GT(limited, 50);
}

// What is stopped takes too long, and nothing else is stopped.
TEST(SegmentSums, SavingsStopOnlyBeyondTheMost) {
  std::mt19937 generator(11);
  int stopped = 0;
  for (int round = 0; round < 200; ++round) {
    const int segments = 2 + static_cast<int>(generator() % 5);
    const SegmentSums sums(randomCosts(generator, segments).segments);
    const int begin = static_cast<int>(generator() % segments);
    const int64_t bytes = 1 + static_cast<int64_t>(generator() % (4 * segments));
    const Saving all = sums.saving(begin, segments, bytes);
    for (const Picoseconds most : {all.time / 4, all.time / 2, all.time - 1, all.time, all.time + 1}) {
      const Saving saving = sums.saving(begin, segments, bytes, most);
      stopped += saving == all ? 0 : 1;
      if (all.time <= most) {
        EXPECT_EQ(saving, all) << round;
      } else {
        EXPECT_GT(saving.time, most) << round;
      }
    }
  }
  EXPECT_GT(stopped, 50);
}

// Of all cuts and of all meshes that submeshes may have.
TEST(CutStages, EachSubmeshHasTheMeshThatIsBestForIt) {
  std::mt19937 generator(2);
  int unlike = 0;
  int none = 0;
  for (int round = 0; round < 300; ++round) {
    const int segments = 2 + static_cast<int>(generator() % 5);
    const int64_t stages = 2 + static_cast<int64_t>(generator() % std::min(segments - 1, 2));
    SubmeshCosts costs;
    costs.kinds = {randomCosts(generator, segments), randomCosts(generator, segments),
                   randomCosts(generator, segments)};
    MeshChoices choices = {summedOf(costs), {}};
    for (int64_t s = 0; s < stages; ++s) {
      const auto left = static_cast<int>(generator() % 3);
      choices.ofSubmesh.push_back({left, (left + 1) % 3});
    }
    const PipelineShape shape = shapeOf(stages, 1, 1 + static_cast<int64_t>(generator() % 6));
    const int64_t limit = generator() % 2 == 0 ? 0 : 20 + static_cast<int64_t>(generator() % 200);
    std::optional<Picoseconds> shortest;
    std::vector<int> first;
    eachCut(segments, stages, first, [&] {
      for (uint64_t set = 0; set < uint64_t{1} << stages; ++set) {
        MeshChoices one = {choices.costs, {}};
        for (int64_t s = 0; s < stages; ++s) {
          one.ofSubmesh.push_back({choices.ofSubmesh[s][set >> s & 1]});
        }
        const StageCut cut = withStages(one, shape, limit, first);
        if (cut.fits) {
          shortest = std::min(shortest.value_or(cut.longest), cut.longest);
          EXPECT_GE(cut.time, cut.bound);
        }
      }
    });
    SCOPED_TRACE(absl::StrCat("round ", round, ": ", segments, " segments, ", stages, " stages, limit ", limit));
    const StageCut found = cutStages(choices, shape, limit);
    EXPECT_EQ(found.fits, shortest.has_value());
    EXPECT_EQ(found.longest, shortest.value_or(found.longest));
    none += shortest ? 0 : 1;
    for (int64_t s = 0; s < stages; ++s) {
      const std::vector<int>& mine = choices.ofSubmesh[s];
      EXPECT_NE(std::find(mine.begin(), mine.end(), found.meshes[s]), mine.end());
      unlike += found.meshes[s] != found.meshes[0] ? 1 : 0;
    }
  }
  EXPECT_GT(unlike, 50);
  EXPECT_GT(none, 5);
}

// Two equal stages of three segments each take the ramp and then one micro-batch after the other.
TEST(CutStages, CountsTheRampOnce) {
  SegmentCosts costs;
  costs.segments.assign(6, {.time = 10, .onceTime = 2, .heldBytes = 7, .activations = {3, 0, 0}, .passingBytes = 1});
  const StageCut cut = cutStages(costs, shapeOf(2, 1, 4), 0);
  EXPECT_EQ(cut.first, (std::vector<int>{0, 3}));
  EXPECT_EQ(cut.longest, 30);
  EXPECT_EQ(cut.time, 6 + 4 * 30 + 30);
  EXPECT_EQ(cut.bound, 4 * 30);
  EXPECT_EQ(cut.peakBytes, 3 * 7 + 1 + 2 * 9) << "two micro-batches are in flight on the first";
  const StageCut one = cutStages(costs, shapeOf(3, 2, 1), 0);
  EXPECT_EQ(one.time, 2 * 2 + 60) << "a single micro-batch passes all stages one after the other";
}

// Of state on the host a stage copies that of all its segments, through a buffer as the largest of them needs.
TEST(CutStages, OffloadedStateHasOneBuffer) {
  SegmentCosts costs;
  costs.segments.assign(6, {.time = 10, .onceTime = 2, .offloadTime = 5, .bufferBytes = 4});
  costs.segments[1].bufferBytes = 9;
  const StageCut cut = cutStages(costs, shapeOf(2, 1, 4), 0);
  EXPECT_EQ(cut.time, 3 * (2 + 5) + 4 * 30 + 30);
  EXPECT_EQ(cut.peakBytes, 9);
  const StageCut fluid = fluidCut(together(costs).segments[0], 10, LoosePipeline::underAny(2, 1, 4), 0);
  EXPECT_LE(fluid.time, cut.time);
  EXPECT_EQ(fluid.peakBytes, 9);
}

// The first and the last of four stages share a submesh: what the last segment takes more, the other stages of that
// submesh take less.
TEST(CutStages, StagesOfOneSubmeshAreBalancedTogether) {
  SegmentCosts costs;
  costs.segments.assign(13, {.time = 10});
  costs.segments.back().time = 15;
  const std::vector<PipelineShape> shapes = pipelineShapes({.schedule = "zb_v"}, 2, 2, 8, true);
  ASSERT_EQ(shapes.size(), 1U);
  EXPECT_EQ(shapes[0].submeshOf, (std::vector<int64_t>{0, 1, 1, 0}));
  std::optional<StageCut> best, shortest;
  std::vector<int> first;
  eachCut(13, 4, first, [&] {
    const StageCut cut = withStages(costs, shapes[0], 0, first);
    best = !best || cut.time < best->time ? cut : *best;
    shortest = !shortest || cut.longest < shortest->longest ? cut : *shortest;
  });
  EXPECT_LT(best->time, shortest->time);
  // Segments are moved by an estimate of what the schedule comes to: of that it is the best.
  PipelineShape estimated = shapes[0];
  estimated.table = nullptr;
  std::optional<StageCut> bestEstimated;
  eachCut(13, 4, first, [&] {
    const StageCut cut = withStages(costs, estimated, 0, first);
    bestEstimated = !bestEstimated || cut.time < bestEstimated->time ? cut : *bestEstimated;
  });
  EXPECT_EQ(cutStages(costs, estimated, 0).time, bestEstimated->time);
  const Picoseconds cut = cutStages(costs, shapes[0], 0).time;
  EXPECT_LT(cut, shortest->time);
  EXPECT_LT(static_cast<double>(cut), 1.04 * static_cast<double>(best->time));
}

// What is short of memory recomputes the cheapest bytes, no more of them than it needs.
TEST(CutStages, RecomputesTheCheapestFirst) {
  SegmentCosts costs;
  costs.segments.assign(2, {.time = 10, .heldBytes = 5, .activations = {20, 0, 0}, .savings = {{4, 1}, {10, 20}}});
  const PipelineShape shape = shapeOf(1, 1, 3);
  EXPECT_FALSE(withStages(costs, shape, 50, {0}).limited);
  const StageCut some = withStages(costs, shape, 44, {0});
  EXPECT_EQ(some.time, 3 * (20 + 2)) << "three quarters of the cheap savings, rounded up";
  EXPECT_EQ(some.peakBytes, 44);
  const StageCut more = withStages(costs, shape, 37, {0});
  EXPECT_EQ(more.time, 3 * (20 + 2 + 10));
  EXPECT_FALSE(withStages(costs, shape, 21, {0}).fits);
}

// What passes from the gradients of inputs to those of weights is held between them, as often as the schedule says.
TEST(CutStages, HoldsWhatPassesBetweenTheHalves) {
  SegmentCosts costs;
  costs.segments.assign(2, {.time = 10, .activations = {100, 0, 0}});
  costs.cutSegments.assign(2, {.time = 10, .activations = {60, 40, 30}});
  const std::vector<PipelineShape> shapes = pipelineShapes({.schedule = "zb_h1"}, 2, 1, 8, true);
  ASSERT_EQ(shapes.size(), 1U);
  const StageCut cut = cutStages(costs, shapes[0], 0);
  int64_t most = 0;
  for (const HeldMicroBatches& held : shapes[0].held) {
    most = std::max(most, 60 * held.toInputs + 40 * held.toWeights + 30 * held.between);
    EXPECT_GE(held.toWeights, held.toInputs);
  }
  EXPECT_EQ(cut.peakBytes, most);
}

// The last segment takes longer, on the submesh that also has the first stage of a V: while the others wait for the
// first micro-batches, it has enough to do. So a step takes less than where all wait as long.
TEST(CutStages, LongStagesFillTheTimeInWhichOthersWait) {
  SegmentCosts costs;
  costs.segments.assign(8, {.time = 3000});
  costs.segments.back().time = 3900;
  costs.transfer = 60;
  const std::vector<int> first = {0, 1, 2, 3, 4, 5, 6, 7};
  Picoseconds before = 0;
  for (const int32_t micro : {8, 16, 32, 64}) {
    const std::vector<PipelineShape> shapes = pipelineShapes({.schedule = "dualpipe_v"}, 4, 2, micro, true);
    ASSERT_EQ(shapes.size(), 1U);
    const absl::StatusOr<schedule::Table> table =
        schedule::generate({schedule::Kind::kDualPipeV, 4, 2, std::min(micro, 32)});
    ASSERT_TRUE(table.ok()) << table.status();
    schedule::Times times = {{}, 60};
    for (const SegmentCost& each : costs.segments) {
      const double third = static_cast<double>(each.time) / 3;
      times.stages.push_back({third, third, third, std::nullopt});
    }
    const absl::StatusOr<schedule::Simulation> simulated = schedule::simulate(*table, times);
    ASSERT_TRUE(simulated.ok()) << simulated.status();
    const Picoseconds time = withStages(costs, shapes[0], 0, first).time;
    if (micro <= 32) {
      EXPECT_EQ(time, std::llround(simulated->makespan)) << micro;
    } else {
      EXPECT_EQ(time - before, 32 * (3000 + 3900)) << "the pipeline is full, and the longest never waits";
    }
    EXPECT_LT(static_cast<double>(time), micro * 6900 + shapes[0].ramp * 3000) << micro;
    before = time;
  }
}

// A fluid cut is hardly above what any schedule and cut come to.
TEST(CutStages, FluidCutsAreHardlyAbove) {
  std::mt19937 generator(2);
  for (int round = 0; round < 200; ++round) {
    const int segments = 4 + static_cast<int>(generator() % 5);
    const SegmentCosts costs = randomCosts(generator, segments);
    const int64_t submeshes = 1 + static_cast<int64_t>(generator() % 4);
    const int64_t micro = 1 + static_cast<int64_t>(generator() % 6);
    Picoseconds longest = 0;
    for (const SegmentCost& each : costs.segments) {
      longest = std::max(longest, each.time);
    }
    const StageCut fluid =
        fluidCut(together(costs).segments[0], longest, LoosePipeline::underAny(submeshes, 1, micro), 0);
    for (const PipelineShape& shape : pipelineShapes({}, submeshes, 1, micro, true)) {
      const Picoseconds cut = cutStages(costs, shape, 0).time;
      EXPECT_LE(fluid.time, cut + 1) << shape.schedule;
      PipelineShape estimated = shape;
      estimated.table = nullptr;
      EXPECT_LE(fluidCut(together(costs).segments[0], longest, LoosePipeline::of(shape), 0).time,
                cutStages(costs, estimated, 0).time + 1)
          << shape.schedule;
      const StageCut loose = fluidCut(together(costs).segments[0], longest, LoosePipeline::of(shape), 0);
      EXPECT_LE(static_cast<double>(loose.time), 1.05 * static_cast<double>(cut) + 1) << shape.schedule;
    }
  }
}

}  // namespace
}  // namespace weft
