// Numbers that are not finite: nan, inf and -inf among the elements of a tensor.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "runtime/base/dtype.h"

namespace weft {

// Numbers that a user gives become f32 on the ranks: is it finite as such?
inline bool isFiniteInF32(double value) {
  return std::abs(value) <= std::numeric_limits<float>::max();
}

struct NonFinite {
  int64_t nans = 0;
  int64_t infinities = 0;
  int64_t first = -1;     // index of the first of both, row-major
  int64_t firstNan = -1;  // and of the first nan
  int64_t count() const { return nans + infinities; }
};

// None in tensors of other types than floats.
NonFinite nonFiniteIn(DType type, const void* data, int64_t elements);

// "nan at [2, 13]", "-inf": the element at row-major `index` of a tensor of this shape.
std::string elementAt(DType type, const void* data, int64_t index, const std::vector<int64_t>& shape);

// An error where the loss of a step is nan or infinite: which step, and what helps.
absl::Status checkLoss(double loss, int64_t step);

}  // namespace weft
