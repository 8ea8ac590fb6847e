// Predicted time, in whole picoseconds: sums do not depend on their order, and equal costs compare equal. Seconds are
// for people, files and plans.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

namespace weft {

using Picoseconds = int64_t;

inline constexpr double kPicosecondsPerSecond = 1e12;
// 53 days: what is longer counts as so long, and two of them can be added.
inline constexpr Picoseconds kLongestTime = std::numeric_limits<Picoseconds>::max() / 2;

inline double inSeconds(Picoseconds time) {
  return static_cast<double>(time) / kPicosecondsPerSecond;
}

// The nearest whole number of them, at most kLongestTime. inSeconds and back is the same up to 2^52, more than an hour.
inline Picoseconds picosecondsOf(double seconds) {
  const double time = seconds * kPicosecondsPerSecond;
  return time < static_cast<double>(kLongestTime) ? static_cast<Picoseconds>(std::llround(time)) : kLongestTime;
}

}  // namespace weft
