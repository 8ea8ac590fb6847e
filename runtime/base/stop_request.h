// Asking a long run to end early, after the step it is in.
//
//   StopRequest stop;
//   StopOnSignals signals(stop);                       // SIGINT and SIGTERM ask from here on; a second one ends at
//   once Trainer trainer(program, {.stop = &stop}); absl::Status trained = trainer.fit(300, feed);     // Cancelled:
//   "stopped by SIGINT after step 57 of 300" trainer.save(path);
//
// Anybody may ask: another thread, a signal handler, a callback. Nothing in the library installs signal handlers by
// itself.
#pragma once

#include <atomic>
#include <csignal>
#include <string>

namespace weft {

class StopRequest {
 public:
  // May be called in a signal handler; the first call counts. `signal`: what asked, 0 for no signal.
  void request(int signal = 0) noexcept {
    int none = kNone;
    asked_.compare_exchange_strong(none, signal);
  }
  bool isRequested() const { return asked_.load(std::memory_order_relaxed) != kNone; }
  // 0 if nobody asked, or no signal.
  int signal() const { return isRequested() ? asked_.load() : 0; }
  // "by SIGINT", "as requested".
  std::string reason() const;

 private:
  static constexpr int kNone = -1;
  static_assert(std::atomic<int>::is_always_lock_free, "a signal handler sets it");
  std::atomic<int> asked_{kNone};
};

// While it lives, the first SIGINT or SIGTERM sets the request and restores the default action of both, so that a
// second one ends the program at once. A signal that the process ignores (as under nohup) stays ignored. One at a time.
class StopOnSignals {
 public:
  explicit StopOnSignals(StopRequest& stop);
  // What was there before is back.
  ~StopOnSignals();
  StopOnSignals(const StopOnSignals&) = delete;
  StopOnSignals& operator=(const StopOnSignals&) = delete;

 private:
  struct sigaction interrupt_ = {};
  struct sigaction terminate_ = {};
};

// What a shell reports of a program that a signal ended: 130 for SIGINT, 143 for SIGTERM.
inline int exitStatusOf(int signal) {
  return 128 + signal;
}

}  // namespace weft
