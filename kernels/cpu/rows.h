// Work on one row: what softmax, cross entropy and attention share. Sums are taken in double.
#pragma once

#include <cstdint>

#include "kernels/cpu/loops.h"
#include "kernels/cpu/math.h"

namespace weft::cpu {

// y = exp(x - most), which may be x; returns the sum.
template <typename T>
double exponentials(const T* x, T most, int64_t n, T* y) {
  WEFT_INDEPENDENT
  for (int64_t i = 0; i < n; ++i) {
    y[i] = math::exp(x[i] - most);
  }
  return laneSum(n, [&](int64_t i) { return y[i]; });
}

// The sum of exp(x - most), without storing them: in pieces that stay in the first-level cache.
template <typename T>
double sumOfExponentials(const T* x, T most, int64_t n) {
  constexpr int64_t kPiece = 512;
  T piece[kPiece];
  double total = 0;
  for (int64_t i = 0; i < n; i += kPiece) {
    total += exponentials(x + i, most, std::min(kPiece, n - i), piece);
  }
  return total;
}

template <typename T>
void scaleRow(T* y, T factor, int64_t n) {
  WEFT_INDEPENDENT
  for (int64_t i = 0; i < n; ++i) {
    y[i] *= factor;
  }
}

template <typename T>
double dotRow(const T* a, const T* b, int64_t n) {
  return laneSum(n, [&](int64_t i) { return static_cast<double>(a[i]) * b[i]; });
}

}  // namespace weft::cpu
