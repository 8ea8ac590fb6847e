// Which loop of its forward operator each loop of a backward operator is.
//
// A value and its gradient have the same dimensions, so both stand for the same factors of the operator that reads or
// makes the value. From the operands of a backward operator (what the forward operator reads and makes, the gradient
// that arrives, what was made of these) follows for each of its factors which factor of the forward operator it is:
//
//   y = x w          m k+, k+ n -> m n
//   dw = x^T dy      m+ k, m+ n -> k n      k, m, n of y = x w, by way of x and dy, whatever their names and sizes
//
// Nothing is marked for it by gradient functions: the structure of the graph says it.
#pragma once

#include <functional>
#include <vector>

#include "ir/layout/rule.h"
#include "planner/graph/graph_view.h"

namespace weft {

// Of each operator: for each factor of its rule the factor of its forward operator's rule, kNoFactor where it is none
// or where that is not known. `ruleOf` gives the rule of an operator; the forward operator of one is that named by
// GraphOperator::forward.
inline constexpr int kNoFactor = -1;
using ForwardFactors = std::vector<std::vector<int>>;
ForwardFactors forwardFactors(const GraphView& view, const std::function<const Rule&(int op)>& ruleOf);

}  // namespace weft
