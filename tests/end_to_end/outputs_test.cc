// What a training step puts out is the same on every mesh, in any number of micro-batches and stages: values that carry
// the batch in the order of its rows, reductions over the batch whole, whatever the type and wherever the batch lies.

#include <gmock/gmock.h>
#include <google/protobuf/util/message_differencer.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <map>
#include <numeric>

#include "runtime/plan/plan_file.h"
#include "weft/weft.h"

namespace weft {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kTokens = 3;
constexpr int64_t kClasses = 5;

using Outputs = std::map<std::string, std::vector<double>>;

struct Case {
  std::string name;
  int64_t batch = 24;
  int64_t stages = 1;
  CompileOptions options = {};
};

void PrintTo(const Case& c, std::ostream* out) {
  *out << c.name;
}

// A net of two layers that puts out values of all kinds, the first layer's on its own stage.
Tensor build(Graph& g, const Case& c) {
  g.setParameterType(kF64);
  const Tensor x = g.input("x", {c.batch, kTokens, 6}, kF64);
  const Tensor turned = g.input("turned", {kTokens, c.batch}, kF64, {.batchDim = 1});
  const Tensor y = g.input("y", {c.batch, kTokens}, kI32);
  const Tensor w1 = g.parameter("w1", {6, 8}, Init::normal(0.5));
  const Tensor w2 = g.parameter("w2", {8, kClasses}, Init::normal(0.5));
  Tensor hidden;
  {
    const Scope first = g.stage(0);
    hidden = relu(matmul(x, w1));
    g.output("hidden", hidden);
    g.output("greatest", max(hidden, {0}));
    g.output("twice", x * 2);
    g.output("columns", turned + 1);
    g.output("norm", sqrt(sum(w1 * w1)));
  }
  for (int64_t stage = 1; stage < c.stages - 1; ++stage) {
    const Scope middle = g.stage(static_cast<int>(stage));
    hidden = tanh(hidden);
  }
  const Scope last = g.stage(static_cast<int>(c.stages) - 1);
  const Tensor logits = matmul(hidden, w2);
  const Tensor losses = softmaxCrossEntropy(logits, y);
  const Tensor answer = argmax(logits, -1);
  const Tensor right = compare(answer, y, "eq");
  g.output("logits", logits);
  g.output("again", logits);
  inspect(losses, "losses");
  g.output("merged", reshape(logits, {-1, kClasses}));
  g.output("transposed", transpose(logits, {2, 0, 1}));
  g.output("answer", answer);
  g.output("right", right);
  g.output("count", sum(cast(right, kI32)));
  g.output("share", mean(cast(right, kF64)));
  g.output("sum", sum(logits));
  g.output("mean", mean(logits, {0}));
  g.output("max", max(logits, {0, 1}));
  g.output("least", min(logits));
  g.output("scaled", min(logits, {0}) * 3);
  g.output("any", any(compare(answer, 0, "eq"), {0}));
  g.output("all", all(compare(logits, 4.5, "lt"), {0}));
  g.output("least answer", min(answer + 1));
  g.output("root", sqrt(mean(logits * logits)));
  g.output("sorted", topK(logits, 2).indices);
  g.output("weight", w2);
  g.output("labels", y);
  return mean(losses);
}

std::vector<double> numbersOf(const Executor& executor, const std::string& name) {
  const plan::NamedTensor* const tensor = executor.findTensor(name);
  const std::vector<char> bytes = *executor.readTensor(name);
  std::vector<double> numbers;
  const auto read = [&]<typename T>(T) {
    std::vector<T> values(bytes.size() / sizeof(T));
    std::memcpy(values.data(), bytes.data(), bytes.size());
    numbers.assign(values.begin(), values.end());
  };
  switch (dtypeOf(tensor->type())) {
    case DType::kF64:
      read(double());
      break;
    case DType::kI32:
      read(int32_t());
      break;
    default:
      read(uint8_t());
  }
  return numbers;
}

void feed(const Case& c, Feed& feed) {
  std::vector<double> x(c.batch * kTokens * 6);
  std::vector<double> turned(c.batch * kTokens);
  std::vector<int32_t> y(c.batch * kTokens);
  for (size_t i = 0; i < x.size(); ++i) {
    x[i] = std::sin(1.0 + 0.37 * static_cast<double>(i * i));
  }
  std::iota(turned.begin(), turned.end(), 0);
  for (size_t i = 0; i < y.size(); ++i) {
    y[i] = static_cast<int32_t>((i * 7 + i / 5) % kClasses);
  }
  feed.write("x", x);
  feed.write("turned", turned);
  feed.write("y", y);
}

// After each of two steps.
std::vector<Outputs> outputsOf(const Case& c) {
  Graph g;
  const Tensor loss = build(g, c);
  const absl::StatusOr<Program> program = compile(g, loss, optim::Sgd{.lr = 0.1}, c.options);
  if (!program.ok()) {
    ADD_FAILURE() << program.status();
    return {};
  }
  Trainer trainer(*program, {.threadsPerRank = 1, .progress = false});
  std::vector<Outputs> steps(2);
  for (Outputs& outputs : steps) {
    const absl::Status status = trainer.fit(1, [&](int64_t, Feed& inputs) { feed(c, inputs); });
    if (!status.ok()) {
      ADD_FAILURE() << status;
      return {};
    }
    for (const plan::NamedTensor& tensor : trainer.executor().plan().tensors()) {
      if (tensor.kind() == plan::TENSOR_OUTPUT) {
        outputs[tensor.name()] = numbersOf(trainer.executor(), tensor.name());
      }
    }
  }
  return steps;
}

class OutputsTest : public ::testing::TestWithParam<Case> {};

// Sums of at most 24 x 3 x 5 terms of size 1 in f64, in another order, after one update: 1e-12 is a thousand roundings.
TEST_P(OutputsTest, AreThoseOfOneRank) {
  const std::vector<Outputs> expected = outputsOf({"one", GetParam().batch, GetParam().stages});
  const std::vector<Outputs> actual = outputsOf(GetParam());
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t step = 0; step < expected.size(); ++step) {
    ASSERT_EQ(expected[step].size(), 27U);
    ASSERT_EQ(actual[step].size(), expected[step].size());
    for (const auto& [name, values] : expected[step]) {
      SCOPED_TRACE(name + " of step " + std::to_string(step));
      const std::vector<double>& given = actual[step].at(name);
      ASSERT_EQ(given.size(), values.size());
      for (size_t i = 0; i < values.size(); ++i) {
        ASSERT_NEAR(given[i], values[i], 1e-12 * (1 + std::abs(values[i]))) << "element " << i;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Layouts, OutputsTest,
    ::testing::Values(
        Case{"dp2", 24, 1, {.mesh = "dp=2"}}, Case{"dp3_padded", 13, 1, {.mesh = "dp=3"}},
        Case{"micro4", 24, 1, {.micro = 4}}, Case{"micro5_padded", 24, 1, {.micro = 5}},
        Case{"dp2_micro4", 24, 1, {.mesh = "dp=2", .micro = 4}},
        Case{"dp3_micro4_padded", 13, 1, {.mesh = "dp=3", .micro = 4}},
        Case{"dp2_micro3_zero3", 24, 1, {.mesh = "dp=2", .micro = 3, .zero = 3}},
        Case{"line4_micro2", 24, 1, {.devices = 4, .micro = 2}},
        Case{"recompute_micro4", 24, 1, {.micro = 4, .recompute = "full"}},
        Case{"layouts_tp2_micro2", 24, 1, {.mode = Mode::kLayouts, .mesh = "dp=2,tp=2", .micro = 2}},
        Case{"auto4", 24, 1, {.mode = Mode::kAuto, .devices = 4}},
        Case{"stages2_1f1b_micro4", 24, 2, {.micro = 4, .schedule = "1f1b"}},
        Case{"stages2_gpipe_dp2_micro2", 24, 2, {.mesh = "dp=2", .micro = 2, .schedule = "gpipe"}},
        Case{"stages2_zb_h1_micro4", 24, 2, {.micro = 4, .schedule = "zb_h1"}},
        Case{"stages4_interleaved_micro4", 24, 4, {.micro = 4, .schedule = "interleaved", .virtualStages = 2}},
        Case{"stage_meshes_2_1_micro3", 24, 2, {.stageMeshes = "dp=2;dp=1", .micro = 3, .schedule = "1f1b"}},
        Case{"stage_meshes_1_2_micro4", 24, 2, {.stageMeshes = "dp=1;dp=2", .micro = 4, .schedule = "1f1b"}},
        Case{"stage_meshes_2_tp2_micro2", 24, 2, {.stageMeshes = "dp=2;tp=2", .micro = 2, .schedule = "1f1b"}}),
    [](const auto& info) { return info.param.name; });

// The record of a plan makes the same plan again.
TEST(OutputsTest, SavedDecisionsCollectThemAlike) {
  Case c = {"", 24, 2, {.mesh = "dp=2", .micro = 3}};
  Graph g;
  const Tensor loss = build(g, c);
  const absl::StatusOr<Program> first = compile(g, loss, optim::Sgd{}, c.options);
  ASSERT_TRUE(first.ok()) << first.status();
  c.options.decisions = first->decisions();
  const absl::StatusOr<Program> again = compile(g, loss, optim::Sgd{}, c.options);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_TRUE(google::protobuf::util::MessageDifferencer::Equals(first->plan, again->plan));
  EXPECT_EQ(first->compilations, 1);
}

// What the parts of a mesh cannot put out together says why, at its line.
TEST(OutputsTest, WhatMixesMicroBatchesIsRefused) {
  const auto messageOf = [](const std::function<void(Graph&, const Tensor&)>& use) {
    Graph g;
    const Tensor x = g.input("x", {8, 4});
    const Tensor h = x * g.parameter("w", {4}, Init::ones());
    use(g, h);
    return std::string(compile(g, mean(h * h), optim::Sgd{}, {.micro = 2}).status().message());
  };
  EXPECT_THAT(messageOf([](Graph& g, const Tensor& h) { g.assign(g.state("last", {8, 4}, kF32, 0), h); }),
              HasSubstr("'last' would be replaced by a value that carries the batch, but the step runs in 2 "
                        "micro-batches; reduce it over the batch, or use micro = 1"));
  EXPECT_THAT(messageOf([](Graph& g, const Tensor& h) { g.output("y", sort(h, {.dim = 0}).values); }),
              HasSubstr("needs dimension 's' of the batch whole, but the step runs in 2 micro-batches; use micro = 1"));
  EXPECT_THAT(messageOf([](Graph& g, const Tensor& h) { g.output("y", h - mean(h)); }),
              HasSubstr("needs a value that is known only after all micro-batches"));
  EXPECT_THAT(messageOf([](Graph& g, const Tensor& h) { g.output("y", h - max(h)); }),
              HasSubstr("needs a value that is known only after all micro-batches"));
}

}  // namespace
}  // namespace weft
