// The least that operators take on a submesh, on programs small enough to count their tiles.
#include "planner/cost/least_work.h"

#include <gtest/gtest.h>

#include "tests/planner/graph/graph_builder.h"

namespace weft::testing {
namespace {

// Four tiles of 16 x 16 at a time, each with 2^20 multiplications and additions a second for each of its elements.
Machine tiled() {
  Machine machine;
  machine.flops = 2.0 * 4 * 256 * (1 << 20);
  machine.memoryBandwidth = 1e18;
  machine.linkBandwidth = 1e18;
  machine.launchLatency = 0;
  machine.tile = {16, 16};
  machine.multiprocessors = 4;
  return machine;
}

OperatorFacts matmul() {
  OperatorFacts facts = kMatmul;
  facts.flopsPerPoint = 2;
  return facts;
}

// One wave of tiles for so many sums.
double waves(double count, int64_t sums) {
  return count * static_cast<double>(sums) / (1 << 20) * kPicosecondsPerSecond;
}

// y = x w of rows x columns; relu.
ProgramGraph product(int64_t rows, int64_t columns, int64_t sums) {
  GraphBuilder b;
  const GraphValue x = b.input("x", {rows, sums});
  const GraphValue y = b.add(matmul(), {x, b.parameter("w", {sums, columns})}, {rows, columns});
  b.returns(b.add(kRelu, {y}, {rows, columns}));
  return b.graph;
}

LeastWork::Times timesOf(const ProgramGraph& graph, const Machine& machine, const WorkGrid& grid,
                         const LeastWork::Options& options = {}) {
  const GraphView view(graph);
  const absl::StatusOr<LeastWork> work = LeastWork::of(view, machine, options);
  EXPECT_TRUE(work.ok()) << work.status();
  return work.ok() ? work->times(grid) : LeastWork::Times{std::vector<Picoseconds>(view.operators()), 0, {}, {}, {}};
}

double kernelOf(const ProgramGraph& graph, const Machine& machine, const WorkGrid& grid) {
  return static_cast<double>(timesOf(graph, machine, grid).ofCall[0]);
}

// 12 tiles are three waves; on two ranks 6 tiles are two, or three waves of half of the sums.
TEST(LeastWork, WavesAreWhole) {
  const ProgramGraph graph = product(64, 48, 1 << 10);
  EXPECT_NEAR(kernelOf(graph, tiled(), {1, 1}), waves(3, 1 << 10), 1e3);
  EXPECT_NEAR(kernelOf(graph, tiled(), {2, 1}), waves(3, 1 << 9), 1e3);
  // Of sums that are one element each, only rows and columns are cut.
  EXPECT_NEAR(kernelOf(product(64, 48, 1), tiled(), {2, 1}), waves(2, 1), 1e3);
}

// Two micro-batches of 32 rows, 6 tiles each, are four waves together. Sums cannot be cut in time.
TEST(LeastWork, MicroBatchesCutRows) {
  EXPECT_NEAR(kernelOf(product(64, 48, 1 << 10), tiled(), {1, 2}), waves(2, 1 << 10), 1e3);
}

// 5 rows on two ranks are 3 on one of them: 6 operations, half of one less for what may be rounded.
TEST(LeastWork, SizesAreRoundedUp) {
  Machine machine = tiled();
  machine.tile = {1, 1};
  machine.multiprocessors = 1;
  machine.flops = 2.0 * (1 << 20);
  EXPECT_NEAR(kernelOf(product(5, 1, 1), machine, {2, 1}), waves(3, 1) * 5.5 / 6, 1);
}

// Where links are slow the two waves of one half of the rows are less than three of half of the sums, added up after.
TEST(LeastWork, SumsThatAreReadAreAdded) {
  const ProgramGraph graph = product(64, 48, 1 << 10);
  Machine slow = tiled();
  const double bytes = 64 * 48 * 4;
  slow.linkBandwidth = bytes / 2 * (1 << 20);  // half of them in 2^-20 seconds
  const auto sums = [&](const LeastWork::Times& times) {
    return times.ofRanks / 2 - static_cast<double>(times.ofCall[1]);
  };
  EXPECT_NEAR(sums(timesOf(graph, slow, {2, 1})), waves(3, 1 << 9) + waves(1, 1), 1e3);
  slow.linkBandwidth /= 1 << 10;
  EXPECT_NEAR(sums(timesOf(graph, slow, {2, 1})), waves(2, 1 << 10), 1e3);
  EXPECT_NEAR(sums(timesOf(graph, slow, {2, 1}, {true, true})), waves(3, 1 << 9), 1e3) << "they may be hidden";
}

TEST(LeastWork, ProfilesMayBeBetter) {
  const ProgramGraph graph = product(64, 48, 1 << 10);
  Machine machine = tiled();
  machine.profiles = {{DType::kF32, 64, 48, 1 << 10, 1e-5}};
  EXPECT_NEAR(kernelOf(graph, machine, {1, 1}), 1e7, 1e3);
  EXPECT_NEAR(kernelOf(graph, machine, {2, 2}), 1e7 / 4, 1e3);
}

TEST(LeastWork, RunsForEachMicroBatchWhatReadsParameters) {
  GraphBuilder b;
  const GraphValue x = b.input("x", {8, 4});
  const GraphValue w = b.parameter("w", {4, 4});
  const GraphValue positive = b.add(kRelu, {x}, {8, 4});         // of the input alone
  b.returns(b.add(matmul(), {positive, w}, {8, 4}));             // of both
  b.returns(b.add(kRelu, {w}, {4, 4}));                          // without a batch
  b.add(kRelu, {x}, {8, 4});                                     // nothing needs it
  b.returns(b.add(kRelu, {b.add(kRelu, {w}, {4, 4})}, {4, 4}));  // something may stand for it
  b.graph.operators[5].alternatives.push_back({{}, {{GraphValue::kArgument, 0}}});
  const GraphView view(b.graph);
  const LeastWork work = *LeastWork::of(view, Machine(), {});
  EXPECT_EQ(work.runs(0), WorkRuns::kWholeBatch);
  EXPECT_EQ(work.runs(1), WorkRuns::kPerMicroBatch);
  EXPECT_EQ(work.runs(2), WorkRuns::kAtLeastOnce);
  EXPECT_EQ(work.runs(3), WorkRuns::kPerhapsNever);
  EXPECT_EQ(work.runs(4), WorkRuns::kAtLeastOnce);
  EXPECT_EQ(work.runs(5), WorkRuns::kPerhapsNever);
}

// Relu of w or, as large, a half and a quarter of it: what takes less counts, shared evenly.
TEST(LeastWork, AnAlternativeMayTakeLess) {
  Machine machine = tiled();
  machine.tile = {};
  const auto reluOf = [&](double flops, const std::vector<double>& others) {
    GraphBuilder b;
    OperatorFacts facts = kRelu;
    facts.flopsPerPoint = flops;
    b.returns(b.add(facts, {b.parameter("w", {64, 64})}, {64, 64}));
    Alternative alternative;
    GraphValue value = {GraphValue::kArgument, 0};
    for (const double other : others) {
      facts.flopsPerPoint = other;
      alternative.body.push_back({facts, {value}, {{{64, 64}, DType::kF32}}});
      value = {static_cast<int64_t>(alternative.body.size()) - 1, 0};
    }
    alternative.results = {{static_cast<int64_t>(others.size()) - 1, 0}};
    if (!others.empty()) {
      b.last().alternatives = {alternative};
    }
    return kernelOf(b.graph, machine, {2, 1});
  };
  EXPECT_GT(reluOf(1 << 10, {}), 1e6);
  EXPECT_NEAR(reluOf(1 << 10, {1 << 9, 1 << 8}), reluOf(3 << 8, {}), 1e3);
  EXPECT_NEAR(reluOf(1 << 10, {1 << 10, 1 << 8}), reluOf(1 << 10, {}), 1e3);
}

// A product among other kernels takes no less than alone, waves of tiles included.
TEST(LeastWork, AnAlternativeWithTheSameProductTakesNoLess) {
  ProgramGraph graph = product(64, 48, 1 << 10);
  const double alone = kernelOf(graph, tiled(), {1, 1});
  const GraphOperator& matmul = graph.operators[0];
  const GraphValue x = {GraphValue::kArgument, 0};
  const GraphValue w = {GraphValue::kArgument, 1};
  graph.operators[0].alternatives = {{{{matmul.facts, {x, w}, matmul.results}}, {{0, 0}}}};
  EXPECT_EQ(kernelOf(graph, tiled(), {1, 1}), alone);
  graph.operators[0].alternatives[0].body[0].facts.flopsPerPoint = 1;
  EXPECT_LT(kernelOf(graph, tiled(), {1, 1}), alone);
}

// Two operators that exist only to be expanded, with statistics of each micro-batch: x scaled by a sum of it, and x
// scaled by its products with what is made of that sum. `both`: else the step returns nothing of the second one.
ProgramGraph normalized(int64_t microBatches, bool both) {
  GraphBuilder b;
  const auto operand = [](unsigned index) { return GraphValue{GraphValue::kArgument, index}; };
  const auto mine = [](int64_t part) { return GraphValue{part, 0}; };
  const TensorType wide = {{64, 16}, DType::kF32};
  const TensorType statistic = {{microBatches, 16}, DType::kF32};
  const OperatorFacts scale = {.kind = "scale", .rule = "a c, p~ c -> a c"};
  const GraphValue x = b.input("x", wide.shape);
  const GraphValue y = b.add({.kind = "norm", .rule = "a+ c -> a c, p~ c", .mustExpand = true}, {x}, wide.shape);
  b.last().results.push_back({{1, 16}, DType::kF32});
  b.last().alternatives = {{{{{.kind = "sum", .rule = "a+ c -> p~ c"}, {operand(0)}, {statistic}},
                             {kRelu, {mine(0)}, {statistic}},
                             {scale, {operand(0), mine(0)}, {wide}}},
                            {{2, 0}, {1, 0}}}};
  b.returns(y);
  const GraphValue dx = b.add({.kind = "norm_grad", .rule = "a+ c, p~ c -> a c, c", .mustExpand = true},
                              {x, {y.producer, 1}}, wide.shape);
  b.last().results.push_back({{16}, DType::kF32});
  b.last().alternatives = {{{{kRelu, {operand(1)}, {statistic}},
                             {{.kind = "dot", .rule = "a+ c, p~ c -> p~ c"}, {operand(0), mine(0)}, {statistic}},
                             {scale, {operand(0), mine(1)}, {wide}},
                             {kSumAll, {operand(0)}, {{{}, DType::kF32}}}},
                            {{2, 0}, {3, 0}}}};
  GraphOperator other = b.last();
  if (both) {
    b.returns(dx);
    other.id = b.graph.nextId++;
    b.graph.operators.push_back(other);
    b.returns({other.id, 1});
  }
  return b.graph;
}

// The bytes of x are read for the sum and for the scaling, and as many written. What has an element for each
// micro-batch counts nothing, as the graph may be that of another number of them; nor does what makes a result that is
// not read.
TEST(LeastWork, WhatMustBeExpandedTakesWhatItsAlternativeDoes) {
  Machine machine = tiled();
  machine.memoryBandwidth = 1e6;
  machine.memoryEfficiency = 1;
  const double bytes = 64 * 16 * 4 / 1e6 * kPicosecondsPerSecond;
  for (const int64_t microBatches : {1, 4}) {
    const LeastWork::Times times = timesOf(normalized(microBatches, true), machine, {2, 2});
    EXPECT_NEAR(times.ofOperator[0], 3 * bytes, 1e3) << microBatches;
    EXPECT_NEAR(times.ofOperator[1], 3 * bytes, 1e3) << microBatches;
    EXPECT_NEAR(times.ofOperator[2], bytes * (1 + 4.0 / (64 * 16 * 4)), 1e3) << microBatches;
  }
  EXPECT_EQ(timesOf(normalized(4, false), machine, {2, 2}).ofOperator[1], 0);
}

// An alternative without the operand does not need what makes it.
TEST(LeastWork, WhatOnlyAnAlternativeDropsIsNotNeeded) {
  GraphBuilder b;
  const GraphValue w = b.parameter("w", {4, 4});
  const GraphValue dropped = b.add(kRelu, {w}, {4, 4});
  b.returns(b.add(kAdd, {w, dropped}, {4, 4}));
  b.last().alternatives.push_back({{}, {{GraphValue::kArgument, 0}}});
  const GraphView view(b.graph);
  EXPECT_EQ(LeastWork::of(view, Machine(), {})->runs(0), WorkRuns::kPerhapsNever);
}

}  // namespace
}  // namespace weft::testing
