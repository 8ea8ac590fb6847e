// Which strategies are legal, said once more for the tests, from the factor rule alone: each splittable factor in parts
// that divide it, all parts together a divisor of the ranks, and in a compound dimension (a b) only whole blocks.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "ir/layout/rule.h"
#include "mlir/IR/Operation.h"

namespace weft::testing {

using Parts = std::vector<int64_t>;  // of each factor

// What the tests need to know of an operator.
struct TargetRule {
  Rule rule;
  std::vector<Shape> results;
  bool expands = false;  // whole factors may be split too, by names
};
absl::StatusOr<TargetRule> targetRule(mlir::Operation* op);

// In a dimension (a b) a rank's part must be one block: b is split only where a is split to single elements.
bool oneBlock(const TargetRule& target, const Parts& parts);
// All legal numbers of parts on `ranks` ranks; `whole`: also of factors that only an expansion can split.
std::vector<Parts> legalParts(const TargetRule& target, int64_t ranks, bool whole);
// "[[2, 1], [1, 4]]": the splits of operands or results.
std::string splitsText(const std::vector<std::vector<DimFactors>>& tensors, const Parts& parts);

}  // namespace weft::testing
