// A machine that computes on one queue and communicates on another, as the clock of one rank.
//
// Each queue runs what it is given in order and never rests while it has something. A collective begins once what was
// computed before it is done; computation goes on, and waits where it reads what is under way. Beside a collective
// kernels take Machine::overlapSlowdown times as long; the collective does not.
//
// So both queues rest at the same time never: all of it takes at most the sum of its times, and never less than the
// sum of those of either queue.
#pragma once

#include <algorithm>
#include <cmath>

#include "planner/machine/machine.h"
#include "planner/machine/picoseconds.h"

namespace weft {

class TwoQueues {
 public:
  explicit TwoQueues(const Machine& machine) : slowdown_(std::max(1.0, machine.overlapSlowdown)) {}

  // When what was computed so far is done.
  Picoseconds now() const { return now_; }
  // When what was begun so far is done.
  Picoseconds idle() const { return std::max(now_, communicated_); }

  void compute(Picoseconds time) {
    const Picoseconds beside = std::max<Picoseconds>(communicated_ - now_, 0);
    const auto slowed = static_cast<Picoseconds>(std::ceil(static_cast<double>(time) * slowdown_));
    if (slowed <= beside) {
      now_ += slowed;
      return;
    }
    const auto done = static_cast<Picoseconds>(std::floor(static_cast<double>(beside) / slowdown_));
    now_ += beside + time - std::min(done, time);
  }

  // A collective of so long; when it ends.
  Picoseconds communicate(Picoseconds time) { return communicated_ = idle() + time; }

  void waitUntil(Picoseconds end) { now_ = std::max(now_, end); }

 private:
  double slowdown_;
  Picoseconds now_ = 0;           // of the queue that computes
  Picoseconds communicated_ = 0;  // the end of the last collective
};

}  // namespace weft
