#include "planner/step/value_layouts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>

#include "tests/planner/step/step_case.h"

namespace weft::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Linear in its operand, and cheap.
const OperatorFacts kScale = {"neg", "a b -> a b", {{0}}, /*passesSums=*/true};
// dw = x^T dy: what a split batch `m` leaves is a partial sum.
const OperatorFacts kWeightGrad = {"contract", "m+ k, m+ n -> k n", {{0}, {1}}};

// x [8, 4] and y [8, 6] make a sum over the batch, s [4, 6]; tests add its readers.
class StepLayoutsTest : public ::testing::Test {
 protected:
  StepLayoutsTest() {
    x_ = b_.input("x", {8, 4});
    y_ = b_.input("y", {8, 6});
    sum_ = b_.add(kWeightGrad, {x_, y_}, {4, 6});
  }

  // A reader of values like the sum.
  GraphValue add(const OperatorFacts& facts, const std::vector<GraphValue>& operands, Phase phase = Phase::kForward) {
    const GraphValue made = b_.add(facts, operands, {4, 6});
    b_.last().phase = phase;
    return made;
  }

  // The record in which the batch is split over dp, and over the micro-batches if there are several.
  Decisions record(const std::string& mesh = "dp=2") {
    Decisions made = openRecord(b_.graph, mesh);
    made.arguments[0].layout = made.arguments[1].layout = layoutOn(made.mesh, "[{dp},{}]");
    made.operators[0].axes["m"] = axesOn(made.mesh, "dp");
    made.operators[0].batch = "m";
    made.operators[0].perMicroBatch = made.mesh.microBatches() > 1;
    return made;
  }

  void assign(const Decisions& record) {
    decisions_ = record;
    absl::StatusOr<StepLayouts> made = layoutsOf(GraphView(b_.graph), record);
    ASSERT_TRUE(made.ok()) << made.status();
    layouts_.emplace(*std::move(made));
  }

  std::string print(const Layout& layout, int64_t stage = 0) const {
    return layout.print(decisions_.meshes().ofStage(stage));
  }
  std::string made(const GraphValue& value) const {
    return print(layouts_->values[GraphView(b_.graph).valueOf(value)]);
  }
  std::string seen(const GraphValue& value) const { return print(layouts_->seen[GraphView(b_.graph).valueOf(value)]); }
  std::string read(const GraphValue& reader, unsigned operand = 0) const {
    const OperatorLayouts& op = layouts_->operators[reader.producer];
    return print(op.reads[operand], op.place.stage);
  }

  GraphBuilder b_;
  GraphValue x_, y_, sum_;
  Decisions decisions_;
  std::optional<StepLayouts> layouts_;
};

TEST_F(StepLayoutsTest, CheapLinearOperatorsPassASumOnOthersReadItReduced) {
  const GraphValue scaled = add(kScale, {sum_});
  const GraphValue relu = add(kRelu, {scaled});
  assign(record());
  EXPECT_EQ(read(sum_, 0), "[{dp},{}]");
  EXPECT_EQ(made(sum_), "[{},{}] partial{dp:sum}");
  EXPECT_EQ(read(scaled), "[{},{}] partial{dp:sum}");
  EXPECT_EQ(made(scaled), "[{},{}] partial{dp:sum}");
  EXPECT_EQ(read(relu), "[{},{}]");
  EXPECT_EQ(made(relu), "[{},{}]");
  EXPECT_EQ(layouts_->operators[0].place, (Place{RunsIn::kForward, 0}));
}

TEST_F(StepLayoutsTest, OnlySumsPass) {
  const GraphValue greatest = b_.add({.kind = "max", .rule = "m+ k -> k", .reduce = {ReduceKind::kMax}}, {x_}, {4});
  const GraphValue scaled = b_.add({"neg", "a -> a", {{0}}, true}, {greatest}, {4});
  Decisions asked = record();
  asked.operators[1].axes["m"] = axesOn(asked.mesh, "dp");
  assign(asked);
  EXPECT_EQ(made(greatest), "[{}] partial{dp:max}");
  EXPECT_EQ(read(scaled), "[{}]");
}

TEST_F(StepLayoutsTest, AnAdditionPassesASumThatBothOperandsHold) {
  const GraphValue both = add(kAdd, {sum_, sum_});
  const GraphValue one = add(kAdd, {both, b_.input("whole", {4, 6})});
  assign(record());
  EXPECT_EQ(read(both, 0), "[{},{}] partial{dp:sum}");
  EXPECT_EQ(made(both), "[{},{}] partial{dp:sum}");
  EXPECT_EQ(read(one, 0), "[{},{}]");
  EXPECT_EQ(made(one), "[{},{}]");
}

TEST_F(StepLayoutsTest, ASumDoesNotPassBesideAnotherReductionOfItsAxis) {
  const GraphValue images = b_.input("images", {8, 4, 6});
  const GraphValue greatest = add({.kind = "max", .rule = "m+ k n -> k n", .reduce = {ReduceKind::kMax}}, {images});
  const GraphValue both = add(kAdd, {sum_, greatest});
  Decisions asked = record();
  asked.operators[1].axes["m"] = axesOn(asked.mesh, "dp");
  assign(asked);
  EXPECT_EQ(read(both, 0), "[{},{}]");
  EXPECT_EQ(read(both, 1), "[{},{}]");
}

// One factor of a product stays partial, over one axis or several; the other is reduced.
TEST_F(StepLayoutsTest, AProductPassesTheSumsOfOneFactor) {
  const GraphValue u = b_.input("u", {8, 4});
  const GraphValue v = b_.input("v", {8, 6});
  const GraphValue other = add(kWeightGrad, {u, v});
  const GraphValue product = add({"mul", "a b, a b -> a b", {{0}, {1}}, /*passesSums=*/true}, {sum_, other});
  Decisions asked = record("dp=2,tp=2");
  asked.operators[1].axes["m"] = axesOn(asked.mesh, "tp");
  assign(asked);
  EXPECT_EQ(read(product, 0), "[{},{}] partial{dp:sum}");
  EXPECT_EQ(read(product, 1), "[{},{}]");
  EXPECT_EQ(made(product), "[{},{}] partial{dp:sum}");
}

TEST_F(StepLayoutsTest, WhatSplitsOverTheAxisOfASumReadsItReduced) {
  const GraphValue scaled = add(kScale, {sum_});
  Decisions asked = record();
  asked.operators[1].axes["a"] = axesOn(asked.mesh, "dp");
  assign(asked);
  EXPECT_EQ(read(scaled), "[{dp},{}]");
  EXPECT_EQ(made(scaled), "[{dp},{}]");
}

TEST_F(StepLayoutsTest, TheGradientOfAParameterIsFinishedFromTheWholeSum) {
  const GraphValue finished = add(kScale, {sum_}, Phase::kBackward);
  b_.last().gradientOf = "w";
  assign(record());
  EXPECT_EQ(read(finished), "[{},{}]");
}

// Each would have what it makes of the sum reduced.
TEST_F(StepLayoutsTest, ASumThatSeveralReadIsReducedOnceBeforeThem) {
  const GraphValue scaled = add(kScale, {sum_});
  const GraphValue relu = add(kRelu, {sum_});
  const GraphValue backward = add(kScale, {sum_}, Phase::kBackward);
  assign(record());
  EXPECT_EQ(read(scaled), "[{},{}]");
  EXPECT_EQ(read(relu), "[{},{}]");
  EXPECT_EQ(read(backward), "[{},{}]");
}

// The sum of both is reduced, whoever else reads one of them reduced.
TEST_F(StepLayoutsTest, AnAdditionPassesSumsThatOthersReadToo) {
  const GraphValue other = add(kWeightGrad, {x_, y_});
  const GraphValue relu = add(kRelu, {sum_});
  const GraphValue both = add(kAdd, {sum_, other});
  Decisions split = record();
  split.operators[1].axes["m"] = axesOn(split.mesh, "dp");
  assign(split);
  EXPECT_EQ(read(relu), "[{},{}]");
  EXPECT_EQ(made(both), "[{},{}] partial{dp:sum}");
}

TEST_F(StepLayoutsTest, SumsOverMicroBatchesPassUntilTheUpdate) {
  const GraphValue scaled = add(kScale, {sum_}, Phase::kBackward);
  const GraphValue update = add(kScale, {scaled}, Phase::kUpdate);
  assign(record("dp=2,micro=2"));
  EXPECT_EQ(read(sum_, 0), "[{dp,micro},{}]");
  EXPECT_EQ(made(sum_), "[{},{}] partial{dp:sum,micro:sum}");
  EXPECT_EQ(made(scaled), "[{},{}] partial{dp:sum,micro:sum}");
  EXPECT_EQ(read(update), "[{},{}] partial{dp:sum}") << "accumulated, and reduced over ranks behind";
  EXPECT_EQ(layouts_->operators[0].axes[0].size(), 2U);
}

// Of `~` the time axis alone is taken.
TEST_F(StepLayoutsTest, StatisticsHaveARowForEachMicroBatch) {
  const GraphValue statistic = b_.add({"channel_sum", "n+ c -> p~ c", {{0}}}, {x_}, {2, 4});
  Decisions asked = record("dp=2,micro=2");
  asked.operators[1].axes["n"] = axesOn(asked.mesh, "dp");
  asked.operators[1].batch = "n";
  asked.operators[1].perMicroBatch = true;
  assign(asked);
  EXPECT_EQ(made(statistic), "[{micro},{}] partial{dp:sum}");
}

TEST_F(StepLayoutsTest, ReadersSeeTheLayoutThatWasAskedFor) {
  const GraphValue scaled = add(kScale, {sum_});
  Decisions asked = record();
  asked.operators[0].results[0] = layoutOn(asked.mesh, "[{dp},{}]");
  asked.operators[1].axes["a"] = axesOn(asked.mesh, "dp");
  assign(asked);
  EXPECT_EQ(made(sum_), "[{},{}] partial{dp:sum}");
  EXPECT_EQ(seen(sum_), "[{dp},{}]");
  EXPECT_EQ(read(scaled), "[{dp},{}]");
  EXPECT_EQ(seen(scaled), made(scaled));
}

TEST_F(StepLayoutsTest, AskedLayoutsKeepPadsAndMicroBatches) {
  const Mesh mesh = *Mesh::parse("dp=2,micro=2");
  const Layout left = layoutOn(mesh, "[{micro},{}] pad{0:12}");
  EXPECT_EQ(askedLayout(layoutOn(mesh, "[{dp},{}] pad{1:8}"), left, mesh), layoutOn(mesh, "[{dp,micro},{}] pad{0:12}"));
  EXPECT_EQ(askedLayout(layoutOn(mesh, "[{},{dp}]"), layoutOn(mesh, "[{},{}]"), mesh), layoutOn(mesh, "[{},{dp}]"));
}

TEST_F(StepLayoutsTest, PadsOfArgumentsSpread) {
  GraphBuilder b;
  const GraphValue x = b.input("x", {9, 4});
  const GraphValue w = b.parameter("w", {4, 6});
  b.add(kMatmul, {x, w}, {9, 6});
  Decisions padded = openRecord(b.graph, "dp=2");
  padded.arguments[0].layout = layoutOn(padded.mesh, "[{dp},{}] pad{0:10}");
  padded.operators[0].axes["m"] = axesOn(padded.mesh, "dp");
  const GraphView view(b.graph);
  const absl::StatusOr<StepLayouts> layouts = layoutsOf(view, padded);
  ASSERT_TRUE(layouts.ok()) << layouts.status();
  EXPECT_EQ(layouts->operators[0].reads[0], padded.arguments[0].layout);
  EXPECT_EQ(layouts->values[2].print(padded.mesh), "[{dp},{}] pad{0:10}");
  EXPECT_EQ(layouts->stored.of(2), Shape({10, 6}));
  EXPECT_EQ(layouts->operators[0].rule.factors()[0].size, 10);
}

// Two meshes: what comes from another one is whole, and for whom it is sent it has been reduced.
TEST_F(StepLayoutsTest, WhatAnotherMeshReadsIsReducedWhereItIsMade) {
  const GraphValue far = add(kScale, {sum_});
  const GraphValue near = add(kScale, {sum_});
  Decisions staged = record();
  staged.schedule.submeshes = {0, 1};
  staged.stageMeshes = {staged.mesh, *Mesh::parse("tp=4")};
  staged.operators[1].stage = 1;
  assign(staged);
  EXPECT_EQ(read(far), "[{},{}]");
  EXPECT_EQ(print(layouts_->values[3], 1), "[{},{}]");
  EXPECT_EQ(read(near), "[{},{}]");
  EXPECT_EQ(layouts_->operators[1].place, (Place{RunsIn::kForward, 1}));
}

TEST_F(StepLayoutsTest, ARecordOfAnotherProgramIsRefused) {
  Decisions fewer = record();
  fewer.arguments.pop_back();
  EXPECT_THAT(std::string(layoutsOf(GraphView(b_.graph), fewer).status().message()),
              HasSubstr("the decisions know 1 arguments, the step has 2"));
  Decisions other = record();
  other.operators[0].id = 5;
  const absl::Status status = layoutsOf(GraphView(b_.graph), other).status();
  EXPECT_THAT(std::string(status.message()), HasSubstr("op0 is not in the decisions"));
  EXPECT_EQ(sourcePlaceOf(status).line, 10);
}

TEST(ReaderRegion, ForwardAndBackwardShareUnlessGatheredAgain) {
  const Place forward = {RunsIn::kForward, 1}, backward = {RunsIn::kBackward, 1}, update = {RunsIn::kUpdate, 1};
  const auto shared = [&](GatherPolicy gather) { return regionOf(gather, forward) == regionOf(gather, backward); };
  EXPECT_TRUE(shared(GatherPolicy::kNone));
  EXPECT_TRUE(shared(GatherPolicy::kOncePerStep));
  EXPECT_FALSE(shared(GatherPolicy::kEachCall));
  EXPECT_NE(regionOf(GatherPolicy::kNone, forward), regionOf(GatherPolicy::kNone, update));
  EXPECT_NE(regionOf(GatherPolicy::kNone, forward), regionOf(GatherPolicy::kNone, {RunsIn::kForward, 0}));
}

// Stages 0 and 2 of submesh A, 1 and 3 of submesh B.
TEST(ReceiverOf, ReceivesInTheSamePassOnAStageThatRunsLater) {
  const std::vector<int64_t> a = {0, 2}, b = {1, 3};
  const auto forward = [](int64_t stage) { return Place{RunsIn::kForward, stage}; };
  const auto backward = [](int64_t stage) { return Place{RunsIn::kBackward, stage}; };
  const Place update = {RunsIn::kUpdate, 0}, prologue = {RunsIn::kPrologue, 0};
  EXPECT_EQ(receiverOf(forward(0), forward(1), b), forward(1));
  EXPECT_EQ(receiverOf(forward(0), backward(3), b), forward(3));
  EXPECT_EQ(receiverOf(backward(3), backward(2), a), backward(2));
  EXPECT_EQ(receiverOf(backward(3), update, a), backward(0)) << "the first stage of the submesh that runs later";
  EXPECT_EQ(receiverOf(forward(1), update, a), forward(2));
  EXPECT_EQ(receiverOf(forward(3), update, a), backward(0)) << "none runs later in the forward pass";
  EXPECT_EQ(receiverOf(forward(3), backward(0), a), backward(0));
  EXPECT_EQ(receiverOf(prologue, forward(1), b), prologue);
  EXPECT_EQ(receiverOf(update, update, b), update);
  EXPECT_EQ(receiverOf(forward(3), forward(0), a), std::nullopt) << "the stages would wait for each other";
  EXPECT_EQ(receiverOf(backward(0), backward(1), b), std::nullopt);
  EXPECT_TRUE(isPassedBefore(forward(1), forward(2)) && isPassedBefore(backward(2), backward(1)));
  EXPECT_TRUE(isPassedBefore(forward(3), backward(3)) && isPassedBefore(prologue, forward(0)));
  EXPECT_FALSE(isPassedBefore(update, backward(0)) || isPassedBefore(forward(1), forward(1)));
}

TEST(ReaderRegion, WhatIsGatheredOncePerStepIsMadeBeforeTheMicroBatches) {
  Decisions record;
  record.mesh = *Mesh::parse("dp=2,micro=2");
  EXPECT_TRUE(isMadeOnce(record, GatherPolicy::kOncePerStep, {RunsIn::kBackward, 0}));
  EXPECT_FALSE(isMadeOnce(record, GatherPolicy::kEachCall, {RunsIn::kBackward, 0}));
  EXPECT_FALSE(isMadeOnce(record, GatherPolicy::kNone, {RunsIn::kForward, 0}));
  EXPECT_FALSE(isMadeOnce(record, GatherPolicy::kOncePerStep, {RunsIn::kUpdate, 0}));
  record.mesh = *Mesh::parse("dp=2");
  EXPECT_FALSE(isMadeOnce(record, GatherPolicy::kOncePerStep, {RunsIn::kForward, 0}));
}

}  // namespace
}  // namespace weft::testing
