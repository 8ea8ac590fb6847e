// Stages of a plan that was found, cut between finer blocks and moved while predictions get better.
#include "planner/search/refine_stages.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <set>
#include <utility>

#include "tests/planner/search/two_product_layers.h"

namespace weft::testing {
namespace {

constexpr int64_t kLayers = 4;

int64_t operatorsOfFirstStage(const ProgramGraph& graph) {
  int64_t count = 0;
  for (const GraphOperator& op : graph.operators) {
    count += op.userStage.value_or(0) == 0 ? 1 : 0;
  }
  return count;
}

// Two stages of the program, cut behind the first layer; predictions take as long as the first stage has operators more
// or less than `best`.
class RefineStages : public ::testing::Test {
 protected:
  void SetUp() override { setUp(twoProductLayers(kLayers)); }
  void setUp(std::shared_ptr<const ProgramGraph> graph) {
    const absl::StatusOr<BlockProgram> program = BlockProgram::create(std::move(graph), sketch_.request);
    ASSERT_TRUE(program.ok()) << program.status();
    program_ = *program;
  }

  ClosedRequest refined(int64_t best) {
    asked_ = 0;
    const PredictOnStages predict = [&](const ClosedRequest& plan, const BlockProgram& program,
                                        const std::vector<int>& stages, Picoseconds) {
      ++asked_;
      stages_.insert(stages.back());
      EXPECT_EQ(plan.request.micro, sketch_.request.micro);
      return absl::StatusOr<ClosedRequest>(planOn(program.withStages(stages), best));
    };
    const ClosedRequest found = planOn(program_->onStages(sketch_.cut.first), best);
    PlanningMemo memo;
    return refineStages({{sketch_, *program_, found}}, predict, memo).front();
  }

  // A plan of 4 micro-batches that takes 3 on any stages, and one of 8 that takes as long as `best` says; both `more`.
  std::vector<ClosedRequest> refinedBeside(int64_t best, Picoseconds more = 0) {
    const PredictOnStages predict = [&](const ClosedRequest& plan, const BlockProgram& program,
                                        const std::vector<int>& stages, Picoseconds) {
      ClosedRequest made = planOn(program.withStages(stages), best);
      made.request = plan.request;
      made.attempt.time = more + (plan.request.micro == 8 ? made.attempt.time : 3);
      return absl::StatusOr<ClosedRequest>(made);
    };
    Sketch other = sketch_;
    other.request.micro = 8;
    const auto planOf = [&](const Sketch& sketch) {
      return *predict({sketch.request, nullptr, {}}, *program_, program_->stagesOf(sketch.cut.first), kAnyTime);
    };
    EXPECT_GT(planOf(other).attempt.time, planOf(sketch_).attempt.time);
    PlanningMemo memo;
    return refineStages({{sketch_, *program_, planOf(sketch_)}, {other, *program_, planOf(other)}}, predict, memo);
  }

  ClosedRequest planOn(const ProgramGraph& staged, int64_t best) const {
    ClosedRequest made = {sketch_.request, std::make_shared<const ProgramGraph>(staged), {}};
    made.attempt.time = 1 + std::abs(operatorsOfFirstStage(staged) - best);
    made.attempt.fits = true;
    return made;
  }

  Sketch sketch_ = {{.mode = Mode::kLayouts, .mesh = "dp=1", .micro = 4}, {2, 1, "dp=1"}, {.first = {0, 1}}, {}};
  std::optional<BlockProgram> program_;
  int64_t asked_ = 0;
  std::set<int> stages_;  // of the last operator, in all that was asked
};

TEST_F(RefineStages, FinerBlocksBeginAtEachParameter) {
  EXPECT_EQ(program_->blocks(), kLayers + 1) << "the sum";
  const absl::StatusOr<BlockProgram> finer = program_->finer(sketch_.request);
  ASSERT_TRUE(finer.ok()) << finer.status();
  EXPECT_EQ(finer->blocks(), 2 * kLayers + 1);
  EXPECT_EQ(operatorsOfFirstStage(finer->onStages({0, 3})), 3 * kLayerOperators / 2);
  PlanningMemo memo;
  const absl::StatusOr<SegmentCosts> costs = finer->costs(sketch_.request, false, 0, memo);
  ASSERT_TRUE(costs.ok()) << costs.status();
  ASSERT_EQ(costs->segments.size(), 2U * kLayers + 1);
  for (size_t b = 2; b < 2U * kLayers; ++b) {
    EXPECT_EQ(costs->segments[b].parameterBytes, costs->segments[b % 2].parameterBytes) << b;
  }
}

TEST_F(RefineStages, MovesBordersWithinLayers) {
  const ClosedRequest made = refined(5 * kLayerOperators / 2);
  EXPECT_EQ(made.attempt.time, 1);
  EXPECT_EQ(operatorsOfFirstStage(*made.graph), 5 * kLayerOperators / 2);
  EXPECT_EQ(made.ticks, 1) << "what finer blocks need; predictions count where they are kept";
}

TEST_F(RefineStages, KeepsWhatIsBest) {
  const ClosedRequest made = refined(kLayerOperators);
  EXPECT_EQ(made.attempt.time, 1);
  EXPECT_EQ(operatorsOfFirstStage(*made.graph), kLayerOperators);
}

// Beside a plan that takes 3, another is longer at first. Its stages are cut anew in the middle.
TEST_F(RefineStages, WhatTakesLongerMayBeTheBestOnceCutAnew) {
  const std::vector<ClosedRequest> made = refinedBeside(2 * kLayerOperators);
  ASSERT_EQ(made.size(), 2U);
  EXPECT_EQ(made[0].attempt.time, 3);
  EXPECT_EQ(made[1].attempt.time, 1);
  EXPECT_EQ(operatorsOfFirstStage(*made[1].graph), 2 * kLayerOperators);
}

TEST_F(RefineStages, WhatTakesLongerMayBeTheBestOnceItsBordersAreMoved) {
  const std::vector<ClosedRequest> made = refinedBeside(7 * kLayerOperators / 2);
  ASSERT_EQ(made.size(), 2U);
  EXPECT_EQ(made[0].attempt.time, 3);
  EXPECT_EQ(made[1].attempt.time, 1);
  EXPECT_EQ(operatorsOfFirstStage(*made[1].graph), 7 * kLayerOperators / 2);
}

// In a program that is not tiny borders are moved of what takes about as long as the best, and of nothing else.
TEST_F(RefineStages, WhatTakesAboutAsLongMayBeTheBestOnceItsBordersAreMoved) {
  constexpr int64_t kMany = 70;
  setUp(twoProductLayers(kMany));
  ASSERT_GT(program_->graph().operators.size(), kOperatorsOfTiny);
  const int64_t best = (kMany / 2 + 3) * kLayerOperators;
  const std::vector<ClosedRequest> near = refinedBeside(best, 2000);
  EXPECT_EQ(near[0].attempt.time, 2003);
  EXPECT_EQ(near[1].attempt.time, 2001);
  EXPECT_EQ(operatorsOfFirstStage(*near[1].graph), best);
  EXPECT_GT(refinedBeside(best, 200)[1].attempt.time, 203);
}

// What works on the input alone stands behind the layers: it runs with its readers, in the first stage, or with them. A
// stage that the user names is none of these.
TEST_F(RefineStages, WhatWorksOnInputsAloneRunsElsewhereButForTheUsersWord) {
  ProgramGraph graph = *twoProductLayers(kLayers);
  GraphOperator& early = graph.operators.emplace_back();
  early.id = graph.nextId++;
  early.facts = kRelu;
  early.operands = graph.operators.front().operands;
  early.operands.resize(1);
  early.results = {{{kLayerRows, kNarrow}, DType::kF32}};
  graph.results.push_back({{early.id, 0}, std::nullopt});
  setUp(std::make_shared<const ProgramGraph>(graph));
  refined(2 * kLayerOperators);
  EXPECT_EQ(stages_, (std::set<int>{kNoStage, 0, 1}));
  stages_.clear();
  graph.operators.back().userStage = 0;
  setUp(std::make_shared<const ProgramGraph>(graph));
  refined(2 * kLayerOperators);
  EXPECT_EQ(stages_, std::set<int>{kNoStage});
}

TEST_F(RefineStages, AsksNothingWhereStagesAreToBeAlike) {
  sketch_.request.without = {Freedom::kUnevenStages};
  refined(5 * kLayerOperators / 2);
  EXPECT_EQ(asked_, 0);
}

}  // namespace
}  // namespace weft::testing
