#include "runtime/base/float_types.h"

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

namespace weft {
namespace {

template <typename T>
T bitsAs(const char* at) {
  T value;
  std::memcpy(&value, at, sizeof(T));
  return value;
}

double fromBfloat16(uint16_t bits) {
  const uint32_t wide = static_cast<uint32_t>(bits) << 16;
  float value;
  std::memcpy(&value, &wide, sizeof(value));
  return value;
}

// 1 sign bit, 5 of the exponent (bias 15), 10 of the fraction.
double fromFloat16(uint16_t bits) {
  const double sign = (bits & 0x8000) != 0 ? -1.0 : 1.0;
  const int exponent = (bits >> 10) & 0x1f;
  const int fraction = bits & 0x3ff;
  if (exponent == 0x1f) {
    return fraction == 0 ? sign * std::numeric_limits<double>::infinity() : std::numeric_limits<double>::quiet_NaN();
  }
  return exponent == 0 ? sign * std::ldexp(fraction, -24) : sign * std::ldexp(0x400 + fraction, exponent - 25);
}

double elementAs(DType type, const char* at) {
  switch (type) {
    case DType::kF32:
      return bitsAs<float>(at);
    case DType::kF64:
      return bitsAs<double>(at);
    case DType::kBF16:
      return fromBfloat16(bitsAs<uint16_t>(at));
    case DType::kF16:
      return fromFloat16(bitsAs<uint16_t>(at));
    case DType::kI32:
    case DType::kI64:
    case DType::kBool:
      return std::numeric_limits<double>::quiet_NaN();
  }
}

template <typename T>
std::vector<char> convert(const std::vector<char>& bytes, DType from) {
  const int64_t width = byteSize(from);
  const int64_t elements = static_cast<int64_t>(bytes.size()) / width;
  std::vector<char> result(elements * sizeof(T));
  for (int64_t i = 0; i < elements; ++i) {
    const T value = static_cast<T>(elementAs(from, bytes.data() + i * width));
    std::memcpy(result.data() + i * sizeof(T), &value, sizeof(T));
  }
  return result;
}

}  // namespace

std::vector<char> convertFloats(const std::vector<char>& bytes, DType from, DType to) {
  if (from == to) {
    return bytes;
  }
  return to == DType::kF64 ? convert<double>(bytes, from) : convert<float>(bytes, from);
}

}  // namespace weft
