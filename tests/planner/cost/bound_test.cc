// What no plan can take less than, held against sums made by hand.
#include "planner/cost/bound.h"

#include <gtest/gtest.h>

#include "tests/planner/graph/graph_builder.h"

namespace weft::testing {
namespace {

// x w, relu.
GraphBuilder layer(int64_t rows, int64_t width) {
  GraphBuilder b;
  OperatorFacts matmul = kMatmul;
  matmul.flopsPerPoint = 2;
  const GraphValue x = b.input("x", {rows, width});
  b.returns(b.add(kRelu, {b.add(matmul, {x, b.parameter("w", {width, width})}, {rows, width})}, {rows, width}));
  return b;
}

Machine machineWith(double flops, double bandwidth, double launch) {
  Machine machine;
  machine.flops = flops;
  machine.memoryBandwidth = bandwidth;
  machine.launchLatency = launch;
  return machine;
}

TEST(Bound, WorkIsShared) {
  const ProgramGraph graph = layer(64, 32).graph;
  const Machine machine = machineWith(1e9, 1e9, 1e-12);
  const double matmul = 2.0 * 64 * 32 * 32 / 1e9;
  const double relu = 2.0 * 64 * 32 * 4 / 1e9;
  EXPECT_EQ(*leastTime(graph, machine, 1), picosecondsOf(matmul + relu));
  EXPECT_EQ(*leastTime(graph, machine, 8), picosecondsOf((matmul + relu) / 8));
}

TEST(Bound, LaunchesOfAPathAreNot) {
  const ProgramGraph graph = layer(64, 32).graph;
  EXPECT_EQ(*leastTime(graph, machineWith(1e15, 1e15, 1e-6), 8), picosecondsOf(2e-6));
}

// What may be expanded into something else counts as nothing.
TEST(Bound, AlternativesMayTakeLess) {
  ProgramGraph graph = layer(64, 32).graph;
  graph.operators[0].alternatives.emplace_back();
  EXPECT_EQ(*leastTime(graph, machineWith(1e15, 1e15, 1e-6), 1), picosecondsOf(1e-6));
}

}  // namespace
}  // namespace weft::testing
