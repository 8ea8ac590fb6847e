// Kernels and collectives against what they are made of: oneDNN's own call, memcpy.

#include <cstring>

#include "kernels/cpu/threads.h"
#include "kernels/kernel.h"
#include "runtime/comm/inproc.h"
#include "runtime/exec/rank_threads.h"
#include "tests/bench/ratio.h"
#include "tests/bench/raw_product.h"

namespace weft::bench {
namespace {

// Arguments: m, n, k. The matmul kernel, on one thread.
void matmulAgainstOneDnn(benchmark::State& state) {
  cpu::setLibraryThreads(1);
  const int64_t m = state.range(0), n = state.range(1), k = state.range(2);
  std::vector<float> a(m * k, 0.5F), b(k * n, 0.5F), c(m * n);
  KernelSpec spec;
  spec.name = "matmul";
  spec.inputs = {{DType::kF32, {m, k}}, {DType::kF32, {k, n}}};
  spec.outputs = {{DType::kF32, {m, n}}};
  const absl::StatusOr<std::unique_ptr<Kernel>> kernel = cpuKernels().create(spec);
  if (!kernel.ok()) {
    return state.SkipWithError(std::string(kernel.status().message()).c_str());
  }
  std::vector<char> room((*kernel)->workspaceBytes() + 64);
  const void* inputs[] = {a.data(), b.data()};
  void* outputs[] = {c.data()};
  KernelArguments arguments;
  arguments.inputs = inputs;
  arguments.outputs = outputs;
  arguments.workspace = reinterpret_cast<void*>((reinterpret_cast<uintptr_t>(room.data()) + 63) / 64 * 64);
  RawProduct raw({1, m, n, k});
  compare(state, [&] { (*kernel)->run(arguments).IgnoreError(); }, [&] { raw.run(); });
}
BENCHMARK(matmulAgainstOneDnn)
    ->Args({16, 64, 64})
    ->Args({64, 64, 64})
    ->Args({256, 768, 768})
    ->Args({1024, 384, 384})
    ->Args({1024, 1536, 384})
    ->UseManualTime();

// Argument: bytes. Two ranks that exchange a tensor, against two threads that copy as much without waiting.
void exchangeAgainstMemcpy(benchmark::State& state) {
  const int64_t bytes = state.range(0);
  const int64_t rounds = std::max<int64_t>(1, (int64_t{4} << 20) / bytes);
  InprocOptions options;
  options.spins = spinsFor(2);
  InprocWorld world(2, options);
  const absl::StatusOr<std::shared_ptr<RankThreads>> threads = RankThreads::create(2, 1);
  if (!threads.ok()) {
    return state.SkipWithError(std::string(threads.status().message()).c_str());
  }
  std::vector<std::vector<char>> in(2, std::vector<char>(bytes, 1)), out(2, std::vector<char>(bytes));
  std::vector<std::unique_ptr<InprocCommunicator>> ranks;
  for (int64_t rank = 0; rank < 2; ++rank) {
    ranks.push_back(std::make_unique<InprocCommunicator>(world, rank));
    ranks.back()->reserve(1, 0);
  }
  // Seconds of all rounds on rank 0, both ranks warm.
  const auto timed = [&](const std::function<void(int64_t)>& once) {
    double seconds = 0;
    (*threads)->run([&](int64_t rank) {
      once(rank);
      const double spent = secondsOf([&] {
        for (int64_t round = 0; round < rounds; ++round) {
          once(rank);
        }
      });
      if (rank == 0) {
        seconds = spent;
      }
    });
    return seconds;
  };
  Pairs pairs(state, static_cast<double>(rounds));
  for (auto _ : state) {
    const double ours = timed([&](int64_t rank) {
      const std::vector<CollectiveTensor> tensors = {
          {in[rank].data(), out[rank].data(), DType::kF32, {bytes / 4}, 0, 0}};
      ranks[rank]->permute(1 - rank, tensors).IgnoreError();
    });
    pairs.add(ours, timed([&](int64_t rank) {
                std::memcpy(out[rank].data(), in[1 - rank].data(), bytes);
                benchmark::ClobberMemory();
              }));
  }
}
BENCHMARK(exchangeAgainstMemcpy)->Arg(4 << 10)->Arg(64 << 10)->Arg(1 << 20)->Arg(16 << 20)->UseManualTime();

}  // namespace
}  // namespace weft::bench
