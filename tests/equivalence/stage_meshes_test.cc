// Blocks of ranks with meshes of their own give the one-rank answer.
//
//   weft_stage_meshes_test              seeds 1 to 30
//   weft_stage_meshes_test --all        seeds 1 to 300
//   weft_stage_meshes_test --seed=17    one seed, its module on the standard output

#include <gtest/gtest.h>

#include <iostream>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "examples/gpt/model.h"
#include "runtime/base/status.h"
#include "tests/equivalence/training_step.h"
#include "tests/support/seeds.h"
#include "weft/weft.h"

namespace weft::testing {

SeedRange seeds = {1, 30};

namespace {

constexpr int64_t kVocabulary = 18;

// Two matrix products on two stages; over f64, so that only wrong sums differ by more than rounding.
absl::StatusOr<std::string> twoMatmuls(const CompileOptions& options, int64_t batch) {
  Graph g;
  Tensor x = g.input("x", {batch, 8});
  Tensor hidden;
  {
    auto first = g.stage(0);
    hidden = relu(matmul(x, g.parameter("w0", {8, 12})));
  }
  Tensor loss;
  {
    auto second = g.stage(1);
    const Tensor y = g.input("y", {batch, 4});
    const Tensor error = sub(matmul(hidden, g.parameter("w1", {12, 4})), y);
    loss = mean(mul(error, error));
  }
  WEFT_ASSIGN_OR_RETURN(const std::string text,
                        logicalModule(g, loss, optim::AdamW{.lr = 0.1, .epsilon = 0.01}, options));
  return absl::StrReplaceAll(text, {{"f32", "f64"}});
}

NamedTensors randomFor(const plan::Plan& plan) {
  std::mt19937_64 generator(5);
  NamedTensors made;
  for (const plan::NamedTensor& tensor : plan.tensors()) {
    if (tensor.kind() == plan::TENSOR_INPUT || tensor.kind() == plan::TENSOR_PARAMETER) {
      const bool ids = tensor.type() == plan::I32;
      HostTensor value(ids ? DType::kI32 : DType::kF64, {tensor.shape().begin(), tensor.shape().end()});
      for (int64_t i = 0; ids && i < value.elements(); ++i) {
        const bool ignored = tensor.name() == "y" && generator() % 5 == 0;
        value.data<int32_t>()[i] = ignored ? -1 : static_cast<int32_t>(generator() % kVocabulary);
      }
      for (int64_t i = 0; !ids && i < value.elements(); ++i) {
        value.data<double>()[i] = static_cast<double>(generator() >> 11) * 0x1p-53 - 0.5;
      }
      made[tensor.name()] = std::move(value);
    }
  }
  return made;
}

TEST(StageMeshesTest, TwoMatmuls) {
  for (const char* meshes : {"dp=2;dp=1", "dp=1;dp=2", "dp=2;dp=3", "2;3", "dp=4;tp=2"}) {
    for (const int64_t micro : {1, 2, 3}) {
      SCOPED_TRACE(absl::StrCat(meshes, ", micro ", micro));
      CompileOptions options;
      options.gradientOutputs = true;
      const absl::StatusOr<std::string> serial = twoMatmuls(options, 72);
      ASSERT_TRUE(serial.ok()) << serial.status();
      absl::StatusOr<plan::Plan> onePlan =
          compileText(absl::StrReplaceAll(*serial, {{"nn.stage = 1", "nn.stage = 0"}}));
      ASSERT_TRUE(onePlan.ok()) << onePlan.status();
      const NamedTensors arguments = randomFor(*onePlan);
      const absl::StatusOr<NamedTensors> one = runPlan(*std::move(onePlan), arguments);
      ASSERT_TRUE(one.ok()) << one.status();
      options.stageMeshes = meshes;
      options.micro = micro;
      const absl::StatusOr<std::string> text = twoMatmuls(options, 72);
      ASSERT_TRUE(text.ok()) << text.status();
      EXPECT_EQ(differenceFromOneRank(*text, *one, arguments), "");
    }
  }
}

// A GPT, every block of ranks on a random mesh of 1 to 4 ranks.
struct GptCase {
  examples::GptConfig config;
  CompileOptions options;
  std::string name;
};

absl::StatusOr<std::string> gptModule(const examples::GptConfig& config, const CompileOptions& options) {
  Graph g;
  const examples::GptModel model = examples::buildGpt(g, config);
  WEFT_ASSIGN_OR_RETURN(const std::string text,
                        logicalModule(g, model.loss, optim::AdamW{.lr = 0.1, .epsilon = 0.01}, options));
  return absl::StrReplaceAll(text, {{"f32", "f64"}});
}

GptCase gptCase(uint64_t seed) {
  std::mt19937_64 generator(seed);
  const auto below = [&](int64_t n) { return static_cast<int64_t>(generator() % static_cast<uint64_t>(n)); };
  GptCase made;
  CompileOptions& options = made.options;
  options.micro = 1 + below(4);
  made.config = {.vocabulary = kVocabulary, .layers = 4, .width = 12, .heads = 6, .context = 6};
  made.config.stages = 2 + below(3);
  const std::vector<std::string> kinds = {"gpipe", "1f1b", "zb_h1", "zb_h2", "interleaved", "zb_v"};
  options.schedule = kinds[below(made.config.stages % 2 == 0 ? 6 : 4)];
  const bool twice = options.schedule == "interleaved" || options.schedule == "zb_v";
  options.virtualStages = options.schedule == "interleaved" ? 2 : 0;
  int64_t segments = 1;
  for (int64_t block = 0; block < made.config.stages / (twice ? 2 : 1); ++block) {
    const int64_t dp = 1 + below(4);
    const int64_t tp = 1 + below(std::min<int64_t>(4 / dp, 3));
    segments = std::lcm(segments, dp);
    absl::StrAppend(&options.stageMeshes, block == 0 ? "" : ";", "dp=", dp, tp > 1 ? absl::StrCat(",tp=", tp) : "");
  }
  // Without micro-batches the batch may be padded.
  made.config.batch = options.micro == 1 ? 10 + below(8) : segments * options.micro * (1 + below(2));
  made.config.tiedHead = below(2) == 0;
  made.config.dropout = below(2) == 0 ? 0.1 : 0.0;
  made.config.recomputeBlocks = below(3) == 0;
  if (below(2) == 0 && options.stageMeshes.find("tp") != std::string::npos) {
    made.config.parallel = {"dp", "tp", below(2) == 0};
  }
  options.zero = static_cast<int>(below(4));
  options.regather = below(2) == 0;
  options.clipNorm = 0.5;
  options.gradientOutputs = true;
  made.name = absl::StrCat("seed ", seed, ", meshes ", options.stageMeshes, ", stages ", made.config.stages, " ",
                           options.schedule, ", micro ", options.micro, ", zero ", options.zero, ", batch ",
                           made.config.batch, made.config.tiedHead ? ", tied" : "",
                           made.config.dropout > 0 ? ", dropout" : "", made.config.parallel.any() ? ", tp" : "");
  return made;
}

TEST(StageMeshesTest, Gpt) {
  for (uint64_t seed = seeds.first; seed <= seeds.last; ++seed) {
    const GptCase made = gptCase(seed);
    SCOPED_TRACE(made.name);
    examples::GptConfig config = made.config;
    config.stages = 1;
    config.parallel = {};
    CompileOptions alone;
    alone.clipNorm = made.options.clipNorm;
    alone.gradientOutputs = true;
    const absl::StatusOr<std::string> serial = gptModule(config, alone);
    ASSERT_TRUE(serial.ok()) << serial.status();
    absl::StatusOr<plan::Plan> onePlan = compileText(*serial);
    ASSERT_TRUE(onePlan.ok()) << onePlan.status();
    const NamedTensors arguments = randomFor(*onePlan);
    const absl::StatusOr<NamedTensors> one = runPlan(*std::move(onePlan), arguments);
    ASSERT_TRUE(one.ok()) << one.status();
    const absl::StatusOr<std::string> text = gptModule(made.config, made.options);
    ASSERT_TRUE(text.ok()) << text.status();
    if (seeds.isOne()) {
      std::cout << *text << "\n";
    }
    EXPECT_EQ(differenceFromOneRank(*text, *one, arguments), "");
  }
}

}  // namespace
}  // namespace weft::testing

int main(int argc, char** argv) {
  return weft::testing::runSeeded(argc, argv, weft::testing::seeds, 300);
}
