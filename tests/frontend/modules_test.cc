// Modules: their settings, names and sharing of parameters; pipeline stages, where setPipelineStage is the same as a
// scope around each call.

#include "weft/modules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <sstream>

#include "weft/weft.h"

namespace weft {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr char kOn0[] = "nn.stage = 0";
constexpr char kOn1[] = "nn.stage = 1";

Tensor image(Graph& g) {
  return g.input("x", {2, 3, 8, 8});
}
Tensor rows(Graph& g) {
  return g.input("x", {2, 4, 8});
}

// Makes a module and calls it; with `inside` its stage is set, else a scope stands around the call.
struct Case {
  std::string name;
  std::function<void(Graph&, bool inside)> build;
};

template <typename M>
void call(Graph& g, bool inside, M made, const Tensor& x) {
  if (inside) {
    made.setPipelineStage(1);
    made(x);
  } else {
    const Scope scope = g.stage(1);
    made(x);
  }
}

std::vector<Case> allModules() {
  return {
      {"Linear", [](Graph& g, bool in) { call(g, in, nn::Linear(g, "m", 8, 3), rows(g)); }},
      {"Embedding", [](Graph& g, bool in) { call(g, in, nn::Embedding(g, "m", 5, 3), g.input("x", {2, 4}, kI32)); }},
      {"LayerNorm", [](Graph& g, bool in) { call(g, in, nn::LayerNorm(g, "m", 8), rows(g)); }},
      {"Conv2d", [](Graph& g, bool in) { call(g, in, nn::Conv2d(g, "m", 3, 4, 3), image(g)); }},
      {"BatchNorm2d", [](Graph& g, bool in) { call(g, in, nn::BatchNorm2d(g, "m", 3), image(g)); }},
      {"ConvTranspose2d", [](Graph& g, bool in) { call(g, in, nn::ConvTranspose2d(g, "m", 3, 4, 3), image(g)); }},
      {"GroupNorm", [](Graph& g, bool in) { call(g, in, nn::GroupNorm(g, "m", 3, 3), image(g)); }},
      {"RmsNorm", [](Graph& g, bool in) { call(g, in, nn::RmsNorm(g, "m", 8), rows(g)); }},
      {"Dropout", [](Graph& g, bool in) { call(g, in, nn::Dropout(0.5), rows(g)); }},
      {"MaxPool2d", [](Graph& g, bool in) { call(g, in, nn::MaxPool2d(2), image(g)); }},
      {"AvgPool2d", [](Graph& g, bool in) { call(g, in, nn::AvgPool2d(2), image(g)); }},
      {"Attention", [](Graph& g, bool in) { call(g, in, nn::Attention(g, 8, 2), rows(g)); }},
      {"Mlp", [](Graph& g, bool in) { call(g, in, nn::Mlp(g, 8, 16), rows(g)); }},
      {"TransformerBlock", [](Graph& g, bool in) { call(g, in, nn::TransformerBlock(g, "m", 8, 2), rows(g)); }},
  };
}

TEST(PipelineStageTest, EqualsAScopeAroundTheCall) {
  for (const Case& module : allModules()) {
    Graph set;
    module.build(set, true);
    Graph scoped;
    module.build(scoped, false);
    ASSERT_TRUE(set.status().ok()) << module.name << ": " << set.status();
    EXPECT_EQ(set.print(), scoped.print()) << module.name;
    EXPECT_THAT(set.print(), HasSubstr(kOn1)) << module.name;
  }
}

// Lines of the module that have an operator of this name.
std::string linesOf(const Graph& g, const std::string& op) {
  std::istringstream text(g.print());
  std::string found;
  for (std::string line; std::getline(text, line);) {
    found += line.find("= nn." + op + " ") != std::string::npos ? line + "\n" : "";
  }
  return found;
}

TEST(PipelineStageTest, InnerWins) {
  Graph g;
  nn::TransformerBlock block(g, "h", 8, 2);
  block.setPipelineStage(1);
  block.attention().setPipelineStage(0);
  const Scope around = g.stage(2);
  relu(block(rows(g)));
  ASSERT_TRUE(g.status().ok()) << g.status();
  EXPECT_THAT(linesOf(g, "attention"), AllOf(HasSubstr(kOn0), testing::Not(HasSubstr(kOn1))));
  EXPECT_THAT(linesOf(g, "gelu"), HasSubstr(kOn1));
  EXPECT_THAT(linesOf(g, "layer_norm"), AllOf(HasSubstr(kOn1), testing::Not(HasSubstr(kOn0))));
  EXPECT_THAT(linesOf(g, "relu"), HasSubstr("nn.stage = 2"));  // the scope around holds again
}

TEST(PipelineStageTest, ParametersLiveOnTheStage) {
  Graph g;
  nn::Linear first(g, "fc0", 8, 6);
  nn::Linear second(g, "fc1", 6, 2);
  first.setPipelineStage(0);
  second.setPipelineStage(1);
  const Tensor y = second(relu(first(g.input("x", {4, 8}))));
  const absl::StatusOr<Program> program = compile(g, mean(mul(y, y)), optim::Sgd{}, {.micro = 2, .schedule = "1f1b"});
  ASSERT_TRUE(program.ok()) << program.status();
  ASSERT_EQ(program->plan.submeshes_size(), 2);
  for (int submesh = 0; submesh < 2; ++submesh) {
    std::vector<std::string> parameters;
    for (const plan::NamedTensor& tensor : program->plan.submeshes(submesh).tensors()) {
      if (tensor.kind() == plan::TENSOR_PARAMETER) {
        parameters.push_back(tensor.name());
      }
    }
    const std::string name = "fc" + std::to_string(submesh);
    EXPECT_THAT(parameters, testing::UnorderedElementsAre(name + ".weight", name + ".bias"));
  }
}

TEST(PipelineStageTest, MistakesAreErrors) {
  Graph g;
  nn::Linear only(g, "fc", 8, 2);
  only.setPipelineStage(-1);
  const Tensor y = only(g.input("x", {4, 8}));
  const absl::StatusOr<Program> program = compile(g, mean(mul(y, y)), optim::Sgd{});
  ASSERT_FALSE(program.ok());
  EXPECT_THAT(std::string(program.status().message()), HasSubstr("is on stage -1; stages are 0, 1, ..."));
  EXPECT_FALSE(only(Tensor()).valid());  // no graph to put anything in
}

// Names of a compiled program's parameters.
std::vector<std::string> parametersOf(const Program& program) {
  std::vector<std::string> names;
  for (const plan::NamedTensor& tensor : program.plan.tensors()) {
    if (tensor.kind() == plan::TENSOR_PARAMETER) {
      names.push_back(tensor.name());
    }
  }
  return names;
}

// Every setting of a module reaches its parameters: first values 3 and 5, or no bias.
struct Made {
  std::string name;
  std::function<void(Graph&, const Init& weight, const Init& bias)> make;
  std::function<void(Graph&)> withoutBias = nullptr;
  int64_t weights = 1;
  int64_t biases = 1;
};

std::vector<Made> modulesWithParameters() {
  return {
      {"Linear", [](Graph& g, const Init& w, const Init& b) { nn::Linear(g, "m", 2, 3, {.init = w, .biasInit = b}); },
       [](Graph& g) { nn::Linear(g, "m", 8, 3, {.bias = false})(rows(g)); }},
      {"Embedding", [](Graph& g, const Init& w, const Init&) { nn::Embedding(g, "m", 2, 3, {.init = w}); }, nullptr, 1,
       0},
      {"LayerNorm",
       [](Graph& g, const Init& w, const Init& b) { nn::LayerNorm(g, "m", 3, {.init = w, .biasInit = b}); },
       [](Graph& g) { nn::LayerNorm(g, "m", 8, {.bias = false})(rows(g)); }},
      {"RmsNorm", [](Graph& g, const Init& w, const Init&) { nn::RmsNorm(g, "m", 3, {.init = w}); }, nullptr, 1, 0},
      {"Conv2d",
       [](Graph& g, const Init& w, const Init& b) { nn::Conv2d(g, "m", 2, 3, 1, {.init = w, .biasInit = b}); },
       [](Graph& g) { nn::Conv2d(g, "m", 3, 3, 1, {.bias = false})(image(g)); }},
      {"ConvTranspose2d",
       [](Graph& g, const Init& w, const Init& b) { nn::ConvTranspose2d(g, "m", 2, 3, 1, {.init = w, .biasInit = b}); },
       [](Graph& g) { nn::ConvTranspose2d(g, "m", 3, 3, 1, {.bias = false})(image(g)); }},
      {"GroupNorm",
       [](Graph& g, const Init& w, const Init& b) { nn::GroupNorm(g, "m", 1, 3, {.init = w, .biasInit = b}); },
       [](Graph& g) { nn::GroupNorm(g, "m", 1, 3, {.bias = false})(image(g)); }},
      {"BatchNorm2d",
       [](Graph& g, const Init& w, const Init& b) { nn::BatchNorm2d(g, "m", 3, {.init = w, .biasInit = b}); }},
      {"Attention", [](Graph& g, const Init& w, const Init& b) { nn::Attention(g, 4, 2, {.init = w, .biasInit = b}); },
       [](Graph& g) { nn::Attention(g, 8, 2, {.bias = false})(rows(g)); }, 2, 2},
      {"Mlp", [](Graph& g, const Init& w, const Init& b) { nn::Mlp(g, 4, 8, {.init = w, .biasInit = b}); },
       [](Graph& g) { nn::Mlp(g, 8, 8, {.bias = false})(rows(g)); }, 2, 2},
      {"TransformerBlock",
       [](Graph& g, const Init& w, const Init& b) { nn::TransformerBlock(g, "m", 4, 2, {.init = w, .biasInit = b}); },
       [](Graph& g) { nn::TransformerBlock(g, "m", 8, 2, {.bias = false})(rows(g)); }, 4, 4},
  };
}

// How often the graph has a parameter of these words.
int64_t countOf(const Graph& g, const std::string& words) {
  const std::string text = g.print();
  int64_t count = 0;
  for (size_t at = text.find(words); at != std::string::npos; at = text.find(words, at + 1)) {
    ++count;
  }
  return count;
}

TEST(SettingsTest, InitialisersAreTheParameters) {
  for (const Made& module : modulesWithParameters()) {
    SCOPED_TRACE(module.name);
    Graph g;
    module.make(g, Init::constant(3), Init::constant(5));
    ASSERT_TRUE(g.status().ok()) << g.status();
    EXPECT_EQ(countOf(g, "a = 3.0"), module.weights);
    EXPECT_EQ(countOf(g, "a = 5.0"), module.biases);
  }
}

TEST(SettingsTest, LastProductsHaveInitialisersOfTheirOwn) {
  Graph g;
  nn::TransformerBlock(g, "m", 4, 2, {.init = Init::constant(3), .outInit = Init::constant(4)});
  EXPECT_EQ(countOf(g, "a = 3.0"), 2);
  EXPECT_EQ(countOf(g, "a = 4.0"), 2);
}

TEST(SettingsTest, WithoutBias) {
  for (const Made& module : modulesWithParameters()) {
    if (module.withoutBias != nullptr) {
      Graph g;
      module.withoutBias(g);
      ASSERT_TRUE(g.status().ok()) << module.name << ": " << g.status();
      EXPECT_THAT(g.print(), testing::Not(HasSubstr("bias"))) << module.name;
    }
  }
}

// dropout of the block: what attention and mlp add, and with attentionDropout the softmax.
TEST(SettingsTest, DropoutOfABlock) {
  const auto drops = [](const nn::TransformerBlockSettings& settings) {
    Graph g;
    nn::TransformerBlock(g, "m", 8, 2, settings)(rows(g));
    EXPECT_TRUE(g.status().ok()) << g.status();
    return countOf(g, "= nn.dropout ");
  };
  EXPECT_EQ(drops({}), 0);
  EXPECT_EQ(drops({.dropout = 0.1}), 2);
  EXPECT_EQ(drops({.attentionDropout = 0.1}), 1);
  EXPECT_EQ(drops({.dropout = 0.1, .attentionDropout = 0.1}), 3);
}

// One module, called twice: one weight, whose gradient is the sum of both; a row of a table is for both products.
TEST(SharedModuleTest, IsCalledTwiceAndSplitOnce) {
  const auto losses = [](const std::string& mesh) {
    Graph g;
    const nn::Linear twice(g, "fc", 8, 8, {.init = Init::normal(0.3), .biasInit = Init::normal(0.3)});
    const Tensor y = twice(relu(twice(g.input("x", {4, 8}))));
    if (mesh != "1") {
      g.shard({{"fc", {{"dp", ""}, {"", "tp"}}}});
    }
    EXPECT_EQ(countOf(g, "nn.strategy"), mesh == "1" ? 0 : 2);
    const absl::StatusOr<Program> program = compile(g, mean(y * y), optim::Sgd{.lr = 0.5}, {.mesh = mesh});
    EXPECT_TRUE(program.ok()) << program.status();
    EXPECT_THAT(parametersOf(*program), testing::UnorderedElementsAre("fc.weight", "fc.bias"));
    Trainer trainer(*program, {.progress = false});
    std::vector<float> x(32);
    for (size_t i = 0; i < x.size(); ++i) {
      x[i] = static_cast<float>(i % 7) - 3;
    }
    const absl::Status trained = trainer.fit(5, [&](int64_t, Feed& feed) { feed.write("x", x); });
    EXPECT_TRUE(trained.ok()) << trained;
    return trainer.losses();
  };
  const std::vector<double> one = losses("1");
  const std::vector<double> four = losses("dp=2,tp=2");
  ASSERT_EQ(one.size(), 5u);
  EXPECT_LT(one.back(), 0.7 * one.front());
  for (size_t i = 0; i < one.size(); ++i) {
    EXPECT_NEAR(four[i], one[i], 1e-5 * one[i]);  // sums of eight f32 in another order
  }
}

// A module made in one scope and called in another keeps the names of its own.
TEST(SharedModuleTest, KeepsItsScope) {
  Graph g;
  const auto make = [&] {
    const Scope scope = g.scope("first");
    return nn::Linear(g, "fc", 8, 8);
  };
  const nn::Linear linear = make();
  const Scope scope = g.scope("second");
  linear(rows(g));
  EXPECT_THAT(linesOf(g, "matmul"), HasSubstr("\"first.fc\""));
}

TEST(SharedModuleTest, TwoOfOneNameAreAnError) {
  Graph g;
  const nn::Linear first(g, "fc", 8, 8);
  const int line = __LINE__ - 1;
  const nn::Linear second(g, "fc", 8, 8);
  const std::string found(g.status().message());
  EXPECT_THAT(found, HasSubstr("modules_test.cc:" + std::to_string(line + 2) + ": error: "));
  EXPECT_THAT(found, HasSubstr("'fc.weight' already, made at"));
  EXPECT_THAT(found, HasSubstr("modules_test.cc:" + std::to_string(line) + "; names are unique in a graph"));
  EXPECT_THAT(found, HasSubstr("call the module again"));
}

TEST(StageOfTest, BlocksOfEqualSize) {
  std::vector<int> stages;
  for (int64_t layer = 0; layer < 7; ++layer) {
    stages.push_back(nn::stageOf(layer, 7, 3));
  }
  EXPECT_THAT(stages, testing::ElementsAre(0, 0, 0, 1, 1, 2, 2));
}

}  // namespace
}  // namespace weft
