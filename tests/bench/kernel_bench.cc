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

// A kernel of two inputs and a result, on memory of its own, against a product in oneDNN.
void compareKernel(benchmark::State& state, const KernelSpec& spec, const ProductShape& product) {
  const absl::StatusOr<std::unique_ptr<Kernel>> kernel = cpuKernels().create(spec);
  if (!kernel.ok()) {
    return state.SkipWithError(std::string(kernel.status().message()).c_str());
  }
  std::vector<float> a(spec.inputs[0].elements(), 0.5F), b(spec.inputs[1].elements(), 0.5F);
  std::vector<float> c(spec.outputs[0].elements());
  std::vector<char> room((*kernel)->workspaceBytes() + 64);
  const void* inputs[] = {a.data(), b.data()};
  void* outputs[] = {c.data()};
  KernelArguments arguments;
  arguments.inputs = inputs;
  arguments.outputs = outputs;
  arguments.workspace = reinterpret_cast<void*>((reinterpret_cast<uintptr_t>(room.data()) + 63) / 64 * 64);
  RawProduct raw(product);
  compare(state, [&] { (*kernel)->run(arguments).IgnoreError(); }, [&] { raw.run(); });
}

// Arguments: m, n, k. The matmul kernel, on one thread.
void matmulAgainstOneDnn(benchmark::State& state) {
  cpu::setLibraryThreads(1);
  const int64_t m = state.range(0), n = state.range(1), k = state.range(2);
  KernelSpec spec;
  spec.name = "matmul";
  spec.inputs = {{DType::kF32, {m, k}}, {DType::kF32, {k, n}}};
  spec.outputs = {{DType::kF32, {m, n}}};
  compareKernel(state, spec, {1, m, n, k});
}
BENCHMARK(matmulAgainstOneDnn)
    ->Args({16, 64, 64})
    ->Args({64, 64, 64})
    ->Args({256, 768, 768})
    ->Args({1024, 384, 384})
    ->Args({1024, 1536, 384})
    ->UseManualTime();

// Arguments: which of conv2d and its gradients; samples, channels in and out, rows and columns of the images, strides.
// Windows of 3 x 3 on one thread, against a product of as much arithmetic.
void convolutionAgainstOneDnn(benchmark::State& state) {
  cpu::setLibraryThreads(1);
  constexpr const char* kKernels[] = {"conv2d", "conv2d_input_grad", "conv2d_weight_grad"};
  const int64_t n = state.range(1), ci = state.range(2), co = state.range(3), size = state.range(4);
  const int64_t places = size / state.range(5);
  const TensorSpec image = {DType::kF32, {n, ci, size, size}};
  const TensorSpec weight = {DType::kF32, {co, ci, 3, 3}};
  const TensorSpec result = {DType::kF32, {n, co, places, places}};
  KernelSpec spec;
  spec.name = kKernels[state.range(0)];
  spec.inputs = state.range(0) == 0   ? std::vector{image, weight}
                : state.range(0) == 1 ? std::vector{result, weight}
                                      : std::vector{image, result};
  spec.outputs = {state.range(0) == 0 ? result : state.range(0) == 1 ? image : weight};
  spec.attributes = {{"strides", std::vector<int64_t>(2, state.range(5))}, {"paddings", std::vector<int64_t>{1, 1}}};
  compareKernel(state, spec, {1, co, n * places * places, 9 * ci});
}
BENCHMARK(convolutionAgainstOneDnn)
    ->ArgsProduct({{0, 1, 2}, {16}, {64}, {64}, {32, 16, 8, 4, 2}, {1}})
    ->Args({0, 16, 64, 128, 8, 2})
    ->Args({1, 16, 64, 128, 8, 2})
    ->Args({2, 16, 64, 128, 8, 2})
    ->Args({0, 16, 64, 128, 64, 2})
    ->Args({1, 16, 64, 128, 64, 2})
    ->UseManualTime();

// Argument: bytes. Two ranks that exchange a tensor, against two threads that copy as much without waiting.
void exchangeAgainstMemcpy(benchmark::State& state) {
  const int64_t bytes = state.range(0);
  const int64_t rounds = std::max<int64_t>(1, (int64_t{4} << 20) / bytes);
  InprocWorld world(2);
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
