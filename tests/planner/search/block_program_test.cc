// What a few layers say of many: the needs of a long program's blocks are those that all of its layers have.
#include "planner/search/block_program.h"

#include <gtest/gtest.h>

#include "planner/check_request.h"
#include "tests/planner/search/chain_program.h"
#include "tests/planner/search/two_product_layers.h"

namespace weft::testing {
namespace {

bool same(const SegmentCost& a, const SegmentCost& b) {
  return a.time == b.time && a.onceTime == b.onceTime && a.bytesOfStep() == b.bytesOfStep() &&
         a.activations.all() == b.activations.all() && a.passingBytes == b.passingBytes && a.savings == b.savings;
}

TEST(BlockProgram, LeftOutLayersNeedWhatTheyNeed) {
  const ProgramGraph graph = chainProgram({.layers = 9, .rows = 256, .width = 64}).graph;
  for (const char* mesh : {"dp=4", "dp=2,tp=2", "tp=4"}) {
    for (const int zero : {0, 1, 3}) {
      const CompileOptions closed = {.mode = Mode::kLayouts, .mesh = mesh, .micro = 2, .zero = zero};
      const absl::StatusOr<BlockProgram> program =
          BlockProgram::create(std::make_shared<const ProgramGraph>(graph), closed);
      ASSERT_TRUE(program.ok()) << program.status();
      EXPECT_TRUE(program->isShort());
      PlanningMemo memo;
      const absl::StatusOr<SegmentCosts> found = program->costs(closed, false, 0, memo);
      ASSERT_TRUE(found.ok()) << found.status();
      std::vector<int> first;
      for (int b = 0; b < program->blocks(); ++b) {
        first.push_back(b);
      }
      const absl::StatusOr<SegmentCosts> all = segmentCosts(program->onStages(first), closed, 0, memo);
      ASSERT_TRUE(all.ok()) << all.status();
      ASSERT_EQ(found->segments.size(), all->segments.size());
      for (size_t b = 0; b < all->segments.size(); ++b) {
        const SegmentCost& mine = found->segments[b];
        EXPECT_TRUE(same(mine, all->segments[b]))
            << mesh << ", zero " << zero << ", block " << b << ": " << mine.time << " and " << all->segments[b].time;
      }
      EXPECT_EQ(found->transfer, all->transfer);
    }
  }
}

// The user's stages of whole layers need what these need together, and few layers are asked about.
TEST(BlockProgram, StagesOfTheUserNeedWhatTheirLayersNeed) {
  const CompileOptions closed = {.mode = Mode::kLayouts, .mesh = "dp=2,tp=2", .micro = 2, .zero = 1};
  const absl::StatusOr<BlockProgram> open = BlockProgram::create(
      std::make_shared<const ProgramGraph>(chainProgram({.layers = 9, .rows = 256, .width = 64}).graph), closed);
  ASSERT_TRUE(open.ok()) << open.status();
  const std::vector<int> first = {0, 2, 5};
  const ProgramGraph staged = open->onStages(first);
  const absl::StatusOr<BlockProgram> program =
      BlockProgram::create(std::make_shared<const ProgramGraph>(staged), closed);
  ASSERT_TRUE(program.ok()) << program.status();
  EXPECT_TRUE(program->areStages());
  EXPECT_TRUE(program->isShort());
  EXPECT_EQ(program->blocks(), 3);
  PlanningMemo memo;
  const absl::StatusOr<SegmentCosts> blocks = open->costs(closed, false, 0, memo);
  const absl::StatusOr<SegmentCosts> found = program->costs(closed, false, 0, memo);
  const absl::StatusOr<SegmentCosts> whole = segmentCosts(staged, closed, 0, memo);
  ASSERT_TRUE(blocks.ok() && found.ok() && whole.ok());
  ASSERT_EQ(found->segments.size(), first.size());
  ASSERT_EQ(found->cutSegments.size(), first.size());
  for (size_t s = 0; s < first.size(); ++s) {
    const int end = s + 1 < first.size() ? first[s + 1] : open->blocks();
    SegmentCost sum, cut;
    for (int b = first[s]; b < end; ++b) {
      sum += blocks->segments[b];
      cut += blocks->cutSegments[b];
    }
    EXPECT_TRUE(same(found->segments[s], sum)) << s;
    EXPECT_TRUE(same(found->cutSegments[s], cut)) << s;
    const auto time = static_cast<double>(whole->segments[s].time);
    EXPECT_NEAR(static_cast<double>(found->segments[s].time), time, 0.03 * time) << s;
    EXPECT_EQ(found->segments[s].bytesOfStep(), whole->segments[s].bytesOfStep()) << s;
  }
}

// Words of options about stages are no words about blocks.
TEST(BlockProgram, StagesWithWordsOfOptionsAreAskedAboutAsTheyAre) {
  const auto staged =
      std::make_shared<const ProgramGraph>(chainProgram({.layers = 9, .rows = 256, .width = 64, .stages = 3}).graph);
  const auto isShort = [&](const CompileOptions& request) {
    const absl::StatusOr<BlockProgram> program = BlockProgram::create(staged, request);
    EXPECT_TRUE(program.ok()) << program.status();
    return program.ok() && program->isShort();
  };
  EXPECT_TRUE(isShort({.mode = Mode::kLayouts, .mesh = "dp=4"}));
  EXPECT_FALSE(isShort({.mode = Mode::kLayouts, .stageMeshes = "dp=4;dp=2,tp=2;tp=4"}));
  EXPECT_FALSE(isShort({.mode = Mode::kLayouts, .mesh = "dp=4", .stages = {{"w0", {0}}}}));
}

TEST(BlockProgram, StagesThatCutALayerAreAskedAboutAsTheyAre) {
  ProgramGraph staged = chainProgram({.layers = 9, .rows = 256, .width = 64}).graph;
  const CompileOptions closed = {.mode = Mode::kLayouts, .mesh = "tp=4", .micro = 2, .zero = 0};
  const absl::StatusOr<BlockProgram> open = BlockProgram::create(std::make_shared<const ProgramGraph>(staged), closed);
  ASSERT_TRUE(open.ok()) << open.status();
  const std::vector<int>& blockOf = open->blockOf();
  const auto second = std::ranges::find(blockOf, 4) + 1;
  ASSERT_EQ(*second, 4) << "a layer has several operators";
  for (auto block = second; block != blockOf.end(); ++block) {
    staged.operators[block - blockOf.begin()].userStage = 1;
  }
  const absl::StatusOr<BlockProgram> program =
      BlockProgram::create(std::make_shared<const ProgramGraph>(staged), closed);
  ASSERT_TRUE(program.ok()) << program.status();
  EXPECT_TRUE(program->areStages());
  EXPECT_FALSE(program->isShort());
  PlanningMemo memo;
  const absl::StatusOr<SegmentCosts> found = program->costs(closed, false, 0, memo);
  const absl::StatusOr<SegmentCosts> whole = segmentCosts(staged, closed, 0, memo);
  ASSERT_TRUE(found.ok() && whole.ok());
  ASSERT_EQ(found->segments.size(), 2);
  for (int s = 0; s < 2; ++s) {
    EXPECT_TRUE(same(found->segments[s], whole->segments[s])) << s;
  }
}

// Two stages of whole products, one of which ends within a layer.
TEST(BlockProgram, StagesWithinLayersNeedWhatTheirProductsNeed) {
  const CompileOptions closed = {.mode = Mode::kLayouts, .mesh = "dp=2,tp=2", .micro = 2, .zero = 0};
  const absl::StatusOr<BlockProgram> open = BlockProgram::create(twoProductLayers(9), closed);
  ASSERT_TRUE(open.ok()) << open.status();
  const absl::StatusOr<BlockProgram> finer = open->finer(closed);
  ASSERT_TRUE(finer.ok()) << finer.status();
  const int border = 7;  // products
  const absl::StatusOr<BlockProgram> program =
      BlockProgram::create(std::make_shared<const ProgramGraph>(finer->onStages({0, border})), closed);
  ASSERT_TRUE(program.ok()) << program.status();
  EXPECT_TRUE(program->areStages());
  EXPECT_TRUE(program->isShort());
  PlanningMemo memo;
  const absl::StatusOr<SegmentCosts> found = program->costs(closed, false, 0, memo);
  const absl::StatusOr<SegmentCosts> blocks = finer->costs(closed, false, 0, memo);
  ASSERT_TRUE(found.ok() && blocks.ok());
  ASSERT_EQ(found->segments.size(), 2);
  std::vector<SegmentCost> sums(2);
  for (int b = 0; b < finer->blocks(); ++b) {
    sums[b < border ? 0 : 1] += blocks->segments[b];
  }
  EXPECT_TRUE(same(found->segments[0], sums[0]));
  EXPECT_TRUE(same(found->segments[1], sums[1]));
}

// A program takes as long to predict whether or not it can be asked about in short.
TEST(BlockProgram, WhatIsLongHasManyOperators) {
  for (const bool staged : {false, true}) {
    ProgramGraph graph = chainProgram({.layers = 800, .rows = 8, .width = 8}).graph;
    ASSERT_GT(graph.operators.size(), kOperatorsOfLong);
    GraphOperator& lastRelu = graph.operators[2 * 800 - 1];
    lastRelu.userStage = staged ? std::optional<int64_t>(1) : std::nullopt;
    const absl::StatusOr<BlockProgram> program = BlockProgram::create(std::make_shared<const ProgramGraph>(graph), {});
    ASSERT_TRUE(program.ok()) << program.status();
    EXPECT_EQ(program->areStages(), staged);
    EXPECT_EQ(program->isShort(), !staged);
    EXPECT_TRUE(program->isLong());
  }
}

// Neither rows nor columns divide; with a column more of the weights these do.
TEST(BlockProgram, WhatDoesNotDivideNeedsAsMuchAsWithAPad) {
  const auto timeOf = [](int64_t width) {
    const ProgramGraph graph = chainProgram({.layers = 4, .rows = 255, .width = width}).graph;
    const CompileOptions closed = {
        .mode = Mode::kLayouts, .mesh = "tp=4", .machine = "a100-80g", .micro = 1, .zero = 0};
    PlanningMemo memo;
    const absl::StatusOr<SegmentCosts> costs = segmentCosts(graph, closed, 0, memo);
    EXPECT_TRUE(costs.ok()) << costs.status();
    return costs.ok() ? together(*costs).segments[0].time : 0;
  };
  const Picoseconds even = timeOf(8192);
  EXPECT_GE(timeOf(8191), even);
  EXPECT_LT(timeOf(8191), even + even / 4) << "all but the first layer, which sums over columns of the input";
}

// relu(x w0) w1 + relu(x): what works on the input alone is on no block's stage, but may be given one.
TEST(BlockProgram, StagesByNumberAreThoseOfAllForwardOperators) {
  const Shape square = {8, 8};
  GraphBuilder b;
  const GraphValue x = b.input("x", square);
  const GraphValue early = b.add(kRelu, {x}, square);
  const GraphValue h = b.add(kRelu, {b.add(kMatmul, {x, b.parameter("w0", square)}, square)}, square);
  b.returns(b.add(kAdd, {b.add(kMatmul, {h, b.parameter("w1", square)}, square), early}, square));
  const absl::StatusOr<BlockProgram> program = BlockProgram::create(std::make_shared<const ProgramGraph>(b.graph), {});
  ASSERT_TRUE(program.ok()) << program.status();
  EXPECT_EQ(program->stagesOf({0, 2}), (std::vector<int>{kNoStage, 0, 0, 1, 1}));
  EXPECT_FALSE(program->onStages({0, 2}).operators[0].userStage);
  std::map<int64_t, int64_t> stageOf;
  for (const GraphOperator& op : b.graph.operators) {
    stageOf[op.id] = op.id < 3 ? 0 : 1;
  }
  const ProgramGraph staged = program->onStagesOf(stageOf);
  for (const GraphOperator& op : staged.operators) {
    EXPECT_EQ(op.userStage, stageOf.at(op.id)) << op.id;
  }
}

}  // namespace
}  // namespace weft::testing
