// A chain of matmul and relu as a training step: its forward operators, their gradients, an update of each weight.
#pragma once

#include <string>
#include <vector>

#include "tests/planner/graph/graph_builder.h"

namespace weft::testing {

struct ChainOptions {
  int64_t layers = 2;
  int64_t rows = 32;
  int64_t width = 16;
  int64_t stages = 1;
  int64_t relus = 1;  // one after the other, of each layer
};

// Forward: h(i + 1) = relu(h(i) w(i)), loss = the sum of the last. Operator ids with one relu: matmul of layer i is
// 2 i, its relu 2 i + 1.
inline GraphBuilder chainProgram(const ChainOptions& options) {
  const OperatorFacts reluGradient = {"relu_grad", "a b, a b -> a b", {{0}}};
  const OperatorFacts spread = {"broadcast", "-> a b"};
  GraphBuilder b;
  const Shape rows = {options.rows, options.width};
  const Shape weight = {options.width, options.width};
  const auto stageOf = [&](int64_t layer) { return layer * options.stages / options.layers; };
  GraphValue h = b.input("x", rows);
  std::vector<GraphValue> weights, before;
  std::vector<std::vector<GraphValue>> after(options.layers);
  std::vector<int64_t> matmuls;
  for (int64_t i = 0; i < options.layers; ++i) {
    weights.push_back(b.parameter("w" + std::to_string(i), weight));
  }
  for (int64_t i = 0; i < options.layers; ++i) {
    before.push_back(h);
    OperatorFacts matmul = kMatmul;
    matmul.flopsPerPoint = 2;
    h = b.add(matmul, {h, weights[i]}, rows);
    const std::optional<int64_t> stage = options.stages > 1 ? std::optional<int64_t>(stageOf(i)) : std::nullopt;
    b.last().userStage = stage;
    matmuls.push_back(b.last().id);
    for (int64_t r = 0; r < options.relus; ++r) {
      h = b.add(kRelu, {h}, rows);
      b.last().userStage = stage;
      after[i].push_back(h);
    }
  }
  b.returns(b.add(kSumAll, {h}, {}));
  const int64_t loss = b.last().id;
  GraphValue dh = b.add(spread, {}, rows);
  b.last().phase = Phase::kBackward;
  b.last().forward = loss;
  std::vector<GraphValue> gradients(options.layers);
  for (int64_t i = options.layers - 1; i >= 0; --i) {
    for (int64_t r = options.relus - 1; r >= 0; --r) {
      dh = b.add(reluGradient, {dh, after[i][r]}, rows);
      b.last().phase = Phase::kBackward;
      b.last().forward = matmuls[i] + 1 + r;
    }
    gradients[i] = b.add({"contract", "m+ k, m+ n -> k n", {{0}, {1}}}, {before[i], dh}, weight);
    b.last().facts.flopsPerPoint = 2;
    b.last().phase = Phase::kBackward;
    b.last().forward = matmuls[i];
    if (i > 0) {
      dh = b.add({"contract", "m n+, k n+ -> m k", {{0}, {1}}}, {dh, weights[i]}, rows);
      b.last().facts.flopsPerPoint = 2;
      b.last().phase = Phase::kBackward;
      b.last().forward = matmuls[i];
    }
  }
  for (int64_t i = 0; i < options.layers; ++i) {
    const std::string name = "w" + std::to_string(i);
    const GraphValue finished = b.add({"add", "a b -> a b", {{0}}}, {gradients[i]}, weight);
    b.last().phase = Phase::kUpdate;
    b.last().gradientOf = name;
    const GraphValue updated =
        b.add({.kind = "sgd", .rule = "a b, a b -> a b", .updatesParameter = true}, {weights[i], finished}, weight);
    b.last().phase = Phase::kUpdate;
    b.updates(weights[i], updated);
  }
  return b;
}

}  // namespace weft::testing
