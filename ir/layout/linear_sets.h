// Sets of operands in which an operator is jointly linear: a partial sum over the same axes of all operands of one set
// passes through to its results.
#pragma once

#include <algorithm>
#include <vector>

namespace weft {

// May the operand be partial? It may where some set holds it and exactly the operands that are `partial`.
template <typename Sets>
bool linearIn(const Sets& sets, unsigned operand, const std::vector<bool>& partial) {
  return std::any_of(sets.begin(), sets.end(), [&](const auto& set) {
    const auto holds = [&](unsigned i) { return std::find(set.begin(), set.end(), i) != set.end(); };
    bool exactly = holds(operand);
    for (unsigned i = 0; i < partial.size(); ++i) {
      exactly &= partial[i] == holds(i);
    }
    return exactly;
  });
}

}  // namespace weft
