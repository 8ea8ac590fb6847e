// Whole programs: a training step against its products alone, compilation by number of layers.

#include "examples/gpt/model.h"
#include "kernels/cpu/threads.h"
#include "kernels/kernel.h"
#include "runtime/exec/executor.h"
#include "tests/bench/ratio.h"
#include "tests/bench/raw_product.h"
#include "weft/weft.h"

namespace weft::bench {
namespace {

examples::GptConfig configOf(int64_t layers) {
  examples::GptConfig config;
  config.vocabulary = 256;
  config.layers = layers;
  config.width = 384;
  config.heads = 6;
  config.context = 128;
  config.batch = 4;
  return config;
}

absl::StatusOr<Program> compileGpt(const examples::GptConfig& config) {
  Graph g;
  const examples::GptModel model = examples::buildGpt(g, config);
  return compile(g, model.loss, optim::AdamW{});
}

// Forward, and the two products of each in the backward pass.
void addWithGradients(std::vector<ProductShape>& list, const ProductShape& s) {
  list.push_back(s);
  list.push_back({s.batch, s.m, s.k, s.n, false, true});  // dA = dC B^T
  list.push_back({s.batch, s.k, s.n, s.m, true, false});  // dB = A^T dC
}

// All products of one step, attention over whole squares.
std::vector<ProductShape> productsOf(const examples::GptConfig& c) {
  const int64_t rows = c.batch * c.context;
  const int64_t head = c.width / c.heads;
  std::vector<ProductShape> list;
  for (int64_t layer = 0; layer < c.layers; ++layer) {
    addWithGradients(list, {1, rows, 3 * c.width, c.width});
    addWithGradients(list, {c.batch * c.heads, c.context, c.context, head});
    addWithGradients(list, {c.batch * c.heads, c.context, head, c.context});
    addWithGradients(list, {1, rows, c.width, c.width});
    addWithGradients(list, {1, rows, 4 * c.width, c.width});
    addWithGradients(list, {1, rows, c.width, 4 * c.width});
  }
  addWithGradients(list, {1, rows, c.vocabulary, c.width});
  return list;
}

// A step on one rank of one thread. `ratio` would be 1 if all but the products were free.
void gptStepAgainstItsProducts(benchmark::State& state) {
  cpu::setLibraryThreads(1);
  const examples::GptConfig config = configOf(2);
  const absl::StatusOr<Program> program = compileGpt(config);
  const KernelRegistry kernels = cpuKernels();
  if (!program.ok()) {
    return state.SkipWithError(std::string(program.status().message()).c_str());
  }
  const absl::StatusOr<std::unique_ptr<Executor>> executor =
      Executor::create(program->plan, kernels, {.threadsPerRank = 1});
  if (!executor.ok() || !(*executor)->runInit().ok()) {
    return state.SkipWithError(std::string(executor.status().message()).c_str());
  }
  keepZeroInputs(**executor);
  std::vector<std::unique_ptr<RawProduct>> products;
  for (const ProductShape& shape : productsOf(config)) {
    products.push_back(std::make_unique<RawProduct>(shape));
  }
  compare(
      state, [&] { (*executor)->runStep().IgnoreError(); },
      [&] {
        for (const auto& product : products) {
          product->run();
        }
      });
}
BENCHMARK(gptStepAgainstItsProducts)->UseManualTime()->Unit(benchmark::kMillisecond);

// Argument: layers. `ratio`: time against that of half as many layers; 2 where it grows in proportion.
void compileGptAgainstHalf(benchmark::State& state) {
  const int64_t layers = state.range(0);
  const auto compileOf = [](int64_t count) {
    return [count] { benchmark::DoNotOptimize(compileGpt(configOf(count)).ok()); };
  };
  compare(state, compileOf(layers), compileOf(layers / 2));
  state.counters["us_per_layer"] = state.counters["ours_us"] / static_cast<double>(layers);
}
BENCHMARK(compileGptAgainstHalf)->Arg(4)->Arg(16)->UseManualTime()->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace weft::bench
