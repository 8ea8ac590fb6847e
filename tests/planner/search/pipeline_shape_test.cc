// What kinds of schedule hold and how long they idle, against the table in planner/schedule/generate.h.
#include "planner/search/pipeline_shape.h"

#include <gtest/gtest.h>

namespace weft {
namespace {

PipelineShape shapeOf(const std::string& kind, int64_t submeshes, int64_t virtualStages, int64_t microBatches) {
  const std::vector<PipelineShape> shapes =
      pipelineShapes({.schedule = kind}, submeshes, virtualStages, microBatches, true);
  EXPECT_EQ(shapes.size(), 1U) << kind;
  return shapes.at(0);
}

TEST(PipelineShape, IdlesAsThePapersSay) {
  EXPECT_DOUBLE_EQ(shapeOf("1f1b", 4, 1, 12).ramp, 3);
  EXPECT_DOUBLE_EQ(shapeOf("1f1b", 4, 1, 480).ramp, 3) << "whatever comes after the pipeline is full";
  EXPECT_DOUBLE_EQ(shapeOf("interleaved", 4, 2, 16).ramp, 3) << "half as many times of two stages";
  EXPECT_DOUBLE_EQ(shapeOf("zb_h1", 4, 1, 12).ramp, 1);
}

TEST(PipelineShape, HoldsAsThePapersSay) {
  const PipelineShape plain = shapeOf("1f1b", 4, 1, 12);
  for (int64_t stage = 0; stage < 4; ++stage) {
    EXPECT_EQ(plain.held[stage], (HeldMicroBatches{4 - stage, 4 - stage, 0})) << stage;
  }
  const PipelineShape late = shapeOf("zb_h1", 4, 1, 12);
  EXPECT_TRUE(late.cutsBackward);
  for (int64_t stage = 0; stage < 4; ++stage) {
    EXPECT_LE(late.held[stage].toWeights, 4) << stage;
  }
  EXPECT_GT(late.held[3].between, 1) << "gradients of weights wait on the last stage";
}

// What a kind says of itself is what its tables do.
TEST(PipelineShape, KindsKnowWhetherTheyCutTheBackwardPass) {
  int cut = 0;
  for (const int64_t virtualStages : {1, 2}) {
    for (const schedule::Kind kind : kindsFor({}, virtualStages)) {
      const PipelineShape shape = shapeOf(schedule::kindName(kind), 4, virtualStages, 12);
      EXPECT_EQ(shape.cutsBackward, schedule::cutsBackward(kind)) << shape.schedule;
      cut += shape.cutsBackward ? 1 : 0;
    }
  }
  EXPECT_GT(cut, 3);
}

TEST(PipelineShape, LeavesOutWhatAnotherKindBeats) {
  const std::vector<PipelineShape> all = pipelineShapes({}, 4, 1, 12, true);
  ASSERT_GT(all.size(), 1U);
  for (size_t i = 1; i < all.size(); ++i) {
    EXPECT_GE(all[i].ramp, all[i - 1].ramp);
    EXPECT_NE(all[i].schedule, "gpipe");
    int64_t fewer = 0;  // stages that hold less than under the kind before
    for (size_t stage = 0; stage < all[i].held.size(); ++stage) {
      const HeldMicroBatches& mine = all[i].held[stage];
      const HeldMicroBatches& other = all[i - 1].held[stage];
      fewer += mine.toInputs < other.toInputs || mine.toWeights < other.toWeights || mine.between < other.between;
    }
    EXPECT_GT(fewer, 0) << all[i].schedule << " is longer than " << all[i - 1].schedule << " and holds as much";
  }
  EXPECT_TRUE(pipelineShapes({.schedule = "dualpipe_v"}, 4, 2, 3, true).empty()) << "it needs 2 p micro-batches";
  EXPECT_EQ(pipelineShapes({}, 4, 1, 12, false).size(), 1U) << "without a backward pass there is one order";
}

// What was found stands only for requests that say the same of schedules.
TEST(PipelineShape, KnownShapesAreThoseOfTheRequest) {
  KnownShapes known;
  const CompileOptions open;
  const CompileOptions given = {.schedule = "1f1b"};
  const CompileOptions uncut = {.without = {Freedom::kZeroBubble}};
  for (const CompileOptions& request : {open, given, uncut, open}) {
    for (const int64_t virtualStages : {1, 2}) {
      for (const bool trains : {true, false}) {
        const std::vector<PipelineShape> mine = known.of(request, 4, virtualStages, 12, trains);
        const std::vector<PipelineShape> all = pipelineShapes(request, 4, virtualStages, 12, trains);
        ASSERT_EQ(mine.size(), all.size());
        for (size_t i = 0; i < all.size(); ++i) {
          EXPECT_EQ(mine[i].schedule, all[i].schedule);
          EXPECT_EQ(mine[i].held, all[i].held);
        }
      }
    }
  }
}

}  // namespace
}  // namespace weft
