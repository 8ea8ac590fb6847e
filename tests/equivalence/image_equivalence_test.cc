// N ranks give the one-rank answer: a small convolutional network with batch norm and both poolings, with random
// strategies on 2, 3, 4, 6 and 8 ranks, with ZeRO, stages, micro-batches, recomputation and a batch that does not
// divide. Also the values of batch norm against its definition.
//
//   weft_image_equivalence_test              seeds 1 to 24
//   weft_image_equivalence_test --all        seeds 1 to 300
//   weft_image_equivalence_test --seed=17    one seed, its module on the standard output

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <iostream>
#include <numeric>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "runtime/base/status.h"
#include "tests/equivalence/random_graph.h"
#include "tests/support/seeds.h"
#include "weft/weft.h"

namespace weft::testing {

SeedRange seeds = {1, 24};

namespace {

constexpr int64_t kClasses = 6;

struct NetForm {
  int64_t batch = 22;
  bool batchNorm = true;
  // The micro-batches over which batch norm takes its statistics, written out with slices: each block of rows, one for
  // each data-parallel part, is cut into `microBatches`. 1 x 1: as the graph has it.
  int64_t blocks = 1;
  int64_t microBatches = 1;
};

// Batch norm of each micro-batch by itself, in one step on one device.
Tensor normOfMicroBatches(const NetForm& form, const nn::BatchNorm2d& norm, const Tensor& x) {
  if (form.blocks * form.microBatches == 1) {
    return norm(x);
  }
  const int64_t rows = form.batch / (form.blocks * form.microBatches);
  const auto part = [&](const Tensor& whole, int64_t first) {
    Shape sizes = whole.shape();
    sizes[0] = rows;
    return slice(whole, {first * rows, 0, 0, 0}, sizes);
  };
  std::vector<Tensor> parts(form.blocks * form.microBatches);
  for (int64_t p = 0; p < form.microBatches; ++p) {
    std::vector<Tensor> microBatch;
    for (int64_t b = 0; b < form.blocks; ++b) {
      microBatch.push_back(part(x, b * form.microBatches + p));
    }
    const Tensor normed = batchNorm(concat(microBatch, 0), norm.weight, norm.bias);
    for (int64_t b = 0; b < form.blocks; ++b) {
      parts[b * form.microBatches + p] = part(normed, b);
    }
  }
  return concat(parts, 0);
}

// convolution, norm, relu, max pooling; convolution with stride, relu, average pooling; a linear layer.
absl::StatusOr<std::string> netModule(const NetForm& form, const CompileOptions& options) {
  Graph g;
  const Tensor x = g.input("x", {form.batch, 3, 10, 9});
  const Tensor y = g.input("y", {form.batch}, kI32);
  Tensor h = nn::Conv2d(g, "conv1", 3, 12, 3, {.padding = 1, .bias = !form.batchNorm})(x);
  if (form.batchNorm) {
    h = normOfMicroBatches(form, nn::BatchNorm2d(g, "norm1", 12), h);
  }
  h = nn::MaxPool2d(3, {.stride = 2, .padding = 1})(relu(h));
  h = relu(nn::Conv2d(g, "conv2", 12, 8, 3, {.stride = 2, .padding = 1})(h));
  h = nn::AvgPool2d(2, {.stride = 1})(h);
  h = reshape(h, {form.batch, 8 * 2 * 2});
  const Tensor logits = nn::Linear(g, "fc", 8 * 2 * 2, kClasses, {.init = Init::normal(0.2)})(h);
  const Tensor loss = mean(softmaxCrossEntropy(logits, y));
  WEFT_ASSIGN_OR_RETURN(const std::string text,
                        logicalModule(g, loss, optim::AdamW{.lr = 0.1, .epsilon = 0.01}, options));
  // Over f64, so that only wrong sums differ by more than rounding.
  return absl::StrReplaceAll(text, {{"f32", "f64"}});
}

NamedTensors netArguments(const plan::Plan& plan, uint64_t seed) {
  std::mt19937_64 generator(seed);
  NamedTensors arguments;
  for (const plan::NamedTensor& tensor : plan.tensors()) {
    const std::vector<int64_t> shape(tensor.shape().begin(), tensor.shape().end());
    if (tensor.name() == "y") {
      HostTensor value(DType::kI32, shape);
      for (int64_t i = 0; i < value.elements(); ++i) {
        value.data<int32_t>()[i] = static_cast<int32_t>(generator() % kClasses);
      }
      arguments[tensor.name()] = std::move(value);
    } else if (tensor.kind() == plan::TENSOR_INPUT || tensor.kind() == plan::TENSOR_PARAMETER) {
      HostTensor value(DType::kF64, shape);
      for (int64_t i = 0; i < value.elements(); ++i) {
        value.data<double>()[i] = 0.8 * static_cast<double>(generator() >> 11) * 0x1p-53 - 0.3;
      }
      arguments[tensor.name()] = std::move(value);
    }
  }
  return arguments;
}

// The one-rank answer, and the arguments it was made with.
struct Expected {
  NamedTensors arguments;
  NamedTensors answer;
  // Not moved by norms that are written out; RunningStatisticsFollowEachMicroBatch compares them.
  std::vector<std::string> unknown = {};
};

absl::StatusOr<Expected> oneRank(const NetForm& form, uint64_t seed) {
  CompileOptions options;
  options.gradientOutputs = true;
  WEFT_ASSIGN_OR_RETURN(const std::string text, netModule(form, options));
  WEFT_ASSIGN_OR_RETURN(plan::Plan plan, compileText(text));
  Expected expected;
  expected.arguments = netArguments(plan, seed);
  WEFT_ASSIGN_OR_RETURN(expected.answer, runPlan(std::move(plan), expected.arguments));
  if (form.blocks * form.microBatches > 1) {
    expected.unknown = {"norm1.running_mean", "norm1.running_var"};
    for (const std::string& name : expected.unknown) {
      expected.answer.erase(name);
    }
  }
  return expected;
}

void expectOneRankAnswer(plan::Plan plan, const Expected& expected) {
  absl::StatusOr<NamedTensors> many = runPlan(std::move(plan), expected.arguments);
  ASSERT_TRUE(many.ok()) << many.status();
  for (const std::string& name : expected.unknown) {
    many->erase(name);
  }
  EXPECT_EQ(difference(expected.answer, *many), "");
}

void expectOneRankAnswer(const std::string& text, const Expected& expected) {
  absl::StatusOr<plan::Plan> plan = compileText(text);
  ASSERT_TRUE(plan.ok()) << plan.status();
  expectOneRankAnswer(*std::move(plan), expected);
}

// Batches of 5 and 7 are padded to the next multiple; what lies in the padded rows counts in no statistic.
TEST(ImageEquivalenceTest, BatchesThatDoNotDivide) {
  for (const int64_t batch : {4, 5, 7}) {
    const absl::StatusOr<Expected> expected = oneRank({.batch = batch}, 1);
    ASSERT_TRUE(expected.ok()) << expected.status();
    ASSERT_EQ(expected->answer.count("grad.norm1.weight") + expected->answer.count("grad.conv1.weight"), 2U);
    for (const char* mesh : {"dp=2", "dp=3", "dp=2,tp=2"}) {
      SCOPED_TRACE(absl::StrCat("batch ", batch, ", mesh ", mesh));
      CompileOptions options;
      options.mesh = mesh;
      options.gradientOutputs = true;
      const absl::StatusOr<std::string> text = netModule({.batch = batch}, options);
      ASSERT_TRUE(text.ok()) << text.status();
      expectOneRankAnswer(*text, *expected);
    }
  }
}

// 12 channels on five ranks, stored as 15, and 8 as 10: the pads reach no statistic and no sum over input channels.
TEST(ImageEquivalenceTest, ChannelsStoredWithAPad) {
  const absl::StatusOr<Expected> expected = oneRank({.batch = 4}, 3);
  ASSERT_TRUE(expected.ok()) << expected.status();
  CompileOptions options;
  options.mesh = "tp=5";
  options.gradientOutputs = true;
  options.layouts = {{"conv1.weight", "[{tp},{},{},{}] pad{0:15}"}, {"conv2.weight", "[{tp},{},{},{}] pad{0:10}"}};
  const absl::StatusOr<std::string> text = netModule({.batch = 4}, options);
  ASSERT_TRUE(text.ok()) << text.status();
  expectOneRankAnswer(*text, *expected);
}

// A window cannot be stored longer than it is.
TEST(ImageEquivalenceTest, PaddedWindowsAreRefused) {
  CompileOptions options;
  options.mesh = "tp=2";
  options.layouts = {{"conv2.weight", "[{},{},{tp},{}] pad{2:4}"}};
  const absl::StatusOr<std::string> text = netModule({.batch = 4}, options);
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_THAT(std::string(compileText(*text).status().message()),
              ::testing::HasSubstr("cannot run on a padded dimension (3 stored as 4)"));
}

// Without batch norm the step may run in micro-batches.
TEST(ImageEquivalenceTest, MicroBatches) {
  const NetForm form = {.batch = 9, .batchNorm = false};
  const absl::StatusOr<Expected> expected = oneRank(form, 2);
  ASSERT_TRUE(expected.ok()) << expected.status();
  for (const char* mesh : {"", "dp=2"}) {
    CompileOptions options;
    options.mesh = mesh;
    options.micro = 2;
    options.gradientOutputs = true;
    const absl::StatusOr<std::string> text = netModule(form, options);
    ASSERT_TRUE(text.ok()) << text.status();
    expectOneRankAnswer(*text, *expected);
  }
}

// With batch norm each micro-batch has statistics of its own, over all ranks.
TEST(ImageEquivalenceTest, BatchNormOfMicroBatches) {
  for (const int64_t blocks : {1, 2}) {
    for (const int64_t microBatches : {2, 3}) {
      const absl::StatusOr<Expected> expected =
          oneRank({.batch = 12, .blocks = blocks, .microBatches = microBatches}, 4);
      ASSERT_TRUE(expected.ok()) << expected.status();
      const std::string data = blocks == 1 ? "" : absl::StrCat("dp=", blocks);
      for (const std::string& mesh : {data, data + (data.empty() ? "tp=2" : ",tp=2")}) {
        for (const int zero : {0, 3}) {
          SCOPED_TRACE(absl::StrCat(microBatches, " micro-batches, mesh ", mesh, ", zero ", zero));
          CompileOptions options;
          options.mesh = mesh;
          options.micro = microBatches;
          options.zero = zero;
          options.gradientOutputs = true;
          const absl::StatusOr<std::string> text = netModule({.batch = 12}, options);
          ASSERT_TRUE(text.ok()) << text.status();
          expectOneRankAnswer(*text, *expected);
        }
      }
    }
  }
}

// In how many blocks of rows lies the batch?
int64_t blocksOfBatch(const plan::Plan& plan) {
  std::set<int64_t> offsets;
  for (const plan::NamedTensor& tensor : plan.tensors()) {
    for (const plan::Slice& slice : tensor.slices()) {
      if (tensor.name() == "x") {
        offsets.insert(slice.offset(0));
      }
    }
  }
  return static_cast<int64_t>(offsets.size());
}

TEST(ImageEquivalenceTest, RandomStrategies) {
  for (uint64_t seed = seeds.first; seed <= seeds.last; ++seed) {
    std::mt19937_64 generator(seed);
    const std::vector<MeshAxis> axes = randomAxes(generator);
    CompileOptions options;
    options.micro = std::vector<int64_t>{1, 1, 2, 3}[generator() % 4];
    NetForm form = {.batch = std::vector<int64_t>{22, 33, 44}[generator() % 3], .batchNorm = generator() % 4 != 0};
    if (options.micro > 1) {
      form.batch = 144;  // divides on all meshes: the parts of a micro-batch are equal
    }
    options.zero = generator() % 2 == 0 ? 0 : static_cast<int>(1 + generator() % 3);
    options.regather = generator() % 2 == 0;
    options.recompute = generator() % 3 == 0 ? "full" : "";
    options.gradientOutputs = true;
    options.mesh = meshText(axes, 1);
    SCOPED_TRACE(absl::StrCat("seed ", seed, ", mesh ", options.mesh, ", zero ", options.zeroLevel(), ", batch ",
                              form.batch, ", micro ", options.microBatches()));
    const absl::StatusOr<std::string> plain = netModule(form, options);
    ASSERT_TRUE(plain.ok()) << plain.status();
    const absl::StatusOr<std::string> text = withRandomStrategies(
        *plain, {axes, options.microBatches(), form.batch, static_cast<int64_t>(1 + generator() % 3), true}, generator);
    ASSERT_TRUE(text.ok()) << text.status();
    if (seeds.isOne()) {
      std::cout << *text << "\n";
    }
    absl::StatusOr<plan::Plan> plan = compileText(*text);
    ASSERT_TRUE(plan.ok()) << plan.status();
    if (options.micro > 1) {
      form.blocks = blocksOfBatch(plan->submeshes_size() > 0 ? plan->submeshes(0) : *plan);
      form.microBatches = options.microBatches();
    }
    const absl::StatusOr<Expected> expected = oneRank(form, seed);
    ASSERT_TRUE(expected.ok()) << expected.status();
    expectOneRankAnswer(*std::move(plan), *expected);
  }
}

// Per channel of x [n, c, h, w]: (x - mean) / sqrt(variance + epsilon) * gamma + beta.
std::vector<double> batchNormOf(const HostTensor& x, const std::vector<double>& gamma,
                                const std::vector<double>& beta) {
  const int64_t channels = x.shape[1];
  const int64_t plane = x.shape[2] * x.shape[3];
  std::vector<double> y(x.elements());
  for (int64_t c = 0; c < channels; ++c) {
    std::vector<int64_t> places;
    for (int64_t i = 0; i < x.elements(); ++i) {
      if (i / plane % channels == c) {
        places.push_back(i);
      }
    }
    double mean = 0;
    double variance = 0;
    for (const int64_t i : places) {
      mean += x.data<double>()[i] / static_cast<double>(places.size());
    }
    for (const int64_t i : places) {
      variance += std::pow(x.data<double>()[i] - mean, 2) / static_cast<double>(places.size());
    }
    for (const int64_t i : places) {
      y[i] = (x.data<double>()[i] - mean) / std::sqrt(variance + 1e-5) * gamma[c] + beta[c];
    }
  }
  return y;
}

// On three ranks, each with two rows, the last of which is padding.
TEST(BatchNormTest, StatisticsOfTheWholeBatchOnAllRanks) {
  Graph g;
  const nn::BatchNorm2d norm(g, "norm", 2);
  const Tensor y = norm(g.input("x", {5, 2, 3, 2}));
  g.output("normed", y);
  CompileOptions options;
  options.mesh = "dp=3";
  const absl::StatusOr<std::string> text = logicalModule(g, mean(y), optim::Sgd{}, options);
  ASSERT_TRUE(text.ok()) << text.status();
  absl::StatusOr<plan::Plan> plan = compileText(absl::StrReplaceAll(*text, {{"f32", "f64"}}));
  ASSERT_TRUE(plan.ok()) << plan.status();
  NamedTensors arguments = netArguments(*plan, 5);
  const std::vector<double> expected =
      batchNormOf(arguments["x"], arguments["norm.weight"].values<double>(), arguments["norm.bias"].values<double>());
  const absl::StatusOr<NamedTensors> results = runPlan(*std::move(plan), arguments);
  ASSERT_TRUE(results.ok()) << results.status();
  // Sums of 30 values below 1, divided by a deviation of about 0.2: 1e-13 is a hundred roundings.
  EXPECT_THAT(results->at("normed").values<double>(), ::testing::Pointwise(::testing::DoubleNear(1e-13), expected));
}

// Mean, and variance of n - 1 degrees of freedom, of channel c of rows `rows` of x [n, c, h, w].
std::pair<double, double> statisticsOf(const HostTensor& x, const std::vector<int64_t>& rows, int64_t c) {
  const int64_t plane = x.shape[2] * x.shape[3];
  std::vector<double> values;
  for (const int64_t row : rows) {
    const double* first = x.data<double>() + (row * x.shape[1] + c) * plane;
    values.insert(values.end(), first, first + plane);
  }
  const auto count = static_cast<double>(values.size());
  const double mean = std::accumulate(values.begin(), values.end(), 0.0) / count;
  const double squares = std::accumulate(values.begin(), values.end(), 0.0, [&](double sum, double value) {
    return sum + (value - mean) * (value - mean);
  });
  return {mean, squares / (count - 1)};
}

// Each micro-batch moves the running statistics once, in order. 7 rows are stored as 8: the last micro-batch has one
// row less. On two ranks 12 rows lie in two blocks, and a micro-batch takes a third of each.
TEST(BatchNormTest, RunningStatisticsFollowEachMicroBatch) {
  struct Case {
    int64_t batch;
    std::string mesh;
    int64_t micro;
    std::vector<std::vector<int64_t>> rows;  // of each micro-batch
  };
  const std::vector<Case> cases = {{6, "", 1, {{0, 1, 2, 3, 4, 5}}},
                                   {7, "", 4, {{0, 1}, {2, 3}, {4, 5}, {6}}},
                                   {12, "dp=2", 3, {{0, 1, 6, 7}, {2, 3, 8, 9}, {4, 5, 10, 11}}}};
  for (const Case& test : cases) {
    SCOPED_TRACE(absl::StrCat("batch ", test.batch, ", mesh ", test.mesh, ", micro ", test.micro));
    Graph g;
    const nn::BatchNorm2d norm(g, "norm", 2, {.momentum = 0.3});
    const Tensor y = norm(g.input("x", {test.batch, 2, 3, 2}));
    CompileOptions options;
    options.mesh = test.mesh;
    options.micro = test.micro;
    const absl::StatusOr<std::string> text = logicalModule(g, mean(mul(y, y)), optim::Sgd{}, options);
    ASSERT_TRUE(text.ok()) << text.status();
    absl::StatusOr<plan::Plan> plan = compileText(absl::StrReplaceAll(*text, {{"f32", "f64"}}));
    ASSERT_TRUE(plan.ok()) << plan.status();
    NamedTensors arguments = netArguments(*plan, 8);
    const absl::StatusOr<NamedTensors> results = runPlan(*std::move(plan), arguments);
    ASSERT_TRUE(results.ok()) << results.status();
    for (int64_t c = 0; c < 2; ++c) {
      double expectedMean = 0;
      double expectedVariance = 1;
      for (const std::vector<int64_t>& rows : test.rows) {
        const auto [mean, variance] = statisticsOf(arguments["x"], rows, c);
        expectedMean = 0.7 * expectedMean + 0.3 * mean;
        expectedVariance = 0.7 * expectedVariance + 0.3 * variance;
      }
      // A few dozen roundings of values near 1.
      EXPECT_NEAR(results->at("norm.running_mean").values<double>()[c], expectedMean, 1e-14);
      EXPECT_NEAR(results->at("norm.running_var").values<double>()[c], expectedVariance, 1e-14);
    }
  }
}

// An evaluating program normalizes with the statistics that training left, and changes nothing.
TEST(BatchNormTest, EvaluationUsesTheRunningStatistics) {
  const auto build = [](Graph& g, bool training) {
    const Tensor x = g.input("x", {8, 2, 2, 2});
    const Tensor y = nn::BatchNorm2d(g, "norm", 2, {.training = training})(x);
    g.output("normed", y);
    return mean(mul(y, y));
  };
  Graph training;
  const Tensor loss = build(training, true);
  const absl::StatusOr<Program> program = compile(training, loss, optim::Sgd{.lr = 0.5});
  ASSERT_TRUE(program.ok()) << program.status();
  Graph evaluating;
  const Tensor evaluated = build(evaluating, false);
  const absl::StatusOr<Program> forward = compileForward(evaluating, evaluated, forwardOptions(*program, {}));
  ASSERT_TRUE(forward.ok()) << forward.status();
  Trainer trainer(*program, {.progress = false});
  std::vector<float> x(8 * 2 * 2 * 2);
  for (size_t i = 0; i < x.size(); ++i) {
    x[i] = static_cast<float>(i % 7) + (i / 4 % 2 == 0 ? 0.0F : 10.0F);
  }
  ASSERT_TRUE(trainer.fit(30, [&](int64_t, Feed& feed) { feed.write("x", x); }).ok());
  const auto valuesOf = [&](const char* name) {
    const absl::StatusOr<std::vector<char>> bytes = trainer.executor().readTensor(name);
    EXPECT_TRUE(bytes.ok()) << bytes.status();
    const auto* values = reinterpret_cast<const float*>(bytes->data());
    return std::vector<float>(values, values + bytes->size() / sizeof(float));
  };
  const std::vector<float> meanBefore = valuesOf("norm.running_mean");
  absl::StatusOr<Executor*> executor = trainer.forward(*forward);
  ASSERT_TRUE(executor.ok()) << executor.status();
  Feed feed(**executor);
  feed.write("x", x);
  ASSERT_TRUE(feed.status().ok() && (*executor)->runStep().ok());
  const absl::StatusOr<std::vector<char>> bytes = (*executor)->readTensor("normed");
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  const auto* normed = reinterpret_cast<const float*>(bytes->data());
  const std::vector<float> variance = valuesOf("norm.running_var");
  const std::vector<float> gamma = valuesOf("norm.weight");
  const std::vector<float> beta = valuesOf("norm.bias");
  for (size_t i = 0; i < x.size(); ++i) {
    const size_t c = i / 4 % 2;
    const double expected = (x[i] - meanBefore[c]) / std::sqrt(variance[c] + 1e-5) * gamma[c] + beta[c];
    EXPECT_NEAR(normed[i], expected, 1e-5);  // values below 3, a few roundings of values below 20
  }
  EXPECT_EQ(valuesOf("norm.running_mean"), meanBefore);
  // And they travel with a file of everything.
  const std::string path = ::testing::TempDir() + "/weft_running_statistics.safetensors";
  ASSERT_TRUE(trainer.save(path, Saved::kAll).ok());
  Trainer other(*program, {.progress = false});
  ASSERT_TRUE(other.load(path, Saved::kAll).ok());
  const absl::StatusOr<std::vector<char>> read = other.executor().readTensor("norm.running_mean");
  const absl::StatusOr<std::vector<char>> wrote = trainer.executor().readTensor("norm.running_mean");
  ASSERT_TRUE(read.ok() && wrote.ok());
  EXPECT_EQ(*read, *wrote);
}

TEST(BatchNormTest, AMicroBatchWithoutRowsIsRefused) {
  Graph g;
  const Tensor y = nn::BatchNorm2d(g, "norm", 2)(g.input("x", {5, 2, 3, 2}));
  CompileOptions options;
  options.micro = 4;
  const absl::Status status = compile(g, mean(y), optim::Sgd{}, options).status();
  EXPECT_THAT(std::string(status.message()), ::testing::HasSubstr("5 rows in 4 micro-batches"));
}

TEST(BatchNormTest, WrongShapesNameAllThree) {
  Graph g;
  const Tensor x = g.input("x", {4, 3, 2, 2});
  batchNorm(x, g.parameter("gamma", {3}), g.parameter("beta", {4}));
  EXPECT_THAT(std::string(g.status().message()), ::testing::HasSubstr("[4,3,2,2] with gamma [3] and beta [4]"));
}

// First values of a convolution: mean 0, deviation sqrt(2 / fan in).
TEST(Conv2dTest, HeNormal) {
  const nn::Conv2dSettings settings;
  ASSERT_FALSE(settings.init.has_value());
  EXPECT_DOUBLE_EQ(nn::heNormal(3 * 5 * 5).b, std::sqrt(2.0 / 75));
  EXPECT_EQ(nn::heNormal(75).distribution, "normal");
}

}  // namespace
}  // namespace weft::testing

int main(int argc, char** argv) {
  return weft::testing::runSeeded(argc, argv, weft::testing::seeds, 300);
}
