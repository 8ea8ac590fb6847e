// The middle one of measured values, which a few disturbed ones do not move.
#pragma once

#include <algorithm>
#include <vector>

namespace weft::tools {

// Of an even number the upper one of the two in the middle; 0 of none.
inline double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values.empty() ? 0 : values[values.size() / 2];
}

}  // namespace weft::tools
