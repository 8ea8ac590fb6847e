#include "planner/derive/propagation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/planner/derive/spread.h"
#include "tests/planner/graph/graph_builder.h"

namespace weft::testing {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// relu(x w)
GraphBuilder twoOperators() {
  GraphBuilder b;
  const GraphValue x = b.input("x", {8, 4});
  const GraphValue w = b.parameter("w", {4, 6});
  b.returns(b.add(kRelu, {b.add(kMatmul, {x, w}, {8, 6})}, {8, 6}));
  return b;
}

TEST(Propagation, FlowsFromOperandsToResults) {
  GraphBuilder b = twoOperators();
  b.graph.arguments[0].layout = "[{dp},{}]";
  const Spread spread(b.graph, "dp=2,tp=2", {{"w", "[{},{tp}]"}});
  EXPECT_EQ(spread.axes(0, "m"), "dp");
  EXPECT_EQ(spread.axes(0, "n"), "tp");
  EXPECT_EQ(spread.axes(0, "k"), "open");
  EXPECT_EQ(spread.axes(1, "a"), "dp");
  EXPECT_EQ(spread.axes(1, "b"), "tp");
  EXPECT_EQ(spread.shardings().operators[1].origin, "operand 0");
}

TEST(Propagation, FlowsFromReadersToOperands) {
  GraphBuilder b = twoOperators();
  b.graph.operators[1].constraint = "[{dp},{tp}]";
  const Spread spread(b.graph, "dp=2,tp=2");
  EXPECT_EQ(spread.axes(0, "m"), "dp");
  EXPECT_EQ(spread.axes(0, "n"), "tp");
  EXPECT_EQ(spread.shardings().operators[0].origin, "reader op1");
}

TEST(Propagation, TheLargerOperandIsHeardFirst) {
  GraphBuilder b;
  const GraphValue x = b.input("x", {8, 4});
  const GraphValue w = b.parameter("w", {4, 64});
  b.returns(b.add(kMatmul, {x, w}, {8, 64}));
  b.graph.arguments[0].layout = "[{tp},{}]";
  const Spread spread(b.graph, "tp=2", {{"w", "[{},{tp}]"}});
  EXPECT_EQ(spread.axes(0, "n"), "tp");
  EXPECT_EQ(spread.axes(0, "m"), "open") << "the axis is used";
}

TEST(Propagation, TheUserIsHeardBeforeEdgesAndTheConflictIsNotedOnce) {
  GraphBuilder b = twoOperators();
  b.graph.arguments[0].layout = "[{dp},{}]";
  b.graph.operators[0].strategy = UserStrategy{true, {}, {}, {{"tp", ""}, {"", ""}}, {}, {"model.cc", 30, 1}};
  const Spread spread(b.graph, "dp=2,tp=2");
  EXPECT_EQ(spread.axes(0, "m"), "tp");
  EXPECT_EQ(spread.axes(1, "a"), "tp");
  EXPECT_THAT(spread.shardings().conflicts, ElementsAre("op0 factor m: [{tp}] (user) against [{dp}] from operand 0"));
}

UserStrategy byNames(std::vector<std::vector<std::string>> in, std::vector<std::vector<std::string>> out = {}) {
  return {true, {}, {}, std::move(in), std::move(out), {"model.cc", 30, 1}};
}

TEST(Propagation, OperandsWithoutAStrategyFollowFromTheOthers) {
  GraphBuilder b = twoOperators();
  b.graph.arguments[0].layout = "[{dp},{}]";
  b.graph.operators[0].strategy = byNames({{}, {"None", "tp"}});
  const Spread second(b.graph, "dp=2,tp=2");
  EXPECT_EQ(second.axes(0, "k"), "") << "whole, as the strategy says";
  EXPECT_EQ(second.axes(0, "n"), "tp");
  EXPECT_EQ(second.axes(0, "m"), "dp") << "left to propagation";
  b.graph.operators[0].strategy = byNames({{"dp", "tp"}});
  const Spread first(b.graph, "dp=2,tp=2");
  EXPECT_EQ(first.axes(0, "k"), "tp");
  EXPECT_EQ(first.axes(0, "n"), "open");
  b.graph.operators[0].strategy = byNames({}, {{"tp", "dp"}});
  const Spread result(b.graph, "dp=2,tp=2");
  EXPECT_EQ(result.axes(0, "m"), "tp");
  EXPECT_EQ(result.axes(0, "n"), "dp");
  EXPECT_EQ(result.axes(0, "k"), "open");
}

TEST(Propagation, ResultsSayOnlyWhatNoOperandSays) {
  GraphBuilder b = twoOperators();
  b.graph.operators[0].strategy = byNames({{"", "tp"}}, {{"tp", "dp"}});
  const Spread spread(b.graph, "dp=2,tp=2");
  ASSERT_TRUE(spread.status.ok()) << spread.status;
  EXPECT_EQ(spread.axes(0, "k"), "tp");
  EXPECT_EQ(spread.axes(0, "m"), "") << "the sum is scattered over tp";
  EXPECT_EQ(spread.axes(0, "n"), "dp");
}

TEST(Propagation, NumbersForSomeOperandsLeaveTheOthersOpen) {
  GraphBuilder b = twoOperators();
  b.graph.operators[0].strategy = UserStrategy{false, {{2, 1}}, {}, {}, {}, {}};
  const Spread some(b.graph, "4");
  EXPECT_EQ(some.axes(0, "m"), "all:(1)2");
  EXPECT_EQ(some.axes(0, "n"), "open");
  b.graph.operators[0].strategy = UserStrategy{false, {{2, 1}, {1, 1}}, {}, {}, {}, {}};
  EXPECT_EQ(Spread(b.graph, "4").axes(0, "n"), "");
}

TEST(Propagation, OpenDimensionsTakeMore) {
  GraphBuilder b = twoOperators();
  b.graph.arguments[0].layout = "[{dp,sp},{}]";
  const auto spreadWith = [&](const std::string& constraint) {
    b.graph.operators[1].constraint = constraint;
    return Spread(b.graph, "dp=2,sp=2,tp=2", {{"w", "[{},{tp}]"}});
  };
  const Spread closed = spreadWith("[{dp},{}]");
  EXPECT_EQ(closed.axes(1, "a"), "dp");
  EXPECT_EQ(closed.axes(1, "b"), "");
  const Spread open = spreadWith("[{dp,?},{?}]");
  EXPECT_EQ(open.axes(1, "a"), "dp,sp");
  EXPECT_EQ(open.axes(1, "b"), "tp");
  EXPECT_EQ(spreadWith("[{sp,?},{?}]").axes(1, "a"), "sp") << "what reaches it begins otherwise";
  EXPECT_EQ(spreadWith("[{},{?}]").axes(1, "a"), "");
}

TEST(Propagation, AReaderAddsToAnOpenDimension) {
  GraphBuilder b = twoOperators();
  b.graph.operators[0].strategy = byNames({{"dp,?", ""}});
  b.graph.operators[1].constraint = "[{dp,tp},{}]";
  EXPECT_EQ(Spread(b.graph, "dp=2,tp=2").axes(0, "m"), "dp,tp");
  b.graph.operators[0].strategy = byNames({{"dp", ""}});
  EXPECT_EQ(Spread(b.graph, "dp=2,tp=2").axes(0, "m"), "dp");
}

TEST(Propagation, PrioritiesSayWhatIsHeardFirst) {
  GraphBuilder b = twoOperators();
  b.graph.arguments[0].layout = "[{tp},{}]";
  EXPECT_EQ(Spread(b.graph, "tp=2", {{"w", "[{},{tp}]"}}).axes(0, "m"), "tp") << "the larger operand";
  b.graph.arguments[0].layout = "[{tp}p1,{}]";
  const Spread later(b.graph, "tp=2", {{"w", "[{},{tp}p0]"}});
  EXPECT_EQ(later.axes(0, "m"), "open");
  EXPECT_EQ(later.axes(0, "n"), "tp");
  const Spread both(b.graph, "tp=2", {{"w", "[{},{tp}p2]"}});
  EXPECT_EQ(both.axes(0, "m"), "tp");
}

TEST(Propagation, AxesWhoseTurnComesAreKeptForTheirDimension) {
  GraphBuilder b = twoOperators();
  b.graph.operators[1].constraint = "[{tp}p1,{?}]";
  const Spread spread(b.graph, "tp=2", {{"w", "[{},{tp}p0]"}});
  EXPECT_EQ(spread.axes(0, "n"), "tp");
  EXPECT_EQ(spread.axes(1, "b"), "open") << "tp is the rows' axis";
  EXPECT_EQ(spread.axes(1, "a"), "tp");
}

TEST(Propagation, BackwardStartsWithItsForwardOperator) {
  GraphBuilder b = twoOperators();
  const GraphValue dy = b.input("dy", {8, 6});
  b.returns(b.add({"contract", "m k, m n+ -> k n"}, {{GraphValue::kArgument, 0}, dy}, {4, 6}));
  b.last().facts.rule = "m+ k, m+ n -> k n";
  b.last().phase = Phase::kBackward;
  b.last().forward = 0;
  b.graph.operators[0].strategy = UserStrategy{true, {}, {}, {{"dp", ""}, {"", "tp"}}, {}, {}};
  const Spread spread(b.graph, "dp=2,tp=2");
  EXPECT_EQ(spread.axes(2, "m"), "dp");
  EXPECT_EQ(spread.axes(2, "n"), "tp");
  EXPECT_EQ(spread.shardings().operators[2].origin, "forward operator op0");
}

TEST(Propagation, WhatDoesNotDivideStaysOpen) {
  GraphBuilder b = twoOperators();
  b.graph.operators[0].results[0].shape = b.graph.operators[1].results[0].shape = {8, 5};
  b.graph.arguments[1].type.shape = {4, 5};
  b.graph.arguments[0].layout = "[{},{tp}]";
  const Spread spread(b.graph, "tp=4");
  EXPECT_EQ(spread.axes(0, "k"), "tp") << "4 divides";
  EXPECT_EQ(spread.axes(1, "b"), "open");
}

TEST(Propagation, TheBatchIsCutIntoMicroBatchesBeside) {
  GraphBuilder b = twoOperators();
  b.graph.arguments[0].layout = "[{dp},{}]";
  EXPECT_EQ(Spread(b.graph, "dp=4,micro=2").axes(0, "m"), "dp");
  EXPECT_EQ(Spread(b.graph, "dp=4,micro=4").axes(0, "m"), "open") << "8 rows in 16 parts";
}

TEST(Propagation, AWholeFactorAsksForTheAlternative) {
  GraphBuilder b;
  const GraphValue x = b.input("x", {8, 4});
  b.returns(b.add(kSoftmax, {x}, {8, 4}));
  b.graph.arguments[0].layout = "[{},{tp}]";
  EXPECT_THAT(Spread(b.graph, "tp=2").shardings().expansions, IsEmpty()) << "it has none";
  b.last().alternatives = {{{{kRelu, {{GraphValue::kArgument, 0}}, {{{8, 4}, DType::kF32}}}}, {{0, 0}}}};
  const Spread spread(b.graph, "tp=2");
  EXPECT_THAT(spread.shardings().expansions, ElementsAre(0));
  EXPECT_EQ(spread.axes(0, "v"), "open");
}

// One that no alternative splits, and one for which no axis is left, ask for nothing.
TEST(Propagation, AWholeFactorAsksOnlyWhereTheAlternativeCouldSplitIt) {
  const Alternative first = {{{kRelu, {{GraphValue::kArgument, 0}}, {{{8, 4}, DType::kF32}}}}, {{0, 0}}};
  const auto expansions = [&](const std::string& rule, const std::string& x, const std::string& y) {
    GraphBuilder b;
    b.returns(b.add({"both", rule}, {b.input("x", {8, 4}), b.input("y", {6, 4})}, {8, 4}));
    b.graph.arguments[0].layout = x;
    b.graph.arguments[1].layout = y;
    b.last().alternatives = {first};
    return Spread(b.graph, "tp=2").shardings().expansions;
  };
  EXPECT_THAT(expansions("t d, s! d -> t d", "[{},{}]", "[{tp},{}]"), ElementsAre(0));
  EXPECT_THAT(expansions("t d, s!! d -> t d", "[{},{}]", "[{tp},{}]"), IsEmpty());
  EXPECT_THAT(expansions("t d, s! d -> t d", "[{tp},{}]", "[{tp},{}]"), IsEmpty()) << "t has the axis";
}

// A minor factor of a compound dimension is split only where the major one is split to the end.
TEST(Propagation, PartsOfACompoundDimensionStayInOneBlock) {
  GraphBuilder b;
  const GraphValue x = b.input("x", {4, 6});
  b.returns(b.add({"reshape", "a b -> (a b)"}, {x}, {24}));
  b.graph.arguments[0].layout = "[{},{tp}]";
  EXPECT_EQ(Spread(b.graph, "tp=2").axes(0, "b"), "open");
  b.graph.arguments[0].layout = "[{dp},{tp}]";
  EXPECT_EQ(Spread(b.graph, "dp=4,tp=2").axes(0, "b"), "tp");
}

// x over dp, the weight over tp and dp: what dp leaves of the weight's list is kept.
TEST(Propagation, AListInConflictKeepsItsCompatiblePart) {
  GraphBuilder b = twoOperators();
  b.graph.arguments[0].layout = "[{dp},{}]";
  for (const std::string layout : {"[{},{tp,dp}]", "[{},{dp,tp}]"}) {
    b.graph.arguments[1].type.shape = {4, 8};
    b.graph.operators[0].results[0].shape = b.graph.operators[1].results[0].shape = {8, 8};
    const Spread spread(b.graph, "dp=2,tp=2", {{"w", layout}});
    EXPECT_EQ(spread.axes(0, "m"), "dp");
    EXPECT_EQ(spread.axes(0, "n"), "tp") << layout;
    EXPECT_THAT(spread.shardings().conflicts, Contains("op0 factor n: [{tp}] (operand 0) against " +
                                                       layout.substr(0, 1) + layout.substr(4) + " from operand 1"));
  }
}

TEST(Propagation, ALaterListAddsWhatFollowsTheAxesThatAFactorHas) {
  GraphBuilder b;
  const GraphValue x = b.input("x", {8, 6});
  const GraphValue y = b.input("y", {8, 6});
  b.returns(b.add(kAdd, {x, y}, {8, 6}));
  b.graph.arguments[0].layout = "[{dp},{}]";
  b.graph.arguments[1].layout = "[{dp,tp},{}]";
  EXPECT_EQ(Spread(b.graph, "dp=2,tp=2").axes(0, "a"), "dp,tp");
  b.graph.operators[0].strategy = UserStrategy{true, {}, {}, {{"dp", ""}, {"dp", ""}}, {}, {}};
  EXPECT_EQ(Spread(b.graph, "dp=2,tp=2").axes(0, "a"), "dp") << "nothing is added to the user's words";
}

// Two products partial over tp: their sum is not split over tp, whatever its reader says; with one of them it is.
TEST(Propagation, SumsAreAddedBeforeTheyAreScattered) {
  for (const bool both : {true, false}) {
    GraphBuilder b;
    const GraphValue x = b.input("x", {8, 4});
    const GraphValue w = b.parameter("w", {4, 6});
    const GraphValue one = b.add(kMatmul, {x, w}, {8, 6});
    const GraphValue other = both ? b.add(kMatmul, {x, w}, {8, 6}) : b.input("y", {8, 6});
    const GraphValue sum = b.add(kAdd, {one, other}, {8, 6});
    b.returns(b.add({.kind = "constrain", .rule = "a b -> a b"}, {sum}, {8, 6}));
    b.last().constraint = "[{tp},{}]";
    b.graph.arguments[0].layout = "[{},{tp}]";
    const Spread spread(b.graph, "tp=2");
    EXPECT_EQ(spread.axes(0, "k"), "tp");
    EXPECT_EQ(spread.axes(both ? 2 : 1, "a"), both ? "open" : "tp");
  }
}

TEST(UserWords, ErrorsStandAtTheShardCall) {
  GraphBuilder b = twoOperators();
  b.graph.operators[0].strategy = UserStrategy{false, {{3, 1}, {1, 1}}, {}, {}, {}, {"model.cc", 30, 1}};
  const Spread spread(b.graph, "4");
  EXPECT_EQ(sourcePlaceOf(spread.status), (SourcePlace{"model.cc", 30, 1}));
  EXPECT_THAT(std::string(spread.status.message()), HasSubstr("op0: "));
  b.graph.operators[0].strategy = UserStrategy{true, {}, {}, {{"dp", ""}, {}, {}}, {}, {"model.cc", 31, 1}};
  EXPECT_THAT(
      std::string(Spread(b.graph, "dp=2").status.message()),
      HasSubstr("the strategy has 3 operands, the operator 2; give at most one list of axis names per operand"));
}

}  // namespace
}  // namespace weft::testing
