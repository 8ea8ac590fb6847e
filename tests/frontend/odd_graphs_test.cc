// Graphs at the edge of sense: nothing to learn, nothing put out, names that stand twice, tensors of other graphs. Each
// compiles and runs, or is refused at the user's line with what was given and what to do.

#include <gmock/gmock.h>
#include <google/protobuf/util/message_differencer.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "weft/weft.h"

namespace weft {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

const optim::Sgd kSgd{.lr = 0.1};
const std::vector<float> kRows = {1, 2, 3, 4, 5, 6, 7, 8};

Tensor input(Graph& g) {
  return g.input("x", {2, 4});
}
// The loss is 4.5, its gradient for w half the sums of the columns of x, divided by 4.
Tensor lossOf(Graph& g, const Tensor& x, const ParameterOptions& options = {}) {
  return mean(x * g.parameter("w", {4}, Init::ones(), options));
}

constexpr int kFirstTest = __LINE__;

// --- what runs ---

using Values = std::map<std::string, std::vector<float>>;

// All named tensors of type f32, after so many steps.
Values valuesOf(const absl::StatusOr<Program>& program, int64_t steps) {
  if (!program.ok()) {
    ADD_FAILURE() << program.status();
    return {};
  }
  Trainer trainer(*program, {.threadsPerRank = 1, .progress = false});
  absl::Status status = trainer.status();
  for (int64_t step = 0; step < steps && status.ok(); ++step) {
    Feed feed(trainer.executor());
    if (trainer.executor().findTensor("x") != nullptr) {
      feed.write("x", kRows);
    }
    status.Update(feed.status());
    status.Update(trainer.executor().runStep());
  }
  EXPECT_TRUE(status.ok()) << status;
  Values values;
  for (const plan::NamedTensor& tensor : trainer.executor().plan().tensors()) {
    const std::vector<char> bytes = *trainer.executor().readTensor(tensor.name());
    values[tensor.name()].resize(bytes.size() / sizeof(float));
    std::memcpy(values[tensor.name()].data(), bytes.data(), values[tensor.name()].size() * sizeof(float));
  }
  return values;
}

// Of a training program on one rank and on two, in one micro-batch and in two: the same.
Values trained(const std::function<Tensor(Graph&)>& build, const Optimizer& optimizer = kSgd, double clipNorm = 0) {
  Values first;
  for (const CompileOptions& layout :
       {CompileOptions{}, CompileOptions{.mesh = "dp=2", .zero = 3}, CompileOptions{.micro = 2}}) {
    Graph g;
    CompileOptions options = layout;
    options.clipNorm = clipNorm;
    const Tensor loss = build(g);
    const Values values = valuesOf(compile(g, loss, optimizer, options), 2);
    first = first.empty() ? values : first;
    for (const auto& [name, numbers] : first) {
      SCOPED_TRACE(name);
      const std::vector<float>& given = values.at(name);
      for (size_t i = 0; i < numbers.size(); ++i) {
        EXPECT_NEAR(given.at(i), numbers[i], 1e-5 * (1 + std::abs(numbers[i])));
      }
    }
  }
  return first;
}

TEST(OddGraphs, NothingToLearn) {
  const auto meanOfX = [](Graph& g) { return mean(input(g)); };
  EXPECT_FLOAT_EQ(trained(meanOfX).at("loss")[0], 4.5F);
  EXPECT_FLOAT_EQ(trained(meanOfX, optim::Adam{}, 1.0).at("loss")[0], 4.5F);
  EXPECT_FLOAT_EQ(trained([](Graph& g) { return lossOf(g, input(g), {.frozen = true}); }).at("w")[0], 1);
  EXPECT_FLOAT_EQ(
      trained([](Graph& g) { return lossOf(g, input(g)); }, optim::Sgd{.lr = 0.1, .groups = {{"*", {.frozen = true}}}})
          .at("w")[0],
      1);
}

TEST(OddGraphs, TheLossDoesNotDependOnTheParameters) {
  const auto beside = [](Graph& g) {
    const Tensor x = input(g);
    g.output("y", lossOf(g, x));
    return mean(x);
  };
  for (const double clipNorm : {0.0, 1.0}) {
    const Values values = trained(beside, optim::Adam{.lr = 0.1}, clipNorm);
    EXPECT_FLOAT_EQ(values.at("loss")[0], 4.5F);
    EXPECT_EQ(values.at("w"), std::vector<float>(4, 1));
  }
  EXPECT_EQ(trained([](Graph& g) { return stopGradient(lossOf(g, input(g))); }).at("w"), std::vector<float>(4, 1));
}

TEST(OddGraphs, TheLossIsAnArgumentOrAConstant) {
  Graph g;
  EXPECT_FLOAT_EQ(valuesOf(compile(g, g.full({}, 3), kSgd), 1).at("loss")[0], 3);
  Graph parameter;
  const Values values = valuesOf(compile(parameter, parameter.parameter("w", {}, Init::ones()), kSgd), 2);
  EXPECT_FLOAT_EQ(values.at("loss")[0], 0.9F);
  EXPECT_FLOAT_EQ(values.at("w")[0], 0.8F);
  Graph fed;
  const absl::StatusOr<Program> program = compile(fed, fed.input("l", {}, kF32, {.batchDim = -1}), kSgd);
  ASSERT_TRUE(program.ok()) << program.status();
  Trainer trainer(*program, {.progress = false});
  ASSERT_TRUE(trainer.fit(1, [](int64_t, Feed& feed) { feed.write("l", std::vector<float>{7}); }).ok());
  EXPECT_EQ(trainer.losses(), std::vector<double>{7});
}

TEST(OddGraphs, WhatNothingReadsStays) {
  const Values values = trained([](Graph& g) {
    g.parameter("unread", {6}, Init::constant(3));
    return lossOf(g, input(g));
  });
  EXPECT_EQ(values.at("unread"), std::vector<float>(6, 3));
  EXPECT_FLOAT_EQ(values.at("w")[0], 1 - 2 * 0.1F * 0.75F);
}

TEST(OddGraphs, OutputsThatAreArgumentsAreWhatTheStepBeganWith) {
  const Values values = trained([](Graph& g) {
    const Tensor x = input(g);
    const Tensor loss = lossOf(g, x);
    const Tensor count = g.state("count", {}, kF32, 5);
    g.assign(count, count + 1);
    g.output("fed", x);
    g.output("fed again", x);
    g.output("weight", g.parameter("v", {2}, Init::constant(2)));
    g.output("counted", count);
    g.output("loss again", loss);
    g.output("one", reshape(loss, {1}));
    return loss;
  });
  EXPECT_EQ(values.at("fed"), kRows);
  EXPECT_EQ(values.at("fed again"), kRows);
  EXPECT_EQ(values.at("weight"), std::vector<float>(2, 2));
  EXPECT_EQ(values.at("counted"), std::vector<float>{6});
  EXPECT_EQ(values.at("count"), std::vector<float>{7});
  EXPECT_EQ(values.at("loss again"), values.at("loss"));
  EXPECT_EQ(values.at("one"), values.at("loss"));
}

TEST(OddGraphs, ForwardProgramsNeedNoLoss) {
  Graph g;
  g.output("y", input(g) * 2);
  EXPECT_FLOAT_EQ(valuesOf(compileForward(g, Tensor()), 1).at("y")[7], 16);
  Graph loss;
  const Tensor x = input(loss);
  loss.output("loss", x + 1);  // no loss has the name
  EXPECT_FLOAT_EQ(valuesOf(compileForward(loss, Tensor()), 1).at("loss")[7], 9);
}

TEST(OddGraphs, AGraphIsCompiledSeveralTimes) {
  Graph g;
  const Tensor loss = lossOf(g, input(g));
  const auto first = compile(g, loss, kSgd);
  EXPECT_FALSE(compile(g, loss, kSgd, {.mesh = "dp"}).ok());
  const auto other = compile(g, loss, kSgd, {.mesh = "dp=2"});
  const auto forward = compileForward(g, loss);
  const auto again = compile(g, loss, kSgd);
  ASSERT_TRUE(first.ok() && again.ok());
  EXPECT_TRUE(google::protobuf::util::MessageDifferencer::Equals(first->plan, again->plan));
  EXPECT_FLOAT_EQ(valuesOf(other, 2).at("loss")[0], valuesOf(first, 2).at("loss")[0]);
  EXPECT_FLOAT_EQ(valuesOf(forward, 2).at("loss")[0], 4.5F);
  // What is added later is part of what is compiled later.
  g.output("y", loss * 2);
  EXPECT_FLOAT_EQ(valuesOf(compile(g, loss * 3, kSgd), 1).at("y")[0], 9);
}

TEST(OddGraphs, ModulesThatAreCalledTwiceAndInLoops) {
  const Values values = trained([](Graph& g) {
    Tensor x = input(g);
    const nn::Linear shared(g, "shared", 4, 4, {.init = Init::normal(0.5)});
    for (int i = 0; i < 3; ++i) {
      const Scope scope = g.scope("h" + std::to_string(i));
      x = shared(nn::Linear(g, "fc", 4, 4, {.init = Init::normal(0.5)})(x));
    }
    return mean(x * x);
  });
  EXPECT_EQ(values.count("h2.fc.weight"), 1U);
  EXPECT_EQ(values.count("shared.bias"), 1U);
}

// --- what is refused ---

struct Refused {
  const char* name;
  std::function<absl::Status(Graph& g, const Tensor& x)> call;
  int line;
  std::vector<std::string> says;
};

using Status = absl::Status;

const std::vector<Refused>& refused() {
  static const std::vector<Refused> cases = {
      // Names.
      {"ParametersOfOneName",
       [](Graph& g, [[maybe_unused]] const Tensor& x) -> Status {
         g.parameter("w", {4});
         g.parameter("w", {4});
         return g.status();
       },
       __LINE__,
       {"there is a tensor named 'w' already"}},
      {"InputsOfOneName",
       [](Graph& g, [[maybe_unused]] const Tensor& x) -> Status {
         g.input("x", {5});
         return g.status();
       },
       __LINE__,
       {"there is a tensor named 'x' already"}},
      {"InputAndParameter",
       [](Graph& g, [[maybe_unused]] const Tensor& x) -> Status {
         g.parameter("x", {4});
         return g.status();
       },
       __LINE__,
       {"there is a tensor named 'x' already"}},
      {"ModulesOfOneName",
       [](Graph& g, [[maybe_unused]] const Tensor& x) -> Status {
         nn::Linear(g, "fc", 4, 4);
         nn::Linear(g, "fc", 4, 4);
         return g.status();
       },
       __LINE__,
       {"there is a tensor named 'fc.weight' already"}},
      {"OutputsOfOneName",
       [](Graph& g, [[maybe_unused]] const Tensor& x) -> Status {
         g.output("y", x);
         g.output("y", x * 2);
         return g.status();
       },
       __LINE__,
       {"there is an output named 'y' already"}},
      {"OutputNamedAsItsInput",
       [](Graph& g, [[maybe_unused]] const Tensor& x) -> Status {
         g.output("x", x);
         return g.status();
       },
       __LINE__,
       {"output 'x'", "input, parameter or state of this name", "give the output another"}},
      {"ParameterNamedAsAnOutput",
       [](Graph& g, [[maybe_unused]] const Tensor& x) -> Status {
         g.output("w", x);
         g.parameter("w", {4});
         return g.status();
       },
       __LINE__,
       {"there is an output named 'w' already"}},
      {"OutputWithoutName",
       [](Graph& g, [[maybe_unused]] const Tensor& x) -> Status {
         g.output("", x);
         return g.status();
       },
       __LINE__,
       {"an output needs a name"}},
      {"StatesOfOtherShapes",
       [](Graph& g, [[maybe_unused]] const Tensor& x) -> Status {
         g.state("s", {4}, kF32, 0);
         g.state("s", {5}, kF32, 0);
         return g.status();
       },
       __LINE__,
       {"state 's'", "f32 [4] from 0", "f32 [5] from 0", "another name"}},
      {"StatesOfOtherTypes",
       [](Graph& g, [[maybe_unused]] const Tensor& x) -> Status {
         g.state("s", {}, kF32, 0);
         g.state("s", {}, kI32, 0);
         return g.status();
       },
       __LINE__,
       {"f32 [] from 0", "i32 [] from 0"}},
      {"StatesOfOtherFirstValues",
       [](Graph& g, [[maybe_unused]] const Tensor& x) -> Status {
         g.state("s", {}, kF32, 0);
         g.state("s", {}, kF32, 1);
         return g.status();
       },
       __LINE__,
       {"f32 [] from 0", "f32 [] from 1"}},
      {"StateNamedAsAnInput",
       [](Graph& g, [[maybe_unused]] const Tensor& x) -> Status {
         g.state("x", {2, 4}, kF32, 0);
         return g.status();
       },
       __LINE__,
       {"an input of this name, f32 [2, 4]", "give it another name"}},
      {"OutputNamedLoss",
       [](Graph& g, [[maybe_unused]] const Tensor& x) -> Status {
         g.output("loss", x);
         return compile(g, mean(x), kSgd).status();
       },
       __LINE__,
       {"output 'loss' is not the loss", "give it another"}},
      {"ParameterNamedLoss",
       [](Graph& g, [[maybe_unused]] const Tensor& x) -> Status {
         const Tensor w = g.parameter("loss", {4});
         return compile(g, mean(x * w), kSgd).status();
       },
       __LINE__,
       {"the loss leaves the program as 'loss'"}},
      {"ParameterNamedAsTheLearningRate",
       [](Graph& g, [[maybe_unused]] const Tensor& x) -> Status {
         const Tensor w = g.parameter("lr", {4});
         return compile(g, mean(x * w), kSgd).status();
       },
       __LINE__,
       {"'lr' is the name of a value that the optimizer keeps"}},
      {"ParameterNamedAsTheStepCount",
       [](Graph& g, [[maybe_unused]] const Tensor& x) -> Status {
         const Tensor w = g.parameter("step", {4});
         return compile(g, mean(x * w), optim::Adam{}).status();
       },
       __LINE__,
       {"'step' is the name of a value"}},
      {"StateNamedAsAMoment",
       [](Graph& g, [[maybe_unused]] const Tensor& x) -> Status {
         const Tensor w = g.parameter("w", {4}) + g.state("adam.m.w", {4}, kF32, 0);
         return compile(g, mean(x * w), optim::Adam{}).status();
       },
       __LINE__,
       {"'adam.m.w' is the name of a value"}},
      {"OutputNamedAsTheGradientNorm",
       [](Graph& g, [[maybe_unused]] const Tensor& x) -> Status {
         g.output("grad_norm", x * 2);
         return compile(g, lossOf(g, x), kSgd, {.clipNorm = 1}).status();
       },
       __LINE__,
       {"output 'grad_norm' has the name of a value that the update puts out"}},
      // Losses.
      {"LossOfOneElement",
       [](Graph& g, [[maybe_unused]] const Tensor& x) -> Status {
         return compile(g, reshape(lossOf(g, x), {1}), kSgd).status();
       },
       __LINE__,
       {"the loss should be a float scalar, it is f32 [1]", "take mean(loss)"}},
      {"LossOfIntegers",
       [](Graph& g, [[maybe_unused]] const Tensor& x) -> Status {
         return compile(g, sum(cast(x, kI32)), kSgd).status();
       },
       __LINE__,
       {"the loss should be a float scalar, it is i32 []", "cast it"}},
      {"LossOfAnotherGraph",
       [](Graph& g, [[maybe_unused]] const Tensor& x) -> Status {
         Graph other;
         const Tensor loss = mean(other.input("z", {2}));
         return compile(g, loss, kSgd).status();
       },
       __LINE__,
       {"the loss belongs to another graph"}},
      // Sizes.
      {"InputOfNoElements",
       [](Graph& g, [[maybe_unused]] const Tensor& x) -> Status {
         g.input("z", {0, 4});
         return g.status();
       },
       __LINE__,
       {"'z' has a dimension of size 0"}},
      {"BatchInNoDimension",
       [](Graph& g, [[maybe_unused]] const Tensor& x) -> Status {
         g.input("z", {2, 4}, kF32, {.batchDim = 2});
         return g.status();
       },
       __LINE__,
       {"input 'z' [2, 4] has no dimension 2 to carry the batch", "-1 for none"}},
      {"BatchInANegativeDimension",
       [](Graph& g, [[maybe_unused]] const Tensor& x) -> Status {
         g.input("z", {2, 4}, kF32, {.batchDim = -2});
         return g.status();
       },
       __LINE__,
       {"no dimension -2"}},
      {"BatchOfAScalar",
       [](Graph& g, [[maybe_unused]] const Tensor& x) -> Status {
         g.input("z", {}, kF32, {.batchDim = 1});
         return g.status();
       },
       __LINE__,
       {"input 'z' [] has no dimension 1"}},
      // Tensors.
      {"TensorOfAnotherGraph",
       [](Graph& g, [[maybe_unused]] const Tensor& x) -> Status {
         Graph other;
         const Tensor z = other.input("z", {2, 4});
         (void)(x + z);
         EXPECT_TRUE(other.status().ok());
         return g.status();
       },
       __LINE__,
       {"add: operand b belongs to no graph or to another"}},
      {"OutputOfAnotherGraph",
       [](Graph& g, [[maybe_unused]] const Tensor& x) -> Status {
         Graph other;
         g.output("y", other.input("z", {2, 4}));
         return g.status();
       },
       __LINE__,
       {"output 'y' is no tensor of this graph"}},
      {"NoTensor",
       [](Graph& g, [[maybe_unused]] const Tensor& x) -> Status {
         (void)(x + Tensor());
         return g.status();
       },
       __LINE__,
       {"add: operand b belongs to no graph"}},
      {"NoTensorFirst",
       [](Graph& g, [[maybe_unused]] const Tensor& x) -> Status {
         (void)(Tensor() + x);
         return g.status();
       },
       __LINE__,
       {"add: operand a belongs to no graph"}},
      {"OutputOfNoTensor",
       [](Graph& g, [[maybe_unused]] const Tensor& x) -> Status {
         g.output("y", Tensor());
         return g.status();
       },
       __LINE__,
       {"output 'y' is no tensor"}},
      {"AssignNoTensor",
       [](Graph& g, [[maybe_unused]] const Tensor& x) -> Status {
         g.assign(Tensor(), x);
         return g.status();
       },
       __LINE__,
       {"belongs to no graph"}},
      {"AssignTwice",
       [](Graph& g, [[maybe_unused]] const Tensor& x) -> Status {
         const Tensor s = g.state("s", {}, kF32, 0);
         g.assign(s, s + 1);
         g.assign(s, s + 2);
         return g.status();
       },
       __LINE__,
       {"state 's' is replaced twice in one step"}},
      {"AssignAnInput",
       [](Graph& g, [[maybe_unused]] const Tensor& x) -> Status {
         g.assign(x, x + 1);
         return g.status();
       },
       __LINE__,
       {"'x' is no state"}},
      // Metrics.
      {"MetricOfAScalar",
       [](Graph& g, [[maybe_unused]] const Tensor& x) -> Status {
         metric("m", mean(x));
         return g.status();
       },
       __LINE__,
       {"'m' is a scalar", "losses before their mean"}},
      {"MetricsOfOtherRows",
       [](Graph& g, [[maybe_unused]] const Tensor& x) -> Status {
         metric("m", x);
         metric("n", reshape(x, {8}));
         return g.status();
       },
       __LINE__,
       {"'n' is f32 [8], of 8 rows", "before have 2"}},
      {"MetricWithWeightsOfAnotherShape",
       [](Graph& g, [[maybe_unused]] const Tensor& x) -> Status {
         metric("m", x, mean(x, {1}));
         return g.status();
       },
       __LINE__,
       {"values are f32 [2, 4], weights f32 [2]"}},
      {"MetricsOfOneName",
       [](Graph& g, [[maybe_unused]] const Tensor& x) -> Status {
         metric("m", x);
         metric("m", x);
         return g.status();
       },
       __LINE__,
       {"named 'm.sum' already"}},
      {"MetricWithWeightsOfAnotherGraph",
       [](Graph& g, [[maybe_unused]] const Tensor& x) -> Status {
         Graph other;
         metric("m", x, other.input("z", {2, 4}));
         return g.status();
       },
       __LINE__,
       {"another"}},
      // After an error nothing but the first one is said.
      {"CallsAfterAnError",
       [](Graph& g, [[maybe_unused]] const Tensor& x) -> Status {
         const Tensor bad = matmul(x, x);
         g.output("y", bad);
         bad.shard({{1, 1}});
         g.assign(g.state("s", {}, kF32, 0), mean(bad));
         metric("m", bad);
         inspect(bad, "q");
         (void)bad.shape();
         return compile(g, mean(bad), kSgd).status();
       },
       __LINE__,
       {"matmul: k is 4 in a"}},
  };
  return cases;
}

TEST(OddGraphs, RefusedAtTheLine) {
  int before = kFirstTest;
  for (const Refused& wrong : refused()) {
    SCOPED_TRACE(wrong.name);
    Graph g;
    const absl::Status status = wrong.call(g, input(g));
    const std::string message(status.message());
    ASSERT_FALSE(status.ok());
    EXPECT_THAT(message, HasSubstr("odd_graphs_test.cc:"));
    for (const std::string& says : wrong.says) {
      EXPECT_THAT(message, HasSubstr(says));
    }
    // A line of the case, or of what it calls at the top of this file.
    const size_t colon = message.find("odd_graphs_test.cc:") + std::string("odd_graphs_test.cc:").size();
    const int line = std::stoi(message.substr(colon));
    EXPECT_TRUE((line > before && line <= wrong.line) || line < kFirstTest) << message;
    before = wrong.line;
  }
}

TEST(OddGraphs, ThereIsNothingToCompile) {
  Graph g;
  EXPECT_THAT(std::string(compile(g, Tensor(), kSgd).status().message()),
              AllOf(HasSubstr("the loss is no tensor of a graph"), HasSubstr("compileForward")));
  (void)(input(g) * 2);
  EXPECT_THAT(std::string(compileForward(g, Tensor()).status().message()),
              AllOf(HasSubstr("the graph puts nothing out"), HasSubstr("Graph::output")));
}

// A tensor of no graph has no place to keep an error; nothing happens.
TEST(OddGraphs, CallsOnNoTensorDoNoHarm) {
  const Tensor none;
  EXPECT_FALSE(relu(none).valid());
  EXPECT_FALSE((none + none).valid());
  EXPECT_FALSE(mean(none).valid());
  EXPECT_FALSE(none.named("x").shard({{1}}).recomputed().valid());
  EXPECT_FALSE(inspect(none, "x").valid());
  EXPECT_TRUE(none.shape().empty());
  metric("m", none);
}

}  // namespace
}  // namespace weft
