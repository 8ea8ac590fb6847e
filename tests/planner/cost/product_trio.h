// A layer with its backward pass, whose three products are split alike.
//
//   y = x w, z = relu(y); dy = relu'(z), dx = dy w^T, dw = x^T dy; dx is read
#pragma once

#include <string>
#include <vector>

#include "planner/machine/machine.h"
#include "tests/planner/graph/graph_builder.h"

namespace weft::testing {

inline OperatorFacts productBy(const std::string& rule) {
  return {.kind = "matmul", .rule = rule, .linear = {{0}, {1}}, .flopsPerPoint = 2};
}

// Bytes and operations a second of one rank; nothing else takes time. `devicesPerNode` 0: it has no nodes.
inline Machine linkedMachine(double flops, double link, double network, int64_t devicesPerNode) {
  Machine machine;
  machine.flops = flops;
  machine.memoryBandwidth = 1e18;
  machine.launchLatency = 0;
  machine.linkBandwidth = link;
  machine.devicesPerNode = devicesPerNode;
  machine.networkBandwidth = network * static_cast<double>(devicesPerNode);
  return machine;
}

// An operator of the backward pass, of the operator `forward`.
inline GraphValue addGradient(GraphBuilder& b, const OperatorFacts& facts, const std::vector<GraphValue>& operands,
                              const Shape& result, int64_t forward) {
  const GraphValue made = b.add(facts, operands, result);
  b.last().phase = Phase::kBackward;
  b.last().forward = forward;
  return made;
}

struct ProductTrio {
  ProductTrio(int64_t rows, int64_t columns, int64_t sums) {
    x = b.input("x", {rows, sums});
    w = b.parameter("w", {sums, columns});
    const GraphValue y = b.add(productBy("m k+, k+ n -> m n"), {x, w}, {rows, columns});
    const GraphValue z = b.add(kRelu, {y}, {rows, columns});
    const GraphValue dy = gradient(kRelu, {z}, {rows, columns}, 1);
    const GraphValue dx = gradient(productBy("m n+, k n+ -> m k"), {dy, w}, {rows, sums}, 0);
    dw = gradient(productBy("m+ k, m+ n -> k n"), {x, dy}, {sums, columns}, 0);
    b.returns(gradient(kRelu, {dx}, {rows, sums}, 2));
  }

  GraphValue gradient(const OperatorFacts& facts, const std::vector<GraphValue>& operands, const Shape& result,
                      int64_t forward) {
    return addGradient(b, facts, operands, result, forward);
  }

  GraphBuilder b;
  GraphValue x, w, dw;
};

}  // namespace weft::testing
