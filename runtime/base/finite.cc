#include "runtime/base/finite.h"

#include <cmath>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace weft {
namespace {

// All bits of the exponent set: infinite where the mantissa is zero, else nan.
template <typename Bits, Bits exponent>
NonFinite scan(const void* data, int64_t elements) {
  constexpr Bits kMantissa = static_cast<Bits>((exponent & -exponent) - 1);
  NonFinite found;
  for (int64_t i = 0; i < elements; ++i) {
    Bits bits;
    std::memcpy(&bits, static_cast<const char*>(data) + i * static_cast<int64_t>(sizeof(Bits)), sizeof(Bits));
    if ((bits & exponent) != exponent) {
      continue;
    }
    const bool isNan = (bits & kMantissa) != 0;
    ++(isNan ? found.nans : found.infinities);
    found.first = found.first < 0 ? i : found.first;
    found.firstNan = isNan && found.firstNan < 0 ? i : found.firstNan;
  }
  return found;
}

std::string indexText(int64_t index, const std::vector<int64_t>& shape) {
  std::vector<int64_t> place(shape.size());
  for (size_t d = shape.size(); d-- > 0;) {
    place[d] = index % shape[d];
    index /= shape[d];
  }
  return shape.empty() ? "" : absl::StrCat(" at [", absl::StrJoin(place, ", "), "]");
}

}  // namespace

NonFinite nonFiniteIn(DType type, const void* data, int64_t elements) {
  switch (type) {
    case DType::kF32:
      return scan<uint32_t, 0x7f800000>(data, elements);
    case DType::kF64:
      return scan<uint64_t, 0x7ff0000000000000>(data, elements);
    case DType::kBF16:
      return scan<uint16_t, 0x7f80>(data, elements);
    case DType::kF16:
      return scan<uint16_t, 0x7c00>(data, elements);
    default:
      return {};
  }
}

std::string elementAt(DType type, const void* data, int64_t index, const std::vector<int64_t>& shape) {
  const int64_t width = byteSize(type);
  const char* const element = static_cast<const char*>(data) + index * width;
  const bool negative = (element[width - 1] & 0x80) != 0;  // little-endian: the sign is in the last byte
  const NonFinite found = nonFiniteIn(type, element, 1);
  const char* const text = found.nans > 0 ? "nan" : found.count() == 0 ? "a finite value" : negative ? "-inf" : "inf";
  return text + indexText(index, shape);
}

absl::Status checkLoss(double loss, int64_t step) {
  if (std::isfinite(loss)) {
    return absl::OkStatus();
  }
  const char* const text = std::isnan(loss) ? "nan" : loss < 0 ? "-inf" : "inf";
  return absl::OutOfRangeError(absl::StrCat("the loss of step ", step, " is not finite (", text,
                                            "): training diverged; lower the learning rate or clip the gradients; "
                                            "--check-finite names the operator where it began"));
}

}  // namespace weft
