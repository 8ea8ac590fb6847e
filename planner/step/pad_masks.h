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

// What operand `operand`, of element type `type` and read in `layout`, must be masked with before the operator reads
// it; `rule` has stored sizes. Only real numbers are masked.
std::vector<PadMask> padMasks(const OperatorFacts& facts, const Rule& rule, unsigned operand, DType type,
                              const Layout& layout);

}  // namespace weft
