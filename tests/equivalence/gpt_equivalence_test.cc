// N ranks give the one-rank answer: a GPT of two layers with random strategies on 2, 3, 4, 6 and 8 ranks, with ZeRO,
// micro-batches, a batch that does not divide, ignored labels, clipping, and recomputation: by name, or as a memory
// limit asks for.
//
//   weft_gpt_equivalence_test              seeds 1 to 24
//   weft_gpt_equivalence_test --all        seeds 1 to 300
//   weft_gpt_equivalence_test --seed=17    one seed, its module on the standard output

#include <gtest/gtest.h>

#include <iostream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "examples/gpt/model.h"
#include "runtime/base/status.h"
#include "tests/equivalence/random_graph.h"
#include "tests/support/seeds.h"
#include "weft/weft.h"

namespace weft::testing {

SeedRange seeds = {1, 24};

namespace {

constexpr int64_t kVocabulary = 66;
constexpr int64_t kContext = 6;

struct GptCase {
  int64_t batch = 0;
  CompileOptions options;
  int64_t stages = 1;
  int64_t limit = 0;
  std::string mesh;  // as text, for messages
  std::string text;
};

// The GPT as a module over f64, so that only wrong sums differ by more than rounding.
absl::StatusOr<std::string> gptModule(examples::GptConfig config, const CompileOptions& options) {
  Graph g;
  config.layers = 2;
  config.width = 24;
  config.heads = 6;
  config.context = kContext;
  config.vocabulary = kVocabulary;
  const examples::GptModel model = examples::buildGpt(g, config);
  WEFT_ASSIGN_OR_RETURN(const std::string text,
                        logicalModule(g, model.loss, optim::AdamW{.lr = 0.1, .epsilon = 0.01}, options));
  return absl::StrReplaceAll(text, {{"f32", "f64"}});
}

// Every kind on numbers it serves: V placements and two virtual stages need an even number of stages, dualpipe_v two
// micro-batches for each rank.
void chooseSchedule(std::mt19937_64& generator, GptCase& made) {
  std::vector<std::string> kinds = {"gpipe", "1f1b",  "interleaved",   "breadth_first",
                                    "zb_h1", "zb_h2", "zb_interleaved"};
  if (made.stages % 2 == 0) {
    kinds.insert(kinds.end(), {"zb_v", "v_half", "v_min"});
  }
  if (made.stages == 2 && made.options.micro > 1) {
    kinds.push_back("dualpipe_v");
  }
  made.options.schedule = kinds[generator() % kinds.size()];
  const bool loops =
      made.options.schedule.find("interleaved") != std::string::npos || made.options.schedule == "breadth_first";
  made.options.virtualStages = loops && made.stages % 2 == 0 ? static_cast<int64_t>(1 + generator() % 2) : 0;
}

// The module has options, if only the schedule, and none for the limit.
std::string withLimit(const std::string& text, int64_t limit) {
  const std::string options = "nn.options = {";
  return absl::StrReplaceAll(text, {{options, absl::StrCat(options, "memory_limit = ", limit, " : i64, ")}});
}

// With recompute = "auto": a limit between the least and the most the program can need. The least is what the refusal
// of one byte names.
absl::Status drawLimit(std::mt19937_64& generator, GptCase& made) {
  WEFT_ASSIGN_OR_RETURN(const plan::Plan plain, compileText(made.text));
  const int64_t most = plain.memory().peak_bytes();
  const std::string error(compileText(withLimit(made.text, 1)).status().message());
  const std::string before = " at least ";
  if (error.find(before) == std::string::npos) {
    return absl::InternalError("no least in: " + error);
  }
  const int64_t least = std::stoll(error.substr(error.find(before) + before.size()));
  made.limit = least + static_cast<int64_t>(generator() % static_cast<uint64_t>(std::max<int64_t>(most - least, 1)));
  made.text = withLimit(made.text, made.limit);
  return absl::OkStatus();
}

// Levels of ZeRO for classes of weights, for some layers, or for single weights, in every second case.
ZeroPatterns randomLevels(uint64_t seed) {
  std::mt19937_64 generator(seed);
  ZeroPatterns levels;
  for (const std::string pattern : {"h*.fc.*", "*.bias", "wte", "h1.*", "h0.qkv.weight", "lnf.*"}) {
    if (seed % 2 == 0 && generator() % 2 == 0) {
      levels.emplace_back(pattern, static_cast<int>(generator() % 4));
    }
  }
  return levels;
}

absl::StatusOr<GptCase> gptCase(uint64_t seed) {
  std::mt19937_64 generator(seed);
  GptCase made;
  const std::vector<MeshAxis> axes = randomAxes(generator);
  made.batch = std::vector<int64_t>{22, 44, 88}[generator() % 3];
  const bool named = !axes[0].name.empty();
  made.options.micro = named && generator() % 3 > 0 ? 2 : 1;
  made.options.zero = generator() % 2 == 0 ? 0 : static_cast<int>(1 + generator() % 3);
  made.options.zeroOf = randomLevels(seed);
  made.options.regather = generator() % 2 == 0;
  made.options.gatherBucket = made.options.regather && seed % 2 == 0 ? 8192 : 0;
  made.options.clipNorm = 0.5;
  made.stages = std::vector<int64_t>{1, 2, 3, 4, 6}[generator() % 5];
  made.options.recompute =
      std::vector<std::string>{"", "full", "gelu,*layer_norm", "*.add,*attention", "auto"}[generator() % 5];
  chooseSchedule(generator, made);
  made.options.gradientOutputs = true;
  made.options.mesh = meshText(axes, 1);
  made.mesh = meshText(axes, made.options.microBatches());
  WEFT_ASSIGN_OR_RETURN(const std::string plain, gptModule({.batch = made.batch}, made.options));
  WEFT_ASSIGN_OR_RETURN(
      made.text, withRandomStrategies(plain, {axes, made.options.microBatches(), made.batch, made.stages}, generator));
  if (made.options.recompute == "auto") {
    WEFT_RETURN_IF_ERROR(drawLimit(generator, made));
  }
  return made;
}

// Weights as after some training; a few labels are ignored.
NamedTensors gptArguments(const plan::Plan& plan, uint64_t seed) {
  std::mt19937_64 generator(seed);
  NamedTensors arguments;
  for (const plan::NamedTensor& tensor : plan.tensors()) {
    const std::vector<int64_t> shape(tensor.shape().begin(), tensor.shape().end());
    if (tensor.kind() == plan::TENSOR_INPUT) {
      HostTensor value(DType::kI32, shape);
      for (int64_t i = 0; i < value.elements(); ++i) {
        const bool ignored = tensor.name() == "y" && generator() % 5 == 0;
        value.data<int32_t>()[i] = ignored ? -1 : static_cast<int32_t>(generator() % kVocabulary);
      }
      arguments[tensor.name()] = std::move(value);
    } else if (tensor.kind() == plan::TENSOR_PARAMETER) {
      HostTensor value(DType::kF64, shape);
      for (int64_t i = 0; i < value.elements(); ++i) {
        value.data<double>()[i] = 0.6 * static_cast<double>(generator() >> 11) * 0x1p-53 - 0.3;
      }
      arguments[tensor.name()] = std::move(value);
    }
  }
  return arguments;
}

TEST(GptEquivalenceTest, AnyRanksGiveTheOneRankAnswer) {
  for (uint64_t seed = seeds.first; seed <= seeds.last; ++seed) {
    const absl::StatusOr<GptCase> made = gptCase(seed);
    ASSERT_TRUE(made.ok()) << "seed " << seed << ": " << made.status();
    SCOPED_TRACE(absl::StrCat("seed ", seed, ", stages ", made->stages, " ", made->options.schedule, ", mesh ",
                              made->mesh, ", zero ", made->options.zeroLevel(), " ", printZeroOf(made->options.zeroOf),
                              ", batch ", made->batch, ", recompute ", made->options.recompute, " limit ",
                              made->limit));
    if (seeds.isOne()) {
      std::cout << made->text << "\n";
    }
    CompileOptions oneRank;
    oneRank.clipNorm = made->options.clipNorm;
    oneRank.gradientOutputs = true;
    const absl::StatusOr<std::string> serial = gptModule({.batch = made->batch}, oneRank);
    ASSERT_TRUE(serial.ok()) << serial.status();
    absl::StatusOr<plan::Plan> onePlan = compileText(*serial);
    ASSERT_TRUE(onePlan.ok()) << onePlan.status();
    const NamedTensors arguments = gptArguments(*onePlan, seed);
    const absl::StatusOr<NamedTensors> one = runPlan(*std::move(onePlan), arguments);
    ASSERT_TRUE(one.ok()) << one.status();
    ASSERT_EQ(one->count("grad.h1.qkv.weight") + one->count("adam.v.h0.fc.weight") + one->count("wte"), 3U);
    EXPECT_EQ(differenceFromOneRank(made->text, *one, arguments), "");
  }
}

// Masks are those of one rank wherever an element lies: dropout of the embedding, of attention's probabilities and of
// what attention and mlp add, with heads, rows and batch split, in micro-batches, stages, and computed again.
TEST(GptEquivalenceTest, DropoutIsThatOfOneRank) {
  struct Way {
    nn::Parallel parallel;
    int64_t stages;
    CompileOptions options;
  };
  const examples::GptConfig config = {.batch = 8, .dropout = 0.3, .attentionDropout = 0.3};
  CompileOptions oneRank;
  oneRank.gradientOutputs = true;
  absl::StatusOr<plan::Plan> onePlan = compileText(*gptModule(config, oneRank));
  ASSERT_TRUE(onePlan.ok()) << onePlan.status();
  const NamedTensors arguments = gptArguments(*onePlan, 7);
  const absl::StatusOr<NamedTensors> one = runPlan(*std::move(onePlan), arguments);
  ASSERT_TRUE(one.ok()) << one.status();
  absl::StatusOr<plan::Plan> wholePlan = compileText(*gptModule({.batch = 8}, oneRank));
  const absl::StatusOr<NamedTensors> whole = runPlan(*std::move(wholePlan), arguments);
  EXPECT_NE(difference(*whole, *one), "") << "something is dropped";
  const Way ways[] = {
      {{}, 1, {.mesh = "dp=4"}},
      {{}, 1, {.mesh = "dp=2", .micro = 4, .recompute = "full"}},
      {{"dp", "tp"}, 1, {.mesh = "dp=2,tp=2"}},
      {{"dp", "tp"}, 1, {.mesh = "dp=2,tp=3", .micro = 2, .zero = 3}},
      {{"dp", "tp", true}, 1, {.mesh = "dp=2,tp=2", .micro = 2}},
      {{"", "tp"}, 2, {.mesh = "tp=2", .micro = 4, .schedule = "1f1b"}},
  };
  for (const Way& way : ways) {
    SCOPED_TRACE(absl::StrCat(way.options.mesh, ", micro ", way.options.microBatches()));
    examples::GptConfig split = config;
    split.parallel = way.parallel;
    split.stages = way.stages;
    CompileOptions options = way.options;
    options.gradientOutputs = true;
    EXPECT_EQ(differenceFromOneRank(*gptModule(split, options), *one, arguments), "");
  }
}

}  // namespace
}  // namespace weft::testing

int main(int argc, char** argv) {
  return weft::testing::runSeeded(argc, argv, weft::testing::seeds, 300);
}
