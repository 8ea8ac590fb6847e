// Which products read what other products made, and how many bytes that is on the way between them at the least.
//
// A rank that has one of f parts of an operator's loops needs at least the f-th part of what the operator reads, and so
// on back to the product that made it (value_trees.h). Where the smallest value on the way has N bytes and each of its
// elements is needed on c ranks, c - 1 of them receive it, unless they have made it themselves: N (c - 1) bytes.
#pragma once

#include <functional>
#include <vector>

#include "planner/cost/value_trees.h"
#include "planner/graph/graph_view.h"

namespace weft {

struct ProductRead {
  int maker = 0;  // operators
  int reader = 0;
  unsigned operand = 0;  // of the reader
  double bytes = 0;      // of the smallest value on the way, of the whole batch
};

// `trees`: of roots of which some are products, whose values carry the batch. In the order of the readers.
std::vector<ProductRead> productReads(const GraphView& view, const ValueTrees& trees,
                                      const std::function<bool(int op)>& isProduct);

}  // namespace weft
