// Generation with a cache of keys and values gives the tokens that all rows at once give, on one rank, with heads
// split, and in pipeline stages, over the parameters of a trained program.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "weft/models/all.h"
#include "weft/weft.h"

namespace weft {
namespace {

constexpr int64_t kBatch = 2;
constexpr int64_t kRows = 12;

models::LlamaConfig smallConfig(int64_t stages) {
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

class GenerationTest : public ::testing::TestWithParam<Way> {
 protected:
  void SetUp() override {
    Graph g;
    const Tensor ids = g.input("ids", {kBatch, kRows}, kI32);
    const Tensor labels = g.input("labels", {kBatch, kRows}, kI32);
    const Tensor logits = models::llama(g, config_, ids);
    shard(g);
    options_.mesh = GetParam().mesh;
    options_.seed = 5;
    const Tensor loss = meanValid(softmaxCrossEntropy(logits, labels), labels);
    training_ = compiled(compile(g, loss, optim::AdamW{}, options_));
    trainer_ = std::make_unique<Trainer>(training_);
    ASSERT_TRUE(trainer_->status().ok()) << trainer_->status();
  }

  void shard(Graph& g) {
    if (GetParam().parallel.any()) {
      g.shard(models::llamaSharding(config_, GetParam().parallel));
    }
  }
  static Program compiled(const absl::StatusOr<Program>& program) {
    EXPECT_TRUE(program.ok()) << program.status();
    return program.ok() ? *program : Program();
  }
  Program wholeProgram() {
    Graph g;
    g.output("logits", models::llama(g, config_, g.input("ids", {kBatch, kRows}, kI32)));
    shard(g);
    return compiled(compileForward(g, Tensor(), forwardOptions(training_, options_)));
  }
  Program stepProgram() {
    Graph g;
    const nn::Decoding decoding = nn::decodingAt(g, kRows);
    g.output("logits", models::llamaStep(g, config_, g.input("ids", {kBatch, 1}, kI32), decoding));
    shard(g);
    return compiled(compileForward(g, Tensor(), forwardOptions(training_, options_)));
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

  models::LlamaConfig config_ = smallConfig(GetParam().stages);
  CompileOptions options_;
  Program training_;
  std::unique_ptr<Trainer> trainer_;
};

TEST_P(GenerationTest, CachedTokensAreThoseOfAllRows) {
  const Program whole = wholeProgram();
  const Program step = stepProgram();
  const absl::StatusOr<Executor*> all = trainer_->forward(whole);
  ASSERT_TRUE(all.ok()) << all.status();
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
      Feed allFeed(**all);
      allFeed.write("ids", tokens);
      ASSERT_TRUE(allFeed.status().ok()) << allFeed.status();
      ASSERT_TRUE((*all)->runStep().ok());
      Feed oneFeed(**one);
      oneFeed.write("ids", last);
      oneFeed.write("position", std::vector<int32_t>{row});
      ASSERT_TRUE(oneFeed.status().ok()) << oneFeed.status();
      const absl::Status ran = (*one)->runStep();
      ASSERT_TRUE(ran.ok()) << ran;
      const std::vector<int32_t> expected = greatest(**all, kRows, row);
      EXPECT_EQ(greatest(**one, 1, 0), expected) << "row " << row;
      last = expected;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Ways, GenerationTest,
                         ::testing::Values(Way{"one", "1"}, Way{"tp2", "tp=2", {.data = "", .model = "tp"}},
                                           Way{"dp2_tp2", "dp=2,tp=2", {.data = "dp", .model = "tp"}},
                                           Way{"stages2", "1", {}, 2}),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace weft
