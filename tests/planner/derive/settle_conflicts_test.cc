#include "planner/derive/settle_conflicts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/planner/derive/rows_against_columns.h"
#include "tests/planner/derive/spread.h"
#include "tests/planner/graph/graph_builder.h"

namespace weft::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Arithmetic and messages cost what they carry alone.
const Machine kMachine = {
    .name = "test", .flops = 1e12, .memoryBandwidth = 1e11, .linkBandwidth = 1e10, .linkLatency = 1e-9};

const OperatorFacts kConstrain = {.kind = "constrain", .rule = "a b -> a b", .view = ViewKind::kAnnotation};

GraphValue constrain(GraphBuilder& b, const GraphValue& value, const Shape& shape, const std::string& layout) {
  const GraphValue made = b.add(kConstrain, {value}, shape);
  b.last().constraint = layout;
  return made;
}

// The operands of a matrix product lie the other way than its large result is wanted.
GraphBuilder largeResult() {
  GraphBuilder b;
  const GraphValue x = b.input("x", {1024, 8});
  const GraphValue w = b.input("w", {8, 1024});
  b.graph.arguments[0].layout = "[{x},{}]";
  b.graph.arguments[1].layout = "[{},{y}]";
  b.returns(constrain(b, b.add(kMatmul, {x, w}, {1024, 1024}), {1024, 1024}, "[{y},{x}]"));
  return b;
}

// The small operands move.
TEST(SettleConflicts, SmallOperandsMoveRatherThanALargeResult) {
  GraphBuilder b = largeResult();
  Spread spread(b.graph, "x=4,y=2");
  EXPECT_EQ(spread.axes(0, "m") + spread.axes(0, "n"), "xy") << "edges alone";
  spread.settle(kMachine);
  EXPECT_EQ(spread.axes(0, "m") + spread.axes(0, "n"), "yx");
  EXPECT_EQ(spread.shardings().operators[0].origin, "least cost");
}

// What a memo knows of reshards that were not chosen here counts for nothing, were it that they take no time: where
// elimination is too large the answer would depend on what was asked before.
TEST(SettleConflicts, WhatWasAskedBeforeChangesNothing) {
  GraphBuilder b = largeResult();
  ReshardMemo memo;
  Spread first(b.graph, "x=4,y=2");
  first.settle(kMachine, memo);
  int others = 0;
  for (auto& [key, price] : memo.prices()) {
    others += price.time ? 0 : 1;
    price.time = price.time.value_or(0);
  }
  EXPECT_GT(others, 3);
  Spread second(b.graph, "x=4,y=2");
  second.settle(kMachine, memo);
  EXPECT_EQ(second.axes(0, "m") + second.axes(0, "n"), first.axes(0, "m") + first.axes(0, "n"));
}

TEST(SettleConflicts, ALargeOperandStays) {
  GraphBuilder b;
  const GraphValue x = b.input("x", {8, 1024});
  const GraphValue w = b.input("w", {1024, 8});
  b.graph.arguments[0].layout = "[{x},{}]";
  b.graph.arguments[1].layout = "[{},{y}]";
  b.returns(constrain(b, b.add(kMatmul, {x, w}, {8, 8}), {8, 8}, "[{y},{x}]"));
  Spread spread(b.graph, "x=4,y=2");
  spread.settle(kMachine);
  EXPECT_EQ(spread.axes(0, "m") + spread.axes(0, "n"), "xy");
}

// A table split by columns feeds a chain that needs whole rows again and again: one gather at its start.
TEST(SettleConflicts, ASplitThatEveryReaderGathersIsGatheredOnce) {
  GraphBuilder b;
  const GraphValue x = b.input("x", {64, 8});
  const GraphValue w = b.parameter("w", {8, 64});
  b.graph.arguments[1].layout = "[{},{tp}]";
  GraphValue stream = b.add(kMatmul, {x, w}, {64, 64});
  for (int i = 0; i < 3; ++i) {
    const GraphValue whole = b.add(kSoftmax, {stream}, {64, 64});
    stream = b.add(kAdd, {stream, whole}, {64, 64});
  }
  b.returns(stream);
  Spread spread(b.graph, "tp=2");
  EXPECT_EQ(spread.axes(2, "b"), "tp");
  spread.settle(kMachine);
  for (const int sum : {2, 4}) {
    EXPECT_EQ(spread.axes(sum, "b"), "") << sum;
  }
}

// q, k and v read what a norm leaves split over rows; their weights are split by columns. One gather serves all three.
TEST(SettleConflicts, AReshardThatSeveralReadersShareIsPaidOnce) {
  GraphBuilder b;
  const GraphValue x = b.input("x", {64, 32});
  b.graph.arguments[0].layout = "[{tp},{}]";
  const GraphValue h = b.add(kRelu, {x}, {64, 32});
  for (const char* name : {"q", "k", "v"}) {
    const GraphValue w = b.parameter(name, {32, 48});
    b.graph.arguments[w.index].layout = "[{},{tp}]";
    b.returns(b.add(kMatmul, {h, w}, {64, 48}));
  }
  Spread spread(b.graph, "tp=2");
  spread.settle(kMachine);
  for (const int product : {1, 2, 3}) {
    EXPECT_EQ(spread.axes(product, "n"), "tp") << "three weights of 1536 elements against one value of 2048";
  }
  b.graph.operators.resize(2);
  b.graph.results.resize(1);
  Spread one(b.graph, "tp=2");
  one.settle(kMachine);
  EXPECT_EQ(one.axes(1, "m"), "tp") << "one weight is smaller";
}

// Over its sums the product moves less of its operands, but what the step returns is added up.
TEST(SettleConflicts, TheSumsOfWhatTheStepReturnsArePaidFor) {
  for (const bool isReturned : {false, true}) {
    GraphBuilder b;
    const GraphValue x = b.input("x", {64, 8});
    const GraphValue w = b.parameter("w", {8, 32});
    b.graph.arguments[0].layout = "[{},{tp}]";
    b.graph.arguments[1].layout = "[{},{tp}]";
    const GraphValue product = b.add(kMatmul, {x, w}, {64, 32});
    if (isReturned) {
      b.returns(product);
    }
    Spread spread(b.graph, "tp=2");
    spread.settle(kMachine);
    EXPECT_EQ(spread.axes(0, "k"), isReturned ? "" : "tp");
  }
}

// All micro-batches of a value are gathered, a parameter of 1536 elements once.
TEST(SettleConflicts, MicroBatchesArePaidForTogether) {
  const GraphBuilder b = rowsAgainstColumns();
  Spread spread(b.graph, "tp=2,micro=4");
  spread.settle(kMachine);
  EXPECT_EQ(spread.axes(1, "m"), "tp");
}

TEST(SettleConflicts, WhatIsGatheredInEachCallIsPaidForInEach) {
  const GraphBuilder b = rowsAgainstColumns();
  Spread spread(b.graph, "tp=2,micro=4");
  spread.regather();
  spread.settle(kMachine);
  EXPECT_EQ(spread.axes(1, "n"), "tp") << "the weight in each micro-batch";
  for (const bool isReadAgain : {false, true}) {
    GraphBuilder trained = rowsAgainstColumns(24);
    const GraphValue w{GraphValue::kArgument, 1};
    trained.returns(trained.add(kRelu, {isReadAgain ? w : trained.input("dy", {32, 24})}, {32, 24}));
    trained.last().phase = Phase::kBackward;
    Spread once(trained.graph, "tp=2");
    once.settle(kMachine);
    EXPECT_EQ(once.axes(1, "m"), "tp") << isReadAgain;
    Spread again(trained.graph, "tp=2");
    again.regather();
    again.settle(kMachine);
    EXPECT_EQ(again.axes(1, isReadAgain ? "n" : "m"), "tp") << isReadAgain;
  }
}

// Where the weight is gathered its gradient is scattered, and both together are dearer than the rows.
TEST(SettleConflicts, ThePriceHoldsThatOfTheGradient) {
  GraphBuilder b = rowsAgainstColumns();
  b.returns(b.add(kRelu, {b.input("dy", {64, 48})}, {64, 48}));
  b.last().phase = Phase::kBackward;
  ASSERT_TRUE(b.graph.trains());
  Spread spread(b.graph, "tp=2");
  spread.settle(kMachine);
  EXPECT_EQ(spread.axes(1, "n"), "tp");
}

// So many rows, split, meet a weight of 1024 elements; columns are wanted. By columns the rows are gathered; by rows
// the result and its gradient are moved, which is less, and the gradient of the weight is summed.
GraphBuilder trained(int64_t rows) {
  GraphBuilder b;
  const GraphValue x = b.input("x", {rows, 64});
  b.graph.arguments[0].layout = "[{tp},{}]";
  const GraphValue w = b.parameter("w", {64, 16});
  const GraphValue m = b.state("m", {64, 16});
  b.returns(constrain(b, b.add(kMatmul, {x, w}, {rows, 16}), {rows, 16}, "[{},{tp}]"));
  const GraphValue gradient = b.add(kRelu, {b.input("dw", {64, 16})}, {64, 16});
  b.last().phase = Phase::kBackward;
  const GraphValue updated =
      b.add({.kind = "sgd", .rule = "a b, a b, a b -> a b, a b", .updatesParameter = true, .flopsPerPoint = 1},
            {w, m, gradient}, {64, 16});
  b.last().results.push_back(b.last().results[0]);
  b.last().phase = Phase::kUpdate;
  b.updates(w, updated);
  b.updates(m, {updated.producer, 1});
  return b;
}

std::string columnsOf(int64_t rows, double flops, int64_t zeroLevel, const std::string& mesh = "dp=4,tp=2") {
  const GraphBuilder b = trained(rows);
  Spread spread(b.graph, mesh);
  spread.setZeroLevels({0, zeroLevel, 0, 0});
  Machine machine = kMachine;
  machine.flops = flops;
  machine.memoryBandwidth = 1e14;
  spread.settle(machine);
  return spread.axes(0, "n");
}

// Of a weight that lies whole on every rank each rank updates all.
TEST(SettleConflicts, ThePriceHoldsTheUpdate) {
  EXPECT_EQ(columnsOf(160, 1e12, 0), "open");
  EXPECT_EQ(columnsOf(160, 1e9, 0), "tp");
}

// With ZeRO only the part of the gradient that belongs to a rank's state is summed, and the new weight is gathered from
// these parts: all of it, or that of the columns. ZeRO-3 gathers it before it is read.
TEST(SettleConflicts, ThePriceHoldsZero) {
  EXPECT_EQ(columnsOf(140, 1e12, 0), "tp");
  for (const int64_t level : {1, 2, 3}) {
    EXPECT_EQ(columnsOf(140, 1e12, level), "open") << level;
    EXPECT_EQ(columnsOf(124, 1e12, level), "tp") << level;
  }
}

// From ZeRO-2 on; by rows the gradient of the whole weight is scattered, by columns that of a half.
TEST(SettleConflicts, WhatEachMicroBatchScattersIsPaidForInEach) {
  for (const int64_t level : {1, 2, 3}) {
    EXPECT_EQ(columnsOf(448, 1e12, level, "dp=4,tp=2,micro=4"), level < 2 ? "open" : "tp") << level;
  }
}

std::string splitOf(const GraphBuilder& b, double bytePrice, int64_t zeroLevel = 0) {
  Spread spread(b.graph, "dp=4,tp=2");
  spread.setZeroLevels(std::vector<int64_t>(b.graph.arguments.size(), zeroLevel));
  Machine machine = kMachine;
  machine.flops = 1e9;
  machine.memoryBandwidth = 1e14;
  ReshardMemo memo;
  spread.settle(machine, memo, bytePrice);
  return spread.axes(0, "n") == "tp" ? "columns" : spread.axes(0, "k") == "tp" ? "sums" : "rows";
}

// Split over its sums the product is partial, and each rank has a result as large as the whole. That takes memory only
// if the backward pass reads it, itself or as a view.
TEST(SettleConflicts, MemoryIsWhatTheBackwardPassReads) {
  constexpr double kByte = 1e6;
  for (const bool isRead : {false, true}) {
    for (const bool asView : {false, true}) {
      GraphBuilder b;
      const GraphValue x = b.input("x", {64, 4096});
      b.graph.arguments[0].layout = "[{},{tp}]";
      const GraphValue product = b.add(kMatmul, {x, b.parameter("w", {4096, 16})}, {64, 16});
      b.last().facts.flopsPerPoint = 2;
      const GraphValue wanted = constrain(b, product, {64, 16}, "[{},{tp}]");
      b.returns(wanted);
      const GraphValue other = b.input("dy", {64, 16});
      b.returns(b.add(kRelu, {!isRead ? other : asView ? wanted : product}, {64, 16}));
      b.last().phase = Phase::kBackward;
      EXPECT_EQ(splitOf(b, 0), "sums") << isRead << asView;
      EXPECT_EQ(splitOf(b, kByte), isRead ? "columns" : "sums") << isRead << asView;
    }
  }
}

// What is made again in less time than its memory is worth counts that time: the same under any split.
TEST(SettleConflicts, MemoryCountsNoMoreThanToMakeItAgain) {
  GraphBuilder b;
  const GraphValue x = b.input("x", {64, 4096});
  b.graph.arguments[0].layout = "[{},{tp}]";
  const GraphValue product = b.add(kMatmul, {x, b.input("w", {4096, 16})}, {64, 16});
  b.returns(constrain(b, product, {64, 16}, "[{},{tp}]"));
  b.returns(b.add(kRelu, {product}, {64, 16}));
  b.last().phase = Phase::kBackward;
  EXPECT_EQ(splitOf(b, 1e6), "sums") << "without arithmetic";
}

// A weight that every rank has whole takes more memory than its columns do, unless ZeRO shares it.
TEST(SettleConflicts, MemoryOfParametersIsAsZeroStoresThem) {
  // So many rows are split while the weight is worth less than to move the result.
  const auto levelsByRows = [](int64_t rows, double bytePrice) {
    const GraphBuilder b = trained(rows);
    std::vector<int64_t> levels;
    for (const int64_t level : {0, 1, 2, 3}) {
      if (splitOf(b, bytePrice, level) == "rows") {
        levels.push_back(level);
      }
    }
    return levels;
  };
  EXPECT_THAT(levelsByRows(400, 0), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(levelsByRows(1000, 1e3), ElementsAre(1, 2, 3));
  EXPECT_THAT(levelsByRows(4000, 1e4), ElementsAre(2, 3));
  EXPECT_THAT(levelsByRows(400, 1e3), ElementsAre(3));
  EXPECT_THAT(levelsByRows(4000, 1e5), IsEmpty());
}

TEST(SettleConflicts, AListMayLoseAnAxis) {
  GraphBuilder b;
  const GraphValue x = b.input("x", {256, 8});
  const GraphValue w = b.parameter("w", {8, 512});
  b.graph.arguments[0].layout = "[{dp},{}]";
  b.graph.arguments[1].layout = "[{},{tp,dp}]";
  b.returns(constrain(b, b.add(kMatmul, {x, w}, {256, 512}), {256, 512}, "[{dp},{?}]"));
  Spread spread(b.graph, "dp=2,tp=2");
  EXPECT_EQ(spread.axes(0, "n"), "tp,dp") << "the larger operand is heard first";
  spread.settle(kMachine);
  EXPECT_EQ(spread.axes(0, "m"), "dp");
  EXPECT_EQ(spread.axes(0, "n"), "tp");
}

TEST(SettleConflicts, OpenDimensionsKeepTheUsersAxes) {
  GraphBuilder b = largeResult();
  b.graph.operators[0].strategy = UserStrategy{true, {}, {}, {{"x,?", ""}}, {}, {}};
  Spread spread(b.graph, "x=4,y=2");
  spread.settle(kMachine);
  EXPECT_EQ(spread.axes(0, "m").substr(0, 1), "x") << "not y, which is cheaper";
}

TEST(SettleConflicts, WhatTheUserFixedStays) {
  GraphBuilder b = largeResult();
  b.graph.operators[0].strategy = UserStrategy{true, {}, {}, {{"x", ""}, {"", "y"}}, {}, {}};
  Spread spread(b.graph, "x=4,y=2");
  spread.settle(kMachine);
  EXPECT_EQ(spread.axes(0, "m") + spread.axes(0, "n"), "xy");
}

TEST(SettleConflicts, WithoutAConflictNothingChanges) {
  GraphBuilder b;
  const GraphValue x = b.input("x", {8, 4});
  const GraphValue w = b.parameter("w", {4, 6});
  b.graph.arguments[0].layout = "[{dp},{}]";
  b.returns(b.add(kRelu, {b.add(kMatmul, {x, w}, {8, 6})}, {8, 6}));
  Spread spread(b.graph, "dp=2");
  const std::string origin = spread.shardings().operators[0].origin;
  spread.settle(kMachine);
  EXPECT_EQ(spread.axes(0, "m"), "dp");
  EXPECT_EQ(spread.axes(0, "n"), "open");
  EXPECT_EQ(spread.shardings().operators[0].origin, origin);
}

// What the price keeps whole, the gradient keeps whole, whatever it reads.
TEST(SettleConflicts, TheGradientFollows) {
  GraphBuilder b;
  const GraphValue x = b.input("x", {64, 8});
  const GraphValue w = b.parameter("w", {8, 64});
  b.graph.arguments[1].layout = "[{},{tp}]";
  const GraphValue y = b.add(kMatmul, {x, w}, {64, 64});
  const GraphValue stream = b.add(kAdd, {y, b.add(kSoftmax, {y}, {64, 64})}, {64, 64});
  b.returns(b.add(kSoftmax, {stream}, {64, 64}));
  const GraphValue seed = b.input("dy", {64, 64});
  b.graph.arguments[2].layout = "[{},{tp}]";
  b.returns(b.add({"copy", "i j -> i j"}, {seed}, {64, 64}));
  b.last().phase = Phase::kBackward;
  b.last().forward = 2;
  ASSERT_EQ(Spread(b.graph, "tp=2").axes(4, "j"), "tp");
  Spread spread(b.graph, "tp=2");
  spread.settle(kMachine);
  ASSERT_EQ(spread.axes(2, "b"), "");
  EXPECT_EQ(spread.axes(4, "j"), "");
}

}  // namespace
}  // namespace weft::testing
