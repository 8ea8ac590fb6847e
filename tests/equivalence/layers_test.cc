// The layers of well-known models from a few words: a layout for each kind of weight, and one constraint where the
// residual stream is split along the sequence. The collectives of one layer are those that Megatron-LM, FSDP and
// sequence-parallel trainers write by hand (Korthikanti et al., "Reducing activation recomputation in large transformer
// models", 2022: two all_reduces forward and backward, or as many all_gathers and reduce_scatters), and the step is
// that of one rank.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "planner/decisions.h"
#include "runtime/plan/statistics.h"
#include "tests/equivalence/model_layers.h"
#include "tests/equivalence/training_step.h"
#include "weft/weft.h"

namespace weft::testing {
namespace {

constexpr int64_t kBatch = 4;

// Moving activations takes longer than a launch and less than moving weights, and all gradients fit into one bucket.
constexpr LayerSizes kSmall = {.batch = kBatch,
                               .tokens = 32,
                               .width = 192,
                               .heads = 8,
                               .headWidth = 24,
                               .groups = 2,
                               .hidden = 768,
                               .vocabulary = 384};
constexpr LayerSizes kReal = {.batch = kBatch,
                              .tokens = 1024,
                              .width = 1024,
                              .heads = 8,
                              .headWidth = 128,
                              .groups = 2,
                              .hidden = 4096,
                              .vocabulary = 16384};

struct Words {
  std::string mesh;
  int64_t micro = 1;
  int zero = 0;
  bool tensor = false;    // heads and hidden features over tp
  bool sequence = false;  // the residual stream over tp, by one constraint behind the embedding
  bool all = false;       // a layout for every value at a Place as well
};

struct Model {
  std::string name;
  Layer layer;
  bool fused = false;
  bool decoder = false;
  bool gated = false;
  int64_t blocks = 2;    // each ends in one sum over tp
  bool grouped = false;  // fewer heads of keys and values than ranks: no layout is named
  const LayerSizes& size = kSmall;
};

CompileOptions optionsOf(const Model& model, const Words& words) {
  CompileOptions options;
  options.mesh = words.mesh;
  options.zero = words.zero;
  options.micro = words.micro;
  options.gradientOutputs = true;
  if (!words.tensor) {
    return options;
  }
  if (model.fused) {
    options.layouts = {{"*.qkv", "[{},{},{tp},{}]"}};
  } else if (model.grouped) {
    options.layouts = {{"*.q", "[{},{tp},{}]"}};
  } else {
    options.layouts = {{"*.q", "[{},{tp},{}]"}, {"*.k", "[{},{tp},{}]"}, {"*.v", "[{},{tp},{}]"}};
  }
  options.layouts.insert(options.layouts.end(),
                         {{"*.o", "[{tp},{},{}]"}, {"*.up", "[{},{tp}]"}, {"*.down", "[{tp},{}]"}});
  if (model.gated) {
    options.layouts.emplace_back("*.gate", "[{},{tp}]");
  }
  return options;
}

// As Megatron-LM lays them out.
std::string layoutAt(Place place, const Words& words) {
  const std::string batch = words.mesh.find("dp") == std::string::npos ? "" : "dp";
  switch (place) {
    case Place::kResidual:
      return absl::StrCat("[{", batch, "},{", words.sequence ? "tp" : "", "},{}]");
    case Place::kRead:
      return absl::StrCat("[{", batch, "},{},{}]");
    case Place::kHeads:
      return absl::StrCat("[{", batch, "},{},{", words.tensor ? "tp" : "", "},{}]");
    case Place::kHidden:
      return absl::StrCat("[{", batch, "},{},{", words.tensor ? "tp" : "", "}]");
  }
  return "";
}

absl::StatusOr<std::string> moduleOf(const Model& model, const Words& words, int layers) {
  const LayerSizes& size = model.size;
  Graph g;
  const Tensor ids = g.input("ids", {kBatch, size.tokens}, kI32);
  const Tensor labels = g.input("labels", {kBatch, size.tokens}, kI32);
  Tensor x = embedding(g.parameter("wte", {size.vocabulary, size.width}, Init::normal(0.1)), ids);
  if (words.sequence) {
    x = constrain(x, layoutAt(Place::kResidual, words));
  }
  Tensor memory;
  if (model.decoder) {
    memory = embedding(g.parameter("encoder", {size.vocabulary, size.width}, Init::normal(0.1)),
                       g.input("source", {kBatch, size.tokens}, kI32));
  }
  for (int layer = 0; layer < layers; ++layer) {
    LayerBuilder builder = {g, absl::StrCat("h", layer), size, memory};
    if (words.all) {
      builder.at = [&](const Tensor& value, Place place) { return constrain(value, layoutAt(place, words)); };
    }
    x = model.layer(builder, x);
  }
  const Tensor head = g.parameter("head", {size.width, size.vocabulary}, Init::normal(0.1));
  const Tensor loss = mean(softmaxCrossEntropy(matmul(x, head), labels));
  absl::StatusOr<std::string> text =
      logicalModule(g, loss, optim::AdamW{.lr = 0.1, .epsilon = 0.01}, optionsOf(model, words));
  return text.ok() ? absl::StrReplaceAll(*text, {{"f32", "f64"}}) : text;
}

// Calls of collectives that one program has more than another: "forward all_gather 2, forward reduce_scatter 2".
std::string difference(const absl::StatusOr<std::string>& more, const absl::StatusOr<std::string>& less) {
  std::map<std::string, int64_t> calls;
  for (const absl::StatusOr<std::string>* module : {&more, &less}) {
    const absl::StatusOr<plan::Plan> plan = module->ok() ? compileText(**module) : module->status();
    if (!plan.ok()) {
      return plan.status().ToString();
    }
    for (const auto& [function, kinds] : statisticsOf(*plan).byFunction) {
      for (const auto& [kind, count] : kinds) {
        calls[absl::StrCat(function, " ", kind)] += module == &more ? count : -count;
      }
    }
  }
  std::string text;
  for (const auto& [name, count] : calls) {
    absl::StrAppend(&text, count == 0 ? "" : absl::StrCat(text.empty() ? "" : ", ", name, " ", count));
  }
  return text;
}

// Of one layer.
std::string perLayer(const Model& model, const Words& words) {
  return difference(moduleOf(model, words, 3), moduleOf(model, words, 2));
}

NamedTensors argumentsOf(const plan::Plan& plan) {
  std::mt19937_64 generator(3);
  NamedTensors arguments;
  for (const plan::NamedTensor& tensor : plan.tensors()) {
    const std::vector<int64_t> shape(tensor.shape().begin(), tensor.shape().end());
    if (tensor.kind() == plan::TENSOR_INPUT) {
      HostTensor value(DType::kI32, shape);
      for (int64_t i = 0; i < value.elements(); ++i) {
        value.data<int32_t>()[i] = static_cast<int32_t>(generator() % kSmall.vocabulary);
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

std::vector<Model> modelsOf(const LayerSizes& size) {
  return {
      {.name = "GPT, q k v in one", .layer = fusedGptLayer, .fused = true, .size = size},
      {.name = "GPT", .layer = gptLayer, .size = size},
      {.name = "LLaMA", .layer = llamaLayer, .gated = true, .size = size},
      {.name = "BERT", .layer = bertLayer, .size = size},
      {.name = "T5 decoder", .layer = t5DecoderLayer, .decoder = true, .blocks = 3, .size = size},
  };
}

Model groupedModel(const LayerSizes& size) {
  return {.name = "LLaMA, grouped", .layer = groupedLlamaLayer, .gated = true, .grouped = true, .size = size};
}

TEST(Layers, DataParallelismNeedsNoWords) {
  for (const Model& model : modelsOf(kSmall)) {
    EXPECT_EQ(perLayer(model, {.mesh = "dp=2"}), "") << model.name << ": gradients join one bucket";
    EXPECT_EQ(perLayer(model, {.mesh = "dp=2", .zero = 1}), "") << model.name;
    EXPECT_EQ(perLayer(model, {.mesh = "dp=2", .zero = 2}), "") << model.name;
    EXPECT_EQ(perLayer(model, {.mesh = "dp=2", .micro = 2, .zero = 3}), "") << model.name << ": gathers join, too";
  }
}

TEST(Layers, ColumnsAndRowsReduceOncePerBlockAndDirection) {
  for (const Model& model : modelsOf(kSmall)) {
    const std::string expected =
        absl::StrCat("backward all_reduce ", model.blocks, ", forward all_reduce ", model.blocks);
    EXPECT_EQ(perLayer(model, {.mesh = "tp=2", .tensor = true}), expected) << model.name;
    EXPECT_EQ(perLayer(model, {.mesh = "dp=2,tp=2", .tensor = true}), expected) << model.name;
    EXPECT_EQ(perLayer(model, {.mesh = "dp=2,tp=2", .zero = 1, .tensor = true}), expected) << model.name;
  }
}

TEST(Layers, ASplitSequenceGathersAndScattersInstead) {
  for (const Model& model : modelsOf(kSmall)) {
    const std::string each = absl::StrCat(model.blocks);
    const std::string expected = absl::StrCat("backward all_gather ", each, ", backward reduce_scatter ", each,
                                              ", forward all_gather ", each, ", forward reduce_scatter ", each);
    EXPECT_EQ(perLayer(model, {.mesh = "tp=2", .tensor = true, .sequence = true}), expected) << model.name;
    EXPECT_EQ(perLayer(model, {.mesh = "dp=2,tp=2", .tensor = true, .sequence = true}), expected) << model.name;
  }
}

const Words kSplits[] = {
    {.mesh = "dp=2"},
    {.mesh = "dp=2", .micro = 2, .zero = 3},
    {.mesh = "tp=2", .tensor = true},
    {.mesh = "dp=2,tp=2", .tensor = true},
    {.mesh = "tp=2", .tensor = true, .sequence = true},
    {.mesh = "dp=2,tp=2", .micro = 2, .zero = 1, .tensor = true, .sequence = true},
    {.mesh = "dp=2,tp=2", .micro = 2, .zero = 3, .tensor = true, .sequence = true},
};

// Every layout by hand takes as many collectives as the few words, all of the program counted.
TEST(Layers, FewWordsAreAsGoodAsAll) {
  for (const Model& model : modelsOf(kSmall)) {
    for (const Words& few : kSplits) {
      Words all = few;
      all.all = true;
      EXPECT_EQ(difference(moduleOf(model, few, 2), moduleOf(model, all, 2)), "")
          << model.name << " on " << few.mesh << ", zero " << few.zero << ", sequence " << few.sequence;
    }
  }
}

struct StepCost {
  double communication = 0;  // seconds
  int64_t flops = 0;
};

absl::StatusOr<StepCost> stepCost(const absl::StatusOr<std::string>& module) {
  const absl::StatusOr<plan::Plan> plan = module.ok() ? compileText(*module) : module.status();
  if (!plan.ok()) {
    return plan.status();
  }
  const PlanStatistics statistics = statisticsOf(*plan);
  StepCost cost = {.flops = statistics.flops};
  for (const auto& [kind, count] : statistics.collectives) {
    cost.communication += count.seconds;
  }
  return cost;
}

// The few words against every layout by hand.
void expectAsCheapAsAll(const Model& model, const Words& few) {
  Words all = few;
  all.all = true;
  const absl::StatusOr<StepCost> derived = stepCost(moduleOf(model, few, 2));
  const absl::StatusOr<StepCost> byHand = stepCost(moduleOf(model, all, 2));
  ASSERT_TRUE(derived.ok()) << derived.status();
  ASSERT_TRUE(byHand.ok()) << byHand.status();
  EXPECT_LE(derived->communication, 1.001 * byHand->communication);
  EXPECT_LE(static_cast<double>(derived->flops), 1.001 * static_cast<double>(byHand->flops));
}

// At sizes of real models, where bytes decide and not launches, the few words cost what the layouts by hand do.
TEST(Layers, FewWordsAreAsCheapAsAll) {
  for (const Model& model : modelsOf(kReal)) {
    for (const Words& few : kSplits) {
      SCOPED_TRACE(absl::StrCat(model.name, " on ", few.mesh, ", zero ", few.zero, ", sequence ", few.sequence));
      expectAsCheapAsAll(model, few);
    }
  }
}

constexpr int64_t kChannels = 16;
constexpr int64_t kImage = 6;

// Residual blocks of two convolutions with batch norm, whose channels in the middle may lie over tp.
absl::StatusOr<std::string> residualBlocks(const std::string& mesh, int zero, bool tensor, int blocks) {
  Graph g;
  Tensor x = g.input("x", {kBatch, kChannels, kImage, kImage});
  for (int block = 0; block < blocks; ++block) {
    const auto convolution = [&](const std::string& name, const Tensor& from) {
      const std::string full = absl::StrCat("b", block, ".", name);
      const Tensor y =
          conv2d(from, g.parameter(full, {kChannels, kChannels, 3, 3}, Init::normal(0.1)), {.paddings = {1, 1}});
      return batchNorm(y, g.parameter(full + ".gamma", {kChannels}, Init::ones()),
                       g.parameter(full + ".beta", {kChannels}, Init::zeros()));
    };
    x = relu(x + convolution("second", relu(convolution("first", x))));
  }
  CompileOptions options;
  options.mesh = mesh;
  options.zero = zero;
  options.gradientOutputs = true;
  if (tensor) {
    options.layouts = {{"*.first", "[{tp},{},{},{}]"}, {"*.second", "[{},{tp},{},{}]"}};
  }
  absl::StatusOr<std::string> text = logicalModule(g, mean(x * x), optim::AdamW{.lr = 0.1, .epsilon = 0.01}, options);
  return text.ok() ? absl::StrReplaceAll(*text, {{"f32", "f64"}}) : text;
}

std::string perResidualBlock(const std::string& mesh, int zero, bool tensor) {
  return difference(residualBlocks(mesh, zero, tensor, 3), residualBlocks(mesh, zero, tensor, 2));
}

// Statistics of the whole batch take two reductions for each norm: of the mean, then of the squares around it; their
// gradients one. Channels over tp take one more in each direction, as columns and rows of a product do, and the norm in
// the middle none.
TEST(Layers, ResidualBlocksOfConvolutions) {
  for (const int zero : {0, 1}) {
    EXPECT_EQ(perResidualBlock("dp=2", zero, false), "backward all_reduce 2, forward all_reduce 4") << zero;
  }
  // Gradients are scattered where they are made, in buckets of a quarter of all: of so few weights each is one.
  EXPECT_EQ(perResidualBlock("dp=2", 2, false),
            "backward all_reduce 2, backward reduce_scatter 2, forward all_reduce 4");
  EXPECT_EQ(perResidualBlock("tp=2", 0, true), "backward all_reduce 1, forward all_reduce 1");
  EXPECT_EQ(perResidualBlock("dp=2,tp=2", 0, true), "backward all_reduce 3, forward all_reduce 5");
  EXPECT_EQ(perResidualBlock("dp=2,tp=2", 1, true), "backward all_reduce 3, forward all_reduce 5");
}

// Two heads of keys and values on four ranks: two ranks compute each, before they are repeated, and nothing of them
// moves. Their gradients, sums over such pairs of ranks, stay so in the products that read them: what these add to the
// gradient of x is reduced with what the queries add, and the gradients of the weights with those of other layers.
TEST(Layers, HeadsOfKeysThatRepeatLieOnPairs) {
  for (const LayerSizes& size : {kSmall, kReal}) {
    const Model model = groupedModel(size);
    EXPECT_EQ(perLayer(model, {.mesh = "tp=4", .tensor = true}), "backward all_reduce 2, forward all_reduce 2");
    const Words split = {.mesh = "tp=4", .tensor = true, .sequence = true};
    expectAsCheapAsAll(model, split);
  }
  EXPECT_EQ(perLayer(groupedModel(kSmall), {.mesh = "dp=2,tp=4", .tensor = true}),
            "backward all_reduce 2, forward all_reduce 2");
}

// ZeRO adds nothing to a layer: its reductions and gathers join with those of other layers.
TEST(Layers, ShardedStateBesideOtherSplits) {
  for (const Model& model : modelsOf(kSmall)) {
    for (const bool sequence : {false, true}) {
      for (const int zero : {1, 2, 3}) {
        Words words = {.mesh = "dp=2,tp=2", .micro = 2, .tensor = true, .sequence = sequence};
        const std::string expected = perLayer(model, words);
        words.zero = zero;
        if (model.fused && zero > 1) {
          continue;  // the number of its buckets, quarters of all gradients, is another with three layers
        }
        EXPECT_EQ(perLayer(model, words), expected) << model.name << ", zero " << zero << ", sequence " << sequence;
      }
    }
  }
}

TEST(Layers, AnyRanksGiveTheOneRankAnswer) {
  const Words meshes[] = {
      {.mesh = "dp=2,tp=2", .micro = 2, .tensor = true},
      {.mesh = "dp=2,tp=2", .tensor = true, .sequence = true},
      {.mesh = "dp=2,tp=2", .micro = 2, .zero = 3, .tensor = true, .sequence = true},
      {.mesh = "dp=2", .micro = 2, .zero = 1},
      {.mesh = "tp=4", .micro = 2, .tensor = true},
      {.mesh = "tp=4", .tensor = true, .sequence = true},
  };
  std::vector<Model> models = modelsOf(kSmall);
  models.push_back(groupedModel(kSmall));
  for (const Model& model : models) {
    const absl::StatusOr<std::string> serial = moduleOf(model, {}, 2);
    ASSERT_TRUE(serial.ok()) << serial.status();
    absl::StatusOr<plan::Plan> plan = compileText(*serial);
    ASSERT_TRUE(plan.ok()) << plan.status();
    const NamedTensors arguments = argumentsOf(*plan);
    const absl::StatusOr<NamedTensors> one = runPlan(*std::move(plan), arguments);
    ASSERT_TRUE(one.ok()) << one.status();
    ASSERT_EQ(one->count("grad.h1.down") + one->count("grad.wte"), 2U);
    for (const Words& words : meshes) {
      SCOPED_TRACE(absl::StrCat(model.name, " on ", words.mesh, ", zero ", words.zero, ", micro ", words.micro));
      const absl::StatusOr<std::string> module = moduleOf(model, words, 2);
      ASSERT_TRUE(module.ok()) << module.status();
      EXPECT_EQ(differenceFromOneRank(*module, *one, arguments), "");
    }
  }
}

// Values that repeat every seven elements.
NamedTensors ramps(const std::map<std::string, Shape>& shapes) {
  NamedTensors tensors;
  for (const auto& [name, shape] : shapes) {
    HostTensor value(DType::kF64, shape);
    for (int64_t i = 0; i < value.elements(); ++i) {
      value.data<double>()[i] = 0.1 * static_cast<double>(i % 7) - 0.2;
    }
    tensors[name] = std::move(value);
  }
  return tensors;
}

// A contraction over 5 of which each of two ranks has 3, the last of them a pad.
absl::StatusOr<std::string> paddedInput(const std::string& mesh, const std::string& layout) {
  Graph g;
  const Tensor x = g.input("x", {6, 5}, kF32, {.batchDim = -1, .layout = layout});
  const Tensor loss = mean(tanh(matmul(x, g.parameter("w", {5, 4}, Init::normal(1)))));
  CompileOptions options;
  options.mesh = mesh;
  options.gradientOutputs = true;
  absl::StatusOr<std::string> text = logicalModule(g, loss, optim::Sgd{.lr = 0.1}, options);
  return text.ok() ? absl::StrReplaceAll(*text, {{"f32", "f64"}}) : text;
}

TEST(Words, AnInputTakesAPad) {
  const absl::StatusOr<std::string> serial = paddedInput("1", "");
  ASSERT_TRUE(serial.ok()) << serial.status();
  const NamedTensors arguments = ramps({{"x", {6, 5}}, {"w", {5, 4}}});
  const absl::StatusOr<NamedTensors> one = runPlan(*compileText(*serial), arguments);
  ASSERT_TRUE(one.ok()) << one.status();
  const absl::StatusOr<std::string> padded = paddedInput("tp=2", "[{},{tp}] pad{1:6}");
  ASSERT_TRUE(padded.ok()) << padded.status();
  const absl::StatusOr<plan::Plan> plan = compileText(*padded);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(statisticsOf(*plan).memory["input"], 2 * 64 + 64) << "6 x 3 elements of 8 bytes, in whole lines";
  EXPECT_EQ(differenceFromOneRank(*padded, *one, arguments), "");
}

// What a program computes of h [b, t, k, c], whose dimensions t and k are taken together or apart.
using Normalization = std::function<Tensor(Graph& g, const Tensor& h)>;

absl::StatusOr<std::string> normalized(const std::string& mesh, const std::string& layout,
                                       const Normalization& normalization) {
  Graph g;
  const Tensor x = g.input("x", {6, 5}, kF32, {.layout = layout.empty() ? "" : "[{dp},{}]"});
  Tensor h = tanh(einsum("bt,tkc->btkc", x, g.parameter("w", {5, 3, 4}, Init::normal(1))));
  h = layout.empty() ? h : constrain(h, layout);
  const Tensor y = normalization(g, h);
  CompileOptions options;
  options.mesh = mesh;
  options.gradientOutputs = true;
  absl::StatusOr<std::string> text = logicalModule(g, mean(y * y), optim::Sgd{.lr = 0.1}, options);
  return text.ok() ? absl::StrReplaceAll(*text, {{"f32", "f64"}}) : text;
}

// `split` on four ranks gives what `composed`, of other operators, gives on one, without a collective in the forward
// pass.
void keepsOtherSplits(const Normalization& split, const Normalization& composed, std::map<std::string, Shape> shapes) {
  const absl::StatusOr<std::string> serial = normalized("1", "", composed);
  ASSERT_TRUE(serial.ok()) << serial.status();
  shapes.insert({{"x", {6, 5}}, {"w", {5, 3, 4}}});
  const NamedTensors arguments = ramps(shapes);
  const NamedTensors one = *runPlan(*compileText(*serial), arguments);
  const absl::StatusOr<std::string> text = normalized("dp=2,tp=2", "[{dp},{},{},{tp}]", split);
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_EQ(differenceFromOneRank(*text, one, arguments), "");
  const absl::StatusOr<plan::Plan> plan = compileText(*text);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(statisticsOf(*plan).byFunction.count("forward"), 0U) << "no collective";
}

TEST(Words, SoftmaxOverAnyDimensionKeepsOtherSplits) {
  keepsOtherSplits([](Graph& /*g*/, const Tensor& h) { return softmax(h, 2); },
                   [](Graph& /*g*/, const Tensor& h) {
                     const Tensor powers = exp(h - max(h, {2}, true));
                     return powers / sum(powers, {2}, true);
                   },
                   {});
}

TEST(Words, LayerNormOverAnyDimensionsKeepsOtherSplits) {
  const auto gamma = [](Graph& g) { return g.parameter("gamma", {3, 5}, Init::ones()); };
  const auto beta = [](Graph& g) { return g.parameter("beta", {3, 5}, Init::zeros()); };
  keepsOtherSplits(
      [&](Graph& g, const Tensor& h) { return layerNorm(h, gamma(g), beta(g), {.dims = {2, 1}, .epsilon = 0.5}); },
      [&](Graph& g, const Tensor& h) {
        const Tensor apart = h - mean(h, {1, 2}, true);
        const Tensor scaled = apart * rsqrt(mean(apart * apart, {1, 2}, true) + 0.5);
        const auto asValue = [](const Tensor& x) { return reshape(transpose(x, {1, 0}), {5, 3, 1}); };
        return scaled * asValue(gamma(g)) + asValue(beta(g));
      },
      {{"gamma", {3, 5}}, {"beta", {3, 5}}});
}

// Self-attention with three heads; the columns of some weights are split over tp.
absl::StatusOr<std::string> threeHeads(const std::string& mesh, const std::string& split, const std::string& machine) {
  Graph g;
  const Tensor x = g.input("x", {4, 5, 24}, kF32);
  const auto heads = [&](const std::string& name) {
    return reshape(matmul(x, g.parameter(name, {24, 24}, Init::normal(1))), {4, 5, 3, 8});
  };
  const Tensor powers = softmax(einsum("bqhd,bkhd->bhqk", heads("attention.q"), heads("attention.k")));
  const Tensor mixed = einsum("bhqk,bkhd->bqhd", powers, heads("attention.v"));
  const Tensor y = matmul(reshape(mixed, {4, 5, 24}), g.parameter("out", {24, 24}, Init::normal(1)));
  CompileOptions options;
  options.mesh = mesh;
  options.machine = machine;
  options.gradientOutputs = true;
  options.layouts = {{split, "[{},{tp}]"}};
  absl::StatusOr<std::string> text = logicalModule(g, mean(y * y), optim::Sgd{.lr = 0.1}, options);
  return text.ok() ? absl::StrReplaceAll(*text, {{"f32", "f64"}}) : text;
}

// Two ranks: a fourth head of zeros where arithmetic is dear; not where launches are, and only the queries are split.
TEST(Words, HeadsThatDoNotDivideArePaddedWhereThatIsCheaper) {
  const Shape weight = {24, 24};
  const NamedTensors arguments = ramps(
      {{"x", {4, 5, 24}}, {"attention.q", weight}, {"attention.k", weight}, {"attention.v", weight}, {"out", weight}});
  const NamedTensors one = *runPlan(*compileText(*threeHeads("tp=1", "attention.*", "")), arguments);
  for (const bool pays : {true, false}) {
    const absl::StatusOr<std::string> split = pays ? threeHeads("tp=2", "attention.*", "flops = 1e6")
                                                   : threeHeads("tp=2", "attention.q", "launch_latency = 1");
    ASSERT_TRUE(split.ok()) << split.status();
    EXPECT_EQ(differenceFromOneRank(*split, one, arguments), "");
    const absl::StatusOr<plan::Plan> plan = compileText(*split);
    ASSERT_TRUE(plan.ok()) << plan.status();
    const Decisions record = *parseDecisions(plan->decisions());
    ASSERT_EQ(record.notes.size(), 1U);
    EXPECT_EQ(record.arguments[1].name, "attention.q");
    EXPECT_EQ(record.arguments[1].layout.print(record.mesh), pays ? "[{},{tp}] pad{1:32}" : "[{},{tp}]");
    EXPECT_THAT(record.notes[0],
                ::testing::HasSubstr(pays ? "and 2 more like it: dimension 1 of size 24 is stored with 32 elements"
                                          : "does not divide"));
  }
}

}  // namespace
}  // namespace weft::testing
