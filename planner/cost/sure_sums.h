// Where a product that is split along what it sums must have its partial sums added over the ranks.
//
// What a product makes is then partial. Some operators pass partial sums on (planner/graph/sums.h), the others read
// them added. So on the way from the product to the nearest operator that surely reads them added they are added at
// some value, in every micro-batch; what that costs at the least depends on the smallest value on the way.
//
//   qkv = x w, fc = gelu(y v)       gelu is no sum of the gelus of its terms: y v is added first
//   x + o p + q r -> layer_norm     o p and q r may be added up before: one of them counts
//
// Each value lies on the way of one product: so no reduction counts for two.
#pragma once

#include <functional>
#include <vector>

#include "planner/graph/graph_view.h"

namespace weft {

// Of each operator: bytes, of the whole batch, of the smallest value on the way of its first result; 0 where its sums
// may never be added, or are on another's way. `reads`: is it in every plan that an operator reads an operand, and if
// that carries the batch, in every micro-batch?
std::vector<int64_t> sureSums(const GraphView& view, const std::function<bool(const GraphView::Use& use)>& reads);

}  // namespace weft
