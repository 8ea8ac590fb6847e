#include "runtime/comm/patience.h"

#include <algorithm>

namespace weft {

int64_t hostCores() {
  return std::max<int64_t>(1, std::thread::hardware_concurrency());
}

Patience patienceFor(int64_t ranks) {
  constexpr Patience kEachHasACore = {.spins = 100'000, .yields = 0};
  constexpr Patience kTheyTakeTurns = {.spins = 200, .yields = 1000};
  return ranks <= hostCores() ? kEachHasACore : kTheyTakeTurns;
}

}  // namespace weft
