// Arithmetic on sizes that stays defined whatever numbers it meets.
#pragma once

#include <cstdint>

namespace weft {

// Sums and products of sizes never pass this; it is more than any machine has bytes, and two of them still add up.
inline constexpr int64_t kMostSize = int64_t{1} << 62;

// a + b and a * b of numbers from 0 on, at most kMostSize.
inline int64_t boundedSum(int64_t a, int64_t b) {
  int64_t sum = 0;
  return __builtin_add_overflow(a, b, &sum) || sum > kMostSize ? kMostSize : sum;
}
inline int64_t boundedProduct(int64_t a, int64_t b) {
  int64_t product = 0;
  return __builtin_mul_overflow(a, b, &product) || product > kMostSize ? kMostSize : product;
}

// Regions, the buffers in them, and the parts of a kernel's scratch begin at multiples of this.
inline constexpr int64_t kAlignment = 64;
// The least multiple of `alignment` that is not below `bytes`, which counts from 0 on; at most kMostSize.
inline int64_t alignUp(int64_t bytes, int64_t alignment = kAlignment) {
  return boundedProduct(boundedSum(bytes, alignment - 1) / alignment, alignment);
}

// How many elements an array of these sizes has.
template <typename Sizes>
int64_t boundedElements(const Sizes& sizes) {
  int64_t elements = 1;
  for (const int64_t size : sizes) {
    elements = boundedProduct(elements, size);
  }
  return elements;
}

}  // namespace weft
