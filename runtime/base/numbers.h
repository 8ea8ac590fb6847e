// Numbers that a person wrote, in a flag or a file.
//
//   WEFT_ASSIGN_OR_RETURN(const int64_t layers, parseInteger(text, {.least = 1}));
//
// The whole text must be the number, without spaces or a sign `+`. Errors quote the text and say what was expected:
// "'12x' is not an integer >= 1". The caller says whose number it is.
#pragma once

#include <cstdint>
#include <limits>
#include <string>

#include "absl/status/statusor.h"

namespace weft {

struct IntegerRange {
  int64_t least = std::numeric_limits<int64_t>::min();
  int64_t most = std::numeric_limits<int64_t>::max();
};

// Decimal digits, perhaps behind a minus. The code of an error is OutOfRange for an integer outside of the range, or
// of 64 bits, and InvalidArgument for everything else.
absl::StatusOr<int64_t> parseInteger(const std::string& text, const IntegerRange& range = {});

struct RealRange {
  double least = std::numeric_limits<double>::lowest();
  double most = std::numeric_limits<double>::max();
};

// "0.1", "-2", "1e-3"; not NaN, not infinity, not what rounds to infinity. Codes of errors as of parseInteger.
absl::StatusOr<double> parseReal(const std::string& text, const RealRange& range = {});

// Bytes: an integer >= 0, perhaps with a unit: k, m, g, t (powers of 1000) or ki, mi, gi, ti (of 1024): "40g".
absl::StatusOr<int64_t> parseBytes(const std::string& text);

}  // namespace weft
