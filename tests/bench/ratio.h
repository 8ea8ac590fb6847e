// Two micro-batches of work timed in turn, ours, the other, ours, ...: both see the same state of the machine, and the
// median of the ratios says more than a quotient of two medians. A figure below 1 means that ours is faster.
#pragma once

#include <benchmark/benchmark.h>

#include <chrono>
#include <vector>

#include "tools/measure/median.h"

namespace weft::bench {

template <typename Work>
double secondsOf(const Work& work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

// Pairs of seconds of so many calls, reported as counters: `ours_us` and `other_us` of one call, `ratio`.
class Pairs {
 public:
  explicit Pairs(benchmark::State& state, double calls = 1) : state_(state), calls_(calls) {}
  ~Pairs() {
    state_.counters["ours_us"] = 1e6 * tools::median(ours_) / calls_;
    state_.counters["other_us"] = 1e6 * tools::median(other_) / calls_;
    state_.counters["ratio"] = tools::median(ratios_);
  }

  void add(double ours, double other) {
    state_.SetIterationTime(ours);
    ours_.push_back(ours);
    other_.push_back(other);
    ratios_.push_back(ours / other);
  }

 private:
  benchmark::State& state_;
  double calls_;
  std::vector<double> ours_;
  std::vector<double> other_;
  std::vector<double> ratios_;
};

// One call of each per iteration of a benchmark that was registered with UseManualTime().
template <typename Ours, typename Other>
void compare(benchmark::State& state, const Ours& ours, const Other& other) {
  Pairs pairs(state);
  for (auto _ : state) {
    const double seconds = secondsOf(ours);
    pairs.add(seconds, secondsOf(other));
  }
}

}  // namespace weft::bench
