// Layers of two products, relu behind each, and the sum of the last.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "tests/planner/graph/graph_builder.h"

namespace weft::testing {

inline constexpr int64_t kLayerRows = 32, kNarrow = 16, kWide = 64;
inline constexpr int64_t kLayerOperators = 4;

inline std::shared_ptr<const ProgramGraph> twoProductLayers(int64_t count) {
  GraphBuilder b;
  OperatorFacts matmul = kMatmul;
  matmul.flopsPerPoint = 2;
  GraphValue h = b.input("x", {kLayerRows, kNarrow});
  for (int64_t i = 0; i < count; ++i) {
    const GraphValue up = b.parameter("h" + std::to_string(i) + ".up", {kNarrow, kWide});
    const GraphValue down = b.parameter("h" + std::to_string(i) + ".down", {kWide, kNarrow});
    h = b.add(kRelu, {b.add(matmul, {h, up}, {kLayerRows, kWide})}, {kLayerRows, kWide});
    h = b.add(kRelu, {b.add(matmul, {h, down}, {kLayerRows, kNarrow})}, {kLayerRows, kNarrow});
  }
  b.returns(b.add(kSumAll, {h}, {}));
  return std::make_shared<const ProgramGraph>(b.graph);
}

}  // namespace weft::testing
