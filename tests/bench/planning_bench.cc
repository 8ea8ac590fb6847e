// What the compiler spends on schedules and memory.

#include <random>

#include "planner/memory/pack.h"
#include "planner/schedule/generate.h"
#include "planner/schedule/simulate.h"
#include "tests/bench/ratio.h"
#include "tests/planner/memory/pack_instances.h"

namespace weft::bench {
namespace {

// Planning by enumeration can afford 10 us for each action; `ratio` is the part of that which is used.
constexpr double kBoundPerAction = 10e-6;

// Argument: micro-batches, on 8 ranks of 4 stages.
void simulateSchedule(benchmark::State& state) {
  const auto micros = static_cast<int32_t>(state.range(0));
  const auto table = schedule::generate({schedule::Kind::kZbInterleaved, 8, 4, micros});
  const schedule::Times times = schedule::Times::uniform(1, 1, 1);
  std::vector<double> perAction;
  for (auto _ : state) {
    const double seconds = secondsOf([&] { benchmark::DoNotOptimize(schedule::simulate(*table, times)); });
    state.SetIterationTime(seconds);
    perAction.push_back(seconds / static_cast<double>(table->actions()));
  }
  state.counters["ns_per_action"] = 1e9 * tools::median(perAction);
  state.counters["ratio"] = tools::median(perAction) / kBoundPerAction;
}
BENCHMARK(simulateSchedule)->Arg(32)->Arg(512)->UseManualTime();

// Argument: items of a rectangle cut into pinwheels, which no greedy order packs; `ratio` is the region against the
// optimum, which is known.
void packPinwheels(benchmark::State& state) {
  constexpr int64_t kBytes = 64 * 1000;
  std::mt19937 random(7);
  const std::vector<PackItem> items = cutRectangle(random, static_cast<int>(state.range(0)), 1000, kBytes, true);
  PackOptions options;
  options.alignment = 1;
  Packing packing;
  for (auto _ : state) {
    state.SetIterationTime(secondsOf([&] { packing = pack(items, options); }));
  }
  state.counters["ratio"] = static_cast<double>(packing.bytes) / kBytes;
  state.counters["greedy_ratio"] = static_cast<double>(packing.greedyBytes) / kBytes;
}
BENCHMARK(packPinwheels)->Arg(60)->Arg(150)->UseManualTime()->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace weft::bench
