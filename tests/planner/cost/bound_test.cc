// What no plan can take less than, held against sums made by hand.
#include "planner/cost/bound.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/planner/graph/graph_builder.h"

namespace weft::testing {
namespace {

constexpr double kRounding = 1e-4;  // operations are rounded to whole ones

OperatorFacts matmul() {
  OperatorFacts facts = kMatmul;
  facts.flopsPerPoint = 2;
  return facts;
}

// x w, relu.
GraphBuilder layer(int64_t rows, int64_t width) {
  GraphBuilder b;
  const GraphValue x = b.input("x", {rows, width});
  b.returns(b.add(kRelu, {b.add(matmul(), {x, b.parameter("w", {width, width})}, {rows, width})}, {rows, width}));
  return b;
}

Machine machineWith(double flops, double bandwidth, double launch) {
  Machine machine;
  machine.flops = flops;
  machine.memoryBandwidth = bandwidth;
  machine.launchLatency = launch;
  return machine;
}

double boundOf(const ProgramGraph& graph, const Machine& machine, const BoundedPlans& plans) {
  const absl::StatusOr<Picoseconds> bound = leastTime(graph, machine, plans);
  EXPECT_TRUE(bound.ok()) << bound.status();
  return bound.ok() ? inSeconds(*bound) : 0;
}

void expectNear(double found, double expected) {
  EXPECT_NEAR(found, expected, kRounding * expected + 2e-12);
}

TEST(Bound, WorkIsShared) {
  const ProgramGraph graph = layer(64, 32).graph;
  const Machine machine = machineWith(1e9, 1e9, 0);
  const double product = 2.0 * 64 * 32 * 32 / 1e9;
  const double relu = 2.0 * 64 * 32 * 4 / 1e9;
  expectNear(boundOf(graph, machine, {1, {1}}), product + relu);
  expectNear(boundOf(graph, machine, {8, {8}}), (product + relu) / 8);
}

TEST(Bound, WorkIsSharedByRanksThatHaveACore) {
  const ProgramGraph graph = layer(64, 32).graph;
  Machine machine = machineWith(1e9, 1e9, 0);
  const double work = 2.0 * 64 * 32 * 32 / 1e9 + 2.0 * 64 * 32 * 4 / 1e9;
  machine.cores = 2;
  expectNear(boundOf(graph, machine, {8, {8}}), work / 2);
  expectNear(boundOf(graph, machine, {2, {2}}), work / 2);
  machine.devicesPerNode = 4;
  expectNear(boundOf(graph, machine, {8, {8}}), work / 4);
}

// On four submeshes of two ranks a micro-batch passes through both operators, on two ranks each.
TEST(Bound, MicroBatchPassesThroughAll) {
  const ProgramGraph graph = layer(64, 32).graph;
  const Machine machine = machineWith(1e9, 1e9, 1e-3);
  const double work = 2.0 * 64 * 32 * 32 / 1e9 + 2.0 * 64 * 32 * 4 / 1e9;
  expectNear(boundOf(graph, machine, {8, {2}}), 2e-3 + work / 2);
  BoundedPlans unlike = {8, {2}};
  unlike.areAlike = false;
  expectNear(boundOf(graph, machine, unlike), (2e-3 + work / 2) * 2 / 8);
}

// Three of four ranks may be on one of two submeshes: the longest path is on these, of 64 rows 22 on each.
TEST(Bound, SubmeshesMayTradeRanks) {
  const ProgramGraph graph = layer(64, 32).graph;
  const Machine machine = machineWith(1e9, 1e9, 1e-3);
  BoundedPlans plans = {8, {2}};
  plans.mostTrading = 4;
  expectNear(boundOf(graph, machine, plans), 2e-3 + 2.0 * 22 * 32 * 32 / 1e9 + 2.0 * 64 * 32 * 4 / 3 / 1e9);
  plans = {2, {2}};
  const double alike = boundOf(graph, machine, plans);
  plans.mostTrading = 4;
  expectNear(boundOf(graph, machine, plans), alike);  // one submesh has no neighbor
}

// Of two submeshes none trade where no more than one may.
TEST(Bound, ManySubmeshesDoNotTrade) {
  const ProgramGraph graph = layer(64, 32).graph;
  const Machine machine = machineWith(1e9, 1e9, 1e-3);
  BoundedPlans plans = {8, {2}};
  const double alike = boundOf(graph, machine, plans);
  plans.mostTrading = 3;
  expectNear(boundOf(graph, machine, plans), alike);
  plans.mostTrading = 4;
  EXPECT_LT(boundOf(graph, machine, plans), alike);
}

// Calls take their launch, so on two ranks half as much of all ranks' time as on four; but no more than a quarter of
// all ranks is on submeshes of two. With 0.64 as the price there the work is 1.64 times that on two, less 0.16 of the
// step.
TEST(Bound, FewRanksAreOnTheSmallestSubmeshes) {
  BoundedPlans plans = {8, {4}, {16}};
  plans.mostTrading = 4;
  const ProgramGraph graph = layer(64, 32).graph;
  Machine machine = machineWith(1e18, 1e18, 1e-3);
  expectNear(boundOf(graph, machine, plans), 16 * 2e-3 * 2 / 8 * 1.64 / 1.16);
  machine.cores = 4;
  expectNear(boundOf(graph, machine, plans), 16 * 2e-3 * 2 / 4 * 1.64 / 1.32);
  machine.cores = 1;
  expectNear(boundOf(graph, machine, plans), 16 * 2e-3 * 2);  // all that work may be on the smallest
}

// Two ranks share the work of four products that read what another makes, but only once that has run on one of them.
TEST(Bound, LaterWorkWaits) {
  GraphBuilder b;
  const GraphValue x = b.input("x", {64, 32});
  const GraphValue y = b.add(matmul(), {x, b.parameter("w", {32, 32})}, {64, 32});
  for (const char* name : {"a", "b", "c", "d"}) {
    b.returns(b.add(matmul(), {y, b.parameter(name, {32, 32})}, {64, 32}));
  }
  const double each = 2.0 * 64 * 32 * 32 / 1e9;
  const auto bound = [&](int64_t microBatches) {
    return boundOf(b.graph, machineWith(1e9, 1e18, 0), {2, {1}, {microBatches}});
  };
  expectNear(bound(1), each + 4 * each / 2);
  expectNear(bound(2), each / 2 + 4 * each / 2);
}

// x + z may be added before the product is there.
TEST(Bound, SumsDoNotWait) {
  GraphBuilder b;
  const GraphValue x = b.input("x", {64, 32});
  const GraphValue y = b.add(matmul(), {x, b.parameter("w", {32, 32})}, {64, 32});
  const GraphValue sum = b.add(kAdd, {b.add(kAdd, {y, x}, {64, 32}), b.input("z", {64, 32})}, {64, 32});
  b.returns(sum);
  const Machine machine = machineWith(1e9, 1e9, 0);
  const double product = 2.0 * 64 * 32 * 32 / 1e9;
  const double each = 3.0 * 64 * 32 * 4 / 1e9;
  expectNear(boundOf(b.graph, machine, {2, {1}}), std::max(product, (product + 2 * each) / 2));
}

TEST(Bound, EachMicroBatchIsLaunched) {
  const ProgramGraph graph = layer(64, 32).graph;
  expectNear(boundOf(graph, machineWith(1e18, 1e18, 1e-6), {1, {1}, {4}}), 8e-6);
}

// Of all pairs that of two ranks, two micro-batches: one rank each would pass on late, four micro-batches launch often.
TEST(Bound, LeastOfAllPairs) {
  const ProgramGraph graph = layer(64, 32).graph;
  const Machine machine = machineWith(1e9, 1e9, 1e-6);
  const auto pair = [&](int64_t ranks, int64_t count) { return boundOf(graph, machine, {2, {ranks}, {count}}); };
  expectNear(boundOf(graph, machine, {2, {1, 2}, {1, 2, 4}}),
             std::min({pair(1, 1), pair(1, 2), pair(1, 4), pair(2, 1), pair(2, 2), pair(2, 4)}));
  EXPECT_LT(pair(2, 1), pair(2, 2));
  EXPECT_LT(pair(1, 2), pair(1, 1));
}

// What may be expanded into something else counts as nothing.
TEST(Bound, AlternativesMayTakeLess) {
  ProgramGraph graph = layer(64, 32).graph;
  graph.operators[0].alternatives.emplace_back();
  expectNear(boundOf(graph, machineWith(1e18, 1e18, 1e-6), {1, {1}}), 1e-6);
}

}  // namespace
}  // namespace weft::testing
