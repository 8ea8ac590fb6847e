// Divisors, for cuts of axes and for the remedies in error texts.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace weft {

// All divisors of n > 0, ascending.
std::vector<int64_t> divisorsOf(int64_t n);

// The divisors of `size` on both sides of `wanted`, as text: "2 and 6". For size 0 every split is legal.
std::string nearestDivisors(int64_t size, int64_t wanted);

}  // namespace weft
