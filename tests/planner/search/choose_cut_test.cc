// The best cut of all splits and schedules, within what mode auto may decide.
#include "planner/search/choose_cut.h"

#include <gtest/gtest.h>

namespace weft {
namespace {

SegmentCosts costsOf(const std::vector<Picoseconds>& times, int64_t activations) {
  SegmentCosts costs;
  for (const Picoseconds time : times) {
    costs.segments.push_back({.time = time, .activations = {activations, 0, 0}});
  }
  return costs;
}

TEST(CutChooser, TakesTheBestSplitsAndSchedule) {
  const CompileOptions request;
  KnownShapes known;
  CutChooser cuts(request, {100, true, false}, known);
  const std::vector<PipelineShape> shapes = cuts.shapesOf({2, 1, "dp=1"}, 8);
  ASSERT_GT(shapes.size(), 1U);
  const std::optional<ChosenCut> best =
      cuts.best({{costsOf({10, 10, 10, 10}, 40), 0}, {costsOf({11, 11, 11, 11}, 4), 7}}, shapes);
  ASSERT_TRUE(best.has_value());
  EXPECT_TRUE(best->cut.fits);
  EXPECT_EQ(best->bytePrice, 7) << "the others need more than there is";
  for (const PipelineShape& shape : shapes) {
    EXPECT_LE(cuts.expected(best->cut), cuts.expected(cuts.best({{costsOf({11, 11, 11, 11}, 4), 7}}, {shape})->cut));
  }
  EXPECT_FALSE(cuts.best({{costsOf({10}, 1), 0}}, {}).has_value());
}

// Gathers that run again for the gradients of weights take time: they do where memory would be short without.
TEST(CutChooser, GathersAgainWhereMemoryIsShort) {
  CompileOptions request;
  request.schedule = "zb_h1";
  SegmentCosts costs = costsOf({10, 10, 10, 10}, 10);
  costs.cutSegments.assign(4, {.time = 10, .activations = {10, 0, 20}});
  costs.gatheringSegments.assign(4, {.time = 11, .activations = {10, 0, 4}});
  const auto bestWithin = [&](int64_t limit) {
    KnownShapes known;
    CutChooser cuts(request, {limit, true, false}, known);
    return cuts.best({{costs, 0}}, cuts.shapesOf({2, 1, "dp=1"}, 8))->cut;
  };
  const StageCut kept = bestWithin(0);
  EXPECT_EQ(kept.longest, 20);
  EXPECT_EQ(bestWithin(kept.peakBytes).longest, 20);
  const StageCut again = bestWithin(kept.peakBytes * 9 / 10);
  EXPECT_EQ(again.longest, 22);
  EXPECT_TRUE(again.fits);
}

TEST(CutChooser, MoreThanTheLimitCountsAsLonger) {
  const CompileOptions request;
  KnownShapes known;
  CutChooser cuts(request, {100, true, false}, known);
  StageCut cut{.time = 10, .peakBytes = 150, .fits = false};
  EXPECT_GT(cuts.expected(cut), 10);
  cut.fits = true;
  EXPECT_EQ(cuts.expected(cut), 10);
}

// As many segments for each, whatever they take.
TEST(CutChooser, EvenStagesWhereOthersAreTaken) {
  CompileOptions request;
  const SegmentCosts costs = costsOf({30, 10, 10, 10}, 1);
  for (const bool uneven : {true, false}) {
    request.without = uneven ? Freedoms() : Freedoms{Freedom::kUnevenStages};
    KnownShapes known;
    CutChooser cuts(request, {0, true, false}, known);
    const std::optional<ChosenCut> best = cuts.best({{costs, 0}}, cuts.shapesOf({2, 1, "dp=1"}, 8));
    ASSERT_TRUE(best.has_value());
    EXPECT_EQ(best->cut.first, (std::vector<int>{0, uneven ? 1 : 2}));
  }
}

// Four ranks, on as many cores and on two: a stage that waits leaves its core to one that has work, so that a pipeline
// takes hardly longer than ranks that do all of it together.
TEST(CutChooser, StagesThatWaitLeaveTheirCores) {
  const CompileOptions request{.schedule = "1f1b"};
  KnownShapes known;
  const auto timeOf = [&](int64_t submeshes, int64_t cores) {
    Machine machine;
    machine.cores = cores;
    CutChooser cuts(request, {0, true, false, machine}, known);
    const Picoseconds ofRank = 300 * submeshes;  // what a rank has to do of each segment
    const StageGrid grid = {submeshes, 1, submeshes == 1 ? "dp=4" : "dp=1"};
    const std::optional<ChosenCut> best =
        cuts.best({{costsOf({ofRank, ofRank, ofRank, ofRank}, 1), 0}}, cuts.shapesOf(grid, 8));
    EXPECT_TRUE(best.has_value());
    return best ? best->cut.time : 0;
  };
  EXPECT_EQ(timeOf(1, 0), 8 * 1200);
  EXPECT_EQ(timeOf(4, 0), (8 + 3) * 1200);
  EXPECT_EQ(timeOf(1, 2), 2 * 8 * 1200);
  EXPECT_GE(timeOf(4, 2), 2 * 8 * 1200);
  EXPECT_LE(timeOf(4, 2), 2 * 9 * 1200);
  EXPECT_EQ(timeOf(4, 1), 4 * 8 * 1200);
}

}  // namespace
}  // namespace weft
