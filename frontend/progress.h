// How far training is, for people: one line that moves on a terminal, few lines in a log.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace weft {

// The steps that one `fit` reports, numbered as in the whole run.
struct ProgressRange {
  int64_t first = 0;  // steps done before
  int64_t last = 0;   // and after
  int64_t total = 0;  // of the whole run
};

class Progress {
 public:
  Progress(const ProgressRange& range, bool shown);
  // Ends the moving line, also of a run that failed.
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // After each step. A terminal's line moves at most ten times a second; a log gets at most one line a second, or ten
  // in all, whichever is fewer, one for the last step, and one for the first loss that is not finite.
  void report(int64_t done, double loss);

  // "[####....] step 12/40  loss 1.2345  3.20 steps/s  9 s left".
  static std::string text(const ProgressRange& range, int64_t done, double loss, double seconds);

 private:
  using Clock = std::chrono::steady_clock;
  bool isDue(int64_t done, Clock::time_point now) const;

  ProgressRange range_;
  bool shown_;
  bool terminal_;
  Clock::time_point start_;
  Clock::time_point lastTime_;
  int64_t lastDone_;
  bool failing_ = false;  // a loss was not finite
  size_t width_ = 0;      // of the terminal's line so far
};

}  // namespace weft
