// exp, tanh, erf and log(1 + x) that loops can be made vectors of: no branches, no tables, no library calls in f32. f64
// takes the standard library's.
//
// Errors in f32, measured against double over the whole range (tests/kernels/elementwise_test.cc): each
// at most 2 units in the last place. The polynomials are Chebyshev fits of the functions named beside them, made with
// 40 digits; n in 2^n is found by rounding x / ln 2, and ln 2 is split in two so that x - n ln 2 is exact enough (Cody
// and Waite, "Software Manual for the Elementary Functions", 1980).
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

namespace weft::cpu::math {

// a b + c, rounded once where the instruction set can.
inline float fused(float a, float b, float c) {
#ifdef __FMA__
  return __builtin_fmaf(a, b, c);
#else
  return a * b + c;
#endif
}

// 2^n for n in -126 ... 127.
inline float powerOfTwo(int32_t n) {
  return std::bit_cast<float>((n + 127) << 23);
}

inline float exp(float x) {
  constexpr float kInverseLn2 = 1.44269504F;
  constexpr float kLn2High = 0.693359375F;  // 10 bits: n times it is exact
  constexpr float kLn2Low = -2.12194440e-4F;
  constexpr float kRound = 12582912.0F;  // 1.5 * 2^23: adding it leaves an integer in the low bits
  // Outside, the result is infinite or rounds to 0. A NaN passes both comparisons.
  float bounded = x > 88.8F ? 88.8F : x;
  bounded = bounded < -104.0F ? -104.0F : bounded;
  const float shifted = fused(bounded, kInverseLn2, kRound);
  const float n = shifted - kRound;
  const float r = fused(n, -kLn2Low, fused(n, -kLn2High, bounded));
  // (exp(r) - 1 - r) / r^2 on |r| <= ln 2 / 2.
  float q = 1.392625083e-3F;
  q = fused(q, r, 8.363232884e-3F);
  q = fused(q, r, 4.166655421e-2F);
  q = fused(q, r, 1.666657667e-1F);
  q = fused(q, r, 0.5F);
  const float power = fused(q, r * r, r) + 1.0F;
  // Two factors: 2^n alone may be infinite or subnormal.
  const int32_t exponent = std::bit_cast<int32_t>(shifted) - std::bit_cast<int32_t>(kRound);
  const int32_t half = exponent >> 1;
  return power * powerOfTwo(half) * powerOfTwo(exponent - half);
}

inline float tanh(float x) {
  const float size = std::fabs(x);
  // (tanh(x) / x - 1) / x^2 in z = x^2, x <= 0.625.
  const float z = x * x;
  float q = 2.292744816e-3F;
  q = fused(q, z, -8.343945516e-3F);
  q = fused(q, z, 2.176891865e-2F);
  q = fused(q, z, -5.395925958e-2F);
  q = fused(q, z, 1.333330356e-1F);
  q = fused(q, z, -3.333333317e-1F);
  const float small = fused(q * z, x, x);
  const float large = std::copysign(1.0F - 2.0F / (exp(2.0F * size) + 1.0F), x);
  return size <= 0.625F ? small : large;
}

inline float erf(float x) {
  const float size = std::fabs(x);
  // erf(x) / x - 1 in z = x^2, x <= 0.9375.
  const float z = x * x;
  float q = 8.285826549e-5F;
  q = fused(q, z, -8.122960888e-4F);
  q = fused(q, z, 5.199318198e-3F);
  q = fused(q, z, -2.685872269e-2F);
  q = fused(q, z, 1.12836837e-1F);
  q = fused(q, z, -3.7612633e-1F);
  q = fused(q, z, 1.283791666e-1F);
  const float small = fused(q, x, x);
  // log(1 - erf(x)), 0.93 <= x <= 4; 1 - erf(4) is below half a unit in the last place of 1.
  const float t = size > 4.0F ? 4.0F : size;
  float p = 1.643487203e-6F;
  p = fused(p, t, -4.617800016e-5F);
  p = fused(p, t, 5.977610695e-4F);
  p = fused(p, t, -4.763749466e-3F);
  p = fused(p, t, 2.643181434e-2F);
  p = fused(p, t, -1.100964944e-1F);
  p = fused(p, t, -6.318116364e-1F);
  p = fused(p, t, -1.130239791F);
  p = fused(p, t, 3.211113002e-4F);
  const float large = std::copysign(1.0F - exp(p), x);
  return size <= 0.9375F ? small : large;
}

// log(1 + x) for x from 0 to 1, as 2 artanh(s), s = x / (2 + x): its series in s^2 <= 1/9 up to the term below half a
// unit in the last place.
inline float log1p(float x) {
  const float s = x / (2.0F + x);
  const float z = s * s;
  float q = 1.0F / 15;
  q = fused(q, z, 1.0F / 13);
  q = fused(q, z, 1.0F / 11);
  q = fused(q, z, 1.0F / 9);
  q = fused(q, z, 1.0F / 7);
  q = fused(q, z, 1.0F / 5);
  q = fused(q, z, 1.0F / 3);
  return fused(q * z, 2.0F * s, 2.0F * s);
}

inline double exp(double x) {
  return std::exp(x);
}
inline double tanh(double x) {
  return std::tanh(x);
}
inline double erf(double x) {
  return std::erf(x);
}
inline double log1p(double x) {
  return std::log1p(x);
}

}  // namespace weft::cpu::math
