// Which pads matter to an operator, and what they must hold: a padded dimension that it reduces over or needs whole is
// filled, beyond the tensor's own elements, with what changes nothing (0 for a sum).
#pragma once

#include <optional>
#include <vector>

#include "ir/layout/rule.h"
#include "planner/graph/program_graph.h"

namespace weft {

struct PadMask {
  size_t dim = 0;
  std::optional<double> fill;  // none: the operator cannot run on a pad of this dimension
  friend bool operator==(const PadMask&, const PadMask&) = default;
};

// What operand `operand`, read in `layout`, must be masked with before the operator reads it; `types` are those of all
// operands, `rule` has stored sizes. Integers and bools are not masked beside a real operand that is (labels beside
// losses): what they index by or choose counts nothing then.
std::vector<PadMask> padMasks(const OperatorFacts& facts, const Rule& rule, unsigned operand,
                              const std::vector<DType>& types, const Layout& layout);

}  // namespace weft
