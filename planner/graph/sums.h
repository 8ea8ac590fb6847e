// Sums of sums: in which order a sum's terms are added.
//
// A sum ends in an operator that adds values of one type (OperatorFacts::isSum) and takes in each operand that such an
// operator of the same phase makes for it alone. Its terms are what is left, numbered from the left:
// (a + b) + (c + d) has the terms a, b, c, d. Partial sums over the same ranks should meet before others join them:
// then one collective reduces them all.
#pragma once

#include <vector>

#include "absl/status/status.h"
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
