// Modules on pipeline stages: setPipelineStage is the same as a scope around each call.

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
  const Init init = Init::normal(0.02);
  return {
      {"Linear", [](Graph& g, bool in) { call(g, in, nn::Linear(g, "m", 8, 3), rows(g)); }},
      {"Embedding", [](Graph& g, bool in) { call(g, in, nn::Embedding(g, "m", 5, 3), g.input("x", {2, 4}, kI32)); }},
      {"LayerNorm", [](Graph& g, bool in) { call(g, in, nn::LayerNorm(g, "m", 8), rows(g)); }},
      {"Conv2d", [](Graph& g, bool in) { call(g, in, nn::Conv2d(g, "m", 3, 4, 3), image(g)); }},
      {"BatchNorm2d", [](Graph& g, bool in) { call(g, in, nn::BatchNorm2d(g, "m", 3), image(g)); }},
      {"MaxPool2d", [](Graph& g, bool in) { call(g, in, nn::MaxPool2d(2), image(g)); }},
      {"AvgPool2d", [](Graph& g, bool in) { call(g, in, nn::AvgPool2d(2), image(g)); }},
      {"Attention", [=](Graph& g, bool in) { call(g, in, nn::Attention(g, 8, 2, init), rows(g)); }},
      {"Mlp", [=](Graph& g, bool in) { call(g, in, nn::Mlp(g, 8, 16, init), rows(g)); }},
      {"TransformerBlock", [=](Graph& g, bool in) { call(g, in, nn::TransformerBlock(g, "m", 8, 2, init), rows(g)); }},
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
  nn::TransformerBlock block(g, "h", 8, 2, Init::normal(0.02));
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

}  // namespace
}  // namespace weft
