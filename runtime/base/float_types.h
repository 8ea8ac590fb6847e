// Floats of one type as another.
#pragma once

#include <vector>

#include "runtime/base/dtype.h"

namespace weft {

// The elements of a float tensor in another float type: half-precision values exactly, f64 rounded to the nearest f32.
// `from` is any float type, `to` f32 or f64; `bytes` holds whole elements of `from`.
std::vector<char> convertFloats(const std::vector<char>& bytes, DType from, DType to);

}  // namespace weft
