#include "planner/step/pad_masks.h"

#include <limits>

namespace weft {
namespace {

// The value that changes nothing in a reduction.
double neutral(ReduceKind kind) {
  const double infinity = std::numeric_limits<double>::infinity();
  return kind == ReduceKind::kSum ? 0.0 : kind == ReduceKind::kMax ? -infinity : infinity;
}

// Does it matter to an operator what the pad of a factor holds, and what must that be? Nothing: it cannot run on it.
struct Need {
  bool matters = false;
  std::optional<double> fill;
};

Need needOf(const OperatorFacts& facts, const Rule& rule, unsigned operand, int factor) {
  if (rule.factors()[factor].whole) {
    return {true, facts.padFillOf(operand)};
  }
  Need need;
  for (unsigned r = 0; r < rule.results().size(); ++r) {
    if (rule.reducedIn(factor, r)) {
      need = {true, neutral(facts.reduceOf(r))};
    }
  }
  return need;
}

}  // namespace

std::vector<PadMask> padMasks(const OperatorFacts& facts, const Rule& rule, unsigned operand, DType type,
                              const Layout& layout) {
  std::vector<PadMask> masks;
  for (size_t d = 0; isFloat(type) && d < layout.dimensions(); ++d) {
    const DimFactors& factors = rule.operands()[operand][d];
    if (layout.pad(d) == 0 || factors.empty()) {
      continue;
    }
    const Need need = needOf(facts, rule, operand, factors.front());
    if (need.matters) {
      masks.push_back({d, need.fill});
    }
  }
  return masks;
}

}  // namespace weft
