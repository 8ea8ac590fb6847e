// How a rank waits for others that are threads of one process: what it does before it sleeps.
//
// To wake a sleeper takes about 50 us, and more where its core sleeps too. So a rank first looks again and again, about
// once in a nanosecond. Where there are more ranks than cores that keeps the core from a rank that is late, so there it
// yields the core between some looks: others run at once, and where there are none it stays awake a little longer.
#pragma once

#include <cstdint>
#include <thread>

namespace weft {

struct Patience {
  int64_t spins = 2000;  // looks without yielding
  int64_t yields = 0;    // looks after that; after each the core is offered to other threads

  // Waits until `over()`, as long as there is patience.
  template <typename Over>
  void wait(const Over& over) const {
    for (int64_t look = 0; look < spins + yields && !over(); ++look) {
      if (look >= spins) {
        std::this_thread::yield();
      }
    }
  }
};

// Of this host, at least 1.
int64_t hostCores();

// For so many ranks on this host.
Patience patienceFor(int64_t ranks);

}  // namespace weft
