#include "planner/step/pad_masks.h"

#include <algorithm>
#include <limits>

namespace weft {
namespace {

// The value that changes nothing in a reduction; the greatest of bools is true if any is.
double neutral(ReduceKind kind, DType type) {
  const double infinity = std::numeric_limits<double>::infinity();
  const double least = type == DType::kBool ? 0.0 : -infinity;
  return kind == ReduceKind::kSum ? 0.0 : kind == ReduceKind::kMax ? least : infinity;
}

// Does it matter to an operator what the pad of a factor holds, and what must that be? Nothing: it cannot run on it.
struct Need {
  bool matters = false;
  std::optional<double> fill;
};

Need needOf(const OperatorFacts& facts, const Rule& rule, unsigned operand, DType type, int factor) {
  if (rule.factors()[factor].whole) {
    return {true, facts.padFillOf(operand)};
  }
  Need need;
  for (unsigned r = 0; r < rule.results().size(); ++r) {
    if (rule.reducedIn(factor, r)) {
      need = {true, neutral(facts.reduceOf(r), type)};
    }
  }
  return need;
}

// Has a real operand the factor?
bool isInReal(const Rule& rule, const std::vector<DType>& types, int factor) {
  for (unsigned i = 0; i < types.size(); ++i) {
    for (const DimFactors& factors : rule.operands()[i]) {
      if (isFloat(types[i]) && std::find(factors.begin(), factors.end(), factor) != factors.end()) {
        return true;
      }
    }
  }
  return false;
}

}  // namespace

std::vector<PadMask> padMasks(const OperatorFacts& facts, const Rule& rule, unsigned operand,
                              const std::vector<DType>& types, const Layout& layout) {
  std::vector<PadMask> masks;
  for (size_t d = 0; d < layout.dimensions(); ++d) {
    const DimFactors& factors = rule.operands()[operand][d];
    if (layout.pad(d) == 0 || factors.empty() || (!isFloat(types[operand]) && isInReal(rule, types, factors.front()))) {
      continue;
    }
    const Need need = needOf(facts, rule, operand, types[operand], factors.front());
    if (need.matters) {
      masks.push_back({d, need.fill});
    }
  }
  return masks;
}

}  // namespace weft
