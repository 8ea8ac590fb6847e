// Generation with a cache of keys and values gives the tokens that all rows at once give, on one rank, with heads
// split, and in pipeline stages, over the parameters of a trained program.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <optional>

#include "examples/gpt/model.h"
#include "weft/models/all.h"
#include "weft/weft.h"

namespace weft {
namespace {

constexpr int64_t kBatch = 2;
constexpr int64_t kRows = 12;

models::LlamaConfig smallLlama(int64_t stages) {
  return {.vocabulary = 37,
          .width = 16,
          .hidden = 24,
          .layers = 2,
          .heads = 4,
          .keyHeads = 2,
          .headWidth = 4,
          .deviation = 0.5,
          .stages = stages};
}

struct Way {
  std::string name;
  std::string mesh;
  nn::Parallel parallel = {};
  int64_t stages = 1;

  friend void PrintTo(const Way& way, std::ostream* out) { *out << way.name; }
};

// Logits of all rows, and of one over caches.
struct Model {
  std::string name;
  Tensor (*whole)(Graph& g, const Way& way);
  Tensor (*step)(Graph& g, const Way& way);

  friend void PrintTo(const Model& model, std::ostream* out) { *out << model.name; }
};

Tensor sharded(Graph& g, const Way& way, const Tensor& logits) {
  if (way.parallel.any()) {
    g.shard(models::llamaSharding(smallLlama(way.stages), way.parallel));
  }
  return logits;
}

Tensor llama(Graph& g, const Way& way) {
  return sharded(g, way, models::llama(g, smallLlama(way.stages), g.input("x", {kBatch, kRows}, kI32)));
}

Tensor llamaStep(Graph& g, const Way& way) {
  const nn::Decoding decoding = nn::decodingAt(g, kRows);
  const Tensor ids = g.input("x", {kBatch, 1}, kI32);
  return sharded(g, way, models::llamaStep(g, smallLlama(way.stages), ids, decoding));
}

examples::GptConfig smallGpt(const Way& way) {
  return {.vocabulary = 37,
          .layers = 2,
          .width = 16,
          .heads = 4,
          .context = kRows,
          .batch = kBatch,
          .deviation = 0.5,
          .stages = way.stages,
          .parallel = way.parallel};
}

Tensor gpt(Graph& g, const Way& way) {
  return examples::buildGpt(g, smallGpt(way)).logits;
}

Tensor gptStep(Graph& g, const Way& way) {
  return examples::buildGptStep(g, smallGpt(way));
}

class GenerationTest : public ::testing::TestWithParam<std::tuple<Model, Way>> {
 protected:
  void SetUp() override {
    options_.mesh = way().mesh;
    options_.seed = 5;
    Graph g;
    const Tensor logits = model().whole(g, way());
    training_ = compiled(compile(g, mean(logits * logits), optim::AdamW{}, options_));
    trainer_ = std::make_unique<Trainer>(training_);
    ASSERT_TRUE(trainer_->status().ok()) << trainer_->status();
  }

  const Model& model() const { return std::get<0>(GetParam()); }
  const Way& way() const { return std::get<1>(GetParam()); }

  static Program compiled(const absl::StatusOr<Program>& program) {
    EXPECT_TRUE(program.ok()) << program.status();
    return program.ok() ? *program : Program();
  }
  Program forward(Tensor (*build)(Graph&, const Way&)) {
    Graph g;
    g.output("logits", build(g, way()));
    return compiled(compileForward(g, Tensor(), forwardOptions(training_, options_)));
  }
  static void run(Executor& executor, const std::vector<int32_t>& tokens, std::optional<int32_t> position) {
    Feed feed(executor);
    feed.write("x", tokens);
    if (position) {
      feed.write("position", std::vector<int32_t>{*position});
    } else if (executor.findTensor("y") != nullptr) {
      feed.write("y", tokens);
    }
    ASSERT_TRUE(feed.status().ok()) << feed.status();
    const absl::Status ran = executor.runStep();
    ASSERT_TRUE(ran.ok()) << ran;
  }

  // The token of the greatest logit in a row of each sample.
  static std::vector<int32_t> greatest(Executor& executor, int64_t rows, int64_t row) {
    const std::vector<char> bytes = *executor.readTensor("logits");
    std::vector<float> logits(bytes.size() / sizeof(float));
    std::memcpy(logits.data(), bytes.data(), bytes.size());
    std::vector<int32_t> tokens;
    for (int64_t b = 0; b < kBatch; ++b) {
      const auto first = logits.begin() + (b * rows + row) * 37;
      tokens.push_back(static_cast<int32_t>(std::max_element(first, first + 37) - first));
    }
    return tokens;
  }

  CompileOptions options_;
  Program training_;
  std::unique_ptr<Trainer> trainer_;
};

TEST_P(GenerationTest, CachedTokensAreThoseOfAllRows) {
  const Program whole = forward(model().whole);
  const Program step = forward(model().step);
  const absl::StatusOr<Executor*> all = trainer_->forward(whole);
  ASSERT_TRUE(all.ok()) << all.status();
  EXPECT_FALSE(trainer_->forward(step).ok()) << "the caches are new";
  const absl::StatusOr<Executor*> one = trainer_->forward(step, {.allowNew = true});
  ASSERT_TRUE(one.ok()) << one.status();
  // Twice: what the first left in the cache must not be seen.
  for (const int32_t begin : {3, 20}) {
    std::vector<int32_t> tokens(kBatch * kRows, 0);
    std::vector<int32_t> last = {begin, begin + 1};
    for (int32_t row = 0; row + 1 < kRows; ++row) {
      for (int64_t b = 0; b < kBatch; ++b) {
        tokens[b * kRows + row] = last[b];
      }
      run(**all, tokens, std::nullopt);
      run(**one, last, row);
      last = greatest(**all, kRows, row);
      EXPECT_EQ(greatest(**one, 1, 0), last) << "row " << row;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Ways, GenerationTest,
    ::testing::Combine(::testing::Values(Model{"llama", llama, llamaStep}, Model{"gpt", gpt, gptStep}),
                       ::testing::Values(Way{"one", "1"}, Way{"tp2", "tp=2", {.data = "", .model = "tp"}},
                                         Way{"dp2_tp2", "dp=2,tp=2", {.data = "dp", .model = "tp"}},
                                         Way{"stages2", "1", {}, 2})),
    [](const auto& info) { return std::get<0>(info.param).name + "_" + std::get<1>(info.param).name; });

}  // namespace
}  // namespace weft
