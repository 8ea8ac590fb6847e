// A condition variable for ranks of one process: a waiter spins before its thread sleeps.
//
// To wake a sleeping thread takes about 50 us, and more where its core sleeps too. So a thread first checks the
// condition again and again, about once in a nanosecond. A rank that shares its thread never sleeps in here: it lets
// the others run (runtime/base/fibers.h).
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>

#include "runtime/base/fibers.h"

namespace weft {

// Checks before a thread with a core of its own sleeps: about 100 us.
inline constexpr int64_t kSpinsOnOwnCore = 100'000;

class SpinningCondition {
 public:
  // `spins`: checks before a thread sleeps.
  explicit SpinningCondition(int64_t spins) : spins_(spins) {}

  // Returns when `isMet()`, which reads without a lock what update() writes, or when `timeout` (0: never) has passed.
  // Is it met?
  template <typename IsMet>
  bool wait(const IsMet& isMet, std::chrono::milliseconds timeout) {
    if (Fibers::isCurrent()) {
      return Fibers::wait(isMet, timeout);
    }
    for (int64_t spin = 0; spin < spins_; ++spin) {
      if (isMet()) {
        return true;
      }
    }
    std::unique_lock<std::mutex> lock(mutex_);
    if (timeout.count() > 0) {
      return wake_.wait_for(lock, timeout, isMet);
    }
    wake_.wait(lock, isMet);
    return true;
  }

  // Calls `write()` under the lock and wakes all waiters.
  template <typename Write>
  void update(const Write& write) {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      write();
    }
    wake_.notify_all();
  }

 private:
  int64_t spins_;
  std::mutex mutex_;
  std::condition_variable wake_;
};

}  // namespace weft
