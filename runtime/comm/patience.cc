#include "runtime/comm/patience.h"

#include <algorithm>

namespace weft {

int64_t hostCores() {
  return std::max<int64_t>(1, std::thread::hardware_concurrency());
}

Patience patienceFor(int64_t ranks) {
  constexpr Patience kEachHasACore = {.spins = 100'000, .yields = 0};
  // One that keeps yielding stays on its core, also beside two others while another core has one rank alone: soon it
  // sleeps, and wakes on a core that is free.
  constexpr Patience kTheyTakeTurns = {.spins = 500, .yields = 30};
  return ranks <= hostCores() ? kEachHasACore : kTheyTakeTurns;
}

}  // namespace weft
