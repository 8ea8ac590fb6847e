// The cut of segments into stages, against every cut there is.
#include "planner/search/cut_stages.h"

#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <optional>
#include <random>

#include "absl/strings/str_cat.h"

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
    cost.activationBytes = 5 + below(20);
    cost.passingBytes = below(10);
    costs.kept.push_back(cost);
    cost.time += below(5);
    cost.activationBytes -= below(5);
    costs.recomputed.push_back(cost);
  }
  return costs;
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
  for (int round = 0; round < 500; ++round) {
    const int segments = 2 + static_cast<int>(generator() % 7);
    const SegmentCosts costs = randomCosts(generator, segments);
    const int64_t stages = 1 + static_cast<int64_t>(generator() % segments);
    const int64_t virtualStages = stages % 2 == 0 && generator() % 3 == 0 ? 2 : 1;
    const PipelineShape shape = {stages, virtualStages, 1 + static_cast<int64_t>(generator() % 6)};
    const int64_t limit = generator() % 2 == 0 ? 0 : 20 + static_cast<int64_t>(generator() % 300);
    std::optional<Picoseconds> shortest;
    std::vector<int> first;
    eachCut(segments, stages, first, [&] {
      const StageCut cut = withStages(costs, shape, limit, first);
      if (cut.fits) {
        shortest = std::min(shortest.value_or(std::numeric_limits<Picoseconds>::max()), cut.longest);
      }
    });
    SCOPED_TRACE(absl::StrCat("round ", round, ": ", segments, " segments, ", stages, " stages, limit ", limit));
    const StageCut found = cutStages(costs, shape, limit);
    EXPECT_EQ(found.fits, shortest.has_value());
    EXPECT_EQ(static_cast<int64_t>(found.first.size()), stages);
    if (shortest) {
      EXPECT_EQ(found.longest, *shortest);
      limited += found.limited ? 1 : 0;
    } else {
      ++none;
    }
  }
  EXPECT_GT(limited, 5);
  EXPECT_GT(none, 20);
}

// Two equal stages of three segments each take the ramp and then one micro-batch after the other.
TEST(CutStages, CountsTheRampOnce) {
  SegmentCosts costs;
  costs.kept.assign(6, {.time = 10, .onceTime = 2, .heldBytes = 7, .activationBytes = 3, .passingBytes = 1});
  costs.recomputed = costs.kept;
  const StageCut cut = cutStages(costs, {.stages = 2, .virtualStages = 1, .microBatches = 4}, 0);
  EXPECT_EQ(cut.first, (std::vector<int>{0, 3}));
  EXPECT_EQ(cut.longest, 30);
  EXPECT_EQ(cut.time, 6 + 60 + 3 * 30);
  EXPECT_EQ(cut.bound, 4 * 30);
  EXPECT_EQ(cut.peakBytes, 3 * 7 + 1 + 2 * 9) << "two micro-batches are in flight on the first";
  const StageCut turns = cutStages(costs, {.stages = 4, .virtualStages = 2, .microBatches = 4}, 0);
  EXPECT_EQ(turns.time, 3 * 2 + 30 + 7 * 20) << "half of the ramp; the longest have two segments";
  const StageCut one = cutStages(costs, {.stages = 6, .virtualStages = 2, .microBatches = 1}, 0);
  EXPECT_EQ(one.time, 2 * 2 + 60) << "a single micro-batch passes all stages one after the other";
}

}  // namespace
}  // namespace weft
