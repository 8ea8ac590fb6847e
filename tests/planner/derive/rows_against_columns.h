// A program in which a weight is gathered, or all rows are.
#pragma once

#include "tests/planner/graph/graph_builder.h"

namespace weft::testing {

// A weight, split by columns, against rows of 2048 elements, split too; operator 1 is their product.
inline GraphBuilder rowsAgainstColumns(int64_t columns = 48) {
  GraphBuilder b;
  const GraphValue x = b.input("x", {64, 32});
  b.graph.arguments[0].layout = "[{tp},{}]";
  const GraphValue w = b.parameter("w", {32, columns});
  b.graph.arguments[w.index].layout = "[{},{tp}]";
  b.returns(b.add(kMatmul, {b.add(kRelu, {x}, {64, 32}), w}, {64, columns}));
  return b;
}

}  // namespace weft::testing
