// Sums of sums: in which order a sum's terms are added.
//
// A sum ends in an operator that adds values of one type (OperatorFacts::isSum) and takes in each operand that such an
// operator of the same phase makes for it alone. Its terms are what is left, numbered from the left:
// (a + b) + (c + d) has the terms a, b, c, d. Partial sums over the same ranks should meet before others join them:
// then one collective reduces them all.
#pragma once

#include <functional>
#include <vector>

#include "absl/status/status.h"
#include "ir/layout/rule.h"
#include "planner/decisions.h"
#include "planner/graph/graph_view.h"

namespace weft {

struct Sum {
  std::vector<int> operators;  // in program order; the last is its end
  std::vector<int> terms;      // values
};

// The sum that an operator ends; nothing in it if the operator is no sum, or part of a larger one.
Sum sumEndingIn(const GraphView& view, int op);

// Does an operator pass on, instead of having it reduced before, a sum over ranks that its operands `holders` all are
// partial over? Not where others read the sum too: each would have what it makes of it reduced.
bool passesOn(const GraphView& view, int op, const std::vector<unsigned>& holders);

// The axes over which the first result of an operator is a sum because the operator itself is split over them.
AxisList ownSumsOf(const Rule& rule, const FactorAxes& axes, ReduceKind kind);
using OwnSums = std::function<AxisList(int op)>;

// May what an operator split over `axes` makes be a sum over `axis` as well?
bool fitsBeside(const FactorAxes& axes, const Axis& axis);

// Do all readers of a gradient that is a sum over `axis` pass it on although they are products, which make another
// value of it? They do where each is linear in the gradient alone and makes what is reduced over these ranks anyway: a
// term beside one of which they hold sums, or the gradient of a parameter; and where no more is reduced then than
// before.
//
//   dx = dq wq^T + dk wk^T, dq wq^T partial{tp}, dk partial{tp}    dk is not reduced, dx once
bool productsPass(const GraphView& view, int value, const Axis& axis, const OwnSums& own);

// In which order a sum's operators add their terms if they do so group by group, and then group to group: the operands
// of each operator, terms by their number, results of earlier ones as `terms` + their number. Error: not each term
// stands in one group; `where` names the sum.
struct Addition {
  size_t left = 0;
  size_t right = 0;
};
absl::StatusOr<std::vector<Addition>> additionsOf(const std::vector<std::vector<unsigned>>& groups, size_t terms,
                                                  const std::string& where);

// Adds the terms of the sum that ends in operator `rewrite.id` by `rewrite.groups`. Operators keep their places where
// their operands come before, else each follows the later of them. Errors: no such sum, groups that are not its terms.
absl::Status regroupSum(ProgramGraph& graph, const Rewrite& rewrite);

}  // namespace weft
