// N ranks give the one-rank answer: a small convolutional network with batch norm and both poolings, with random
// strategies on 2, 3, 4, 6 and 8 ranks, with ZeRO and a batch that does not divide. Also the values of batch norm
// against its definition.
//
//   weft_image_equivalence_test              seeds 1 to 24
//   weft_image_equivalence_test --all        seeds 1 to 300
//   weft_image_equivalence_test --seed=17    one seed, its module on the standard output

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <iostream>

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
};

// convolution, norm, relu, max pooling; convolution with stride, relu, average pooling; a linear layer.
absl::StatusOr<std::string> netModule(const NetForm& form, const CompileOptions& options) {
  Graph g;
  const Tensor x = g.input("x", {form.batch, 3, 10, 9});
  const Tensor y = g.input("y", {form.batch}, kI32);
  Tensor h = nn::Conv2d(g, "conv1", 3, 12, 3, {.padding = 1, .bias = !form.batchNorm})(x);
  if (form.batchNorm) {
    h = nn::BatchNorm2d(g, "norm1", 12)(h);
  }
  h = nn::MaxPool2d(3, {.stride = 2, .padding = 1})(relu(h));
  h = relu(nn::Conv2d(g, "conv2", 12, 8, 3, {.stride = 2, .padding = 1})(h));
  h = nn::AvgPool2d(2, {.stride = 1})(h);
  h = reshape(h, {form.batch, 8 * 2 * 2});
  const Tensor logits = nn::Linear(g, "fc", 8 * 2 * 2, kClasses, Init::normal(0.2))(h);
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
};

absl::StatusOr<Expected> oneRank(const NetForm& form, uint64_t seed) {
  CompileOptions options;
  options.gradientOutputs = true;
  WEFT_ASSIGN_OR_RETURN(const std::string text, netModule(form, options));
  WEFT_ASSIGN_OR_RETURN(plan::Plan plan, compileText(text));
  Expected expected;
  expected.arguments = netArguments(plan, seed);
  WEFT_ASSIGN_OR_RETURN(expected.answer, runPlan(std::move(plan), expected.arguments));
  return expected;
}

void expectOneRankAnswer(const std::string& text, const Expected& expected) {
  absl::StatusOr<plan::Plan> plan = compileText(text);
  ASSERT_TRUE(plan.ok()) << plan.status();
  const absl::StatusOr<NamedTensors> many = runPlan(*std::move(plan), expected.arguments);
  ASSERT_TRUE(many.ok()) << many.status();
  EXPECT_EQ(difference(expected.answer, *many), "");
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

// The statistics of a piece are not those of the batch: until a value can belong to one piece this is an error, never
// another answer.
TEST(ImageEquivalenceTest, BatchNormRefusesMicroBatches) {
  CompileOptions options;
  options.micro = 2;
  const absl::StatusOr<std::string> text = netModule({.batch = 8}, options);
  ASSERT_TRUE(text.ok()) << text.status();
  const absl::Status status = compileText(*text).status();
  EXPECT_THAT(std::string(status.message()), ::testing::HasSubstr("micro-batches"));
}

TEST(ImageEquivalenceTest, RandomStrategies) {
  for (uint64_t seed = seeds.first; seed <= seeds.last; ++seed) {
    std::mt19937_64 generator(seed);
    const std::vector<MeshAxis> axes = randomAxes(generator);
    const NetForm form = {.batch = std::vector<int64_t>{22, 33, 44}[generator() % 3],
                          .batchNorm = generator() % 4 != 0};
    CompileOptions options;
    options.zero = generator() % 2 == 0 ? 0 : static_cast<int>(1 + generator() % 3);
    options.regather = generator() % 2 == 0;
    options.gradientOutputs = true;
    options.mesh = meshText(axes, 1);
    SCOPED_TRACE(absl::StrCat("seed ", seed, ", mesh ", options.mesh, ", zero ", options.zero, ", batch ", form.batch));
    const absl::StatusOr<std::string> plain = netModule(form, options);
    ASSERT_TRUE(plain.ok()) << plain.status();
    const absl::StatusOr<std::string> text =
        withRandomStrategies(*plain, {axes, 1, form.batch, static_cast<int64_t>(1 + generator() % 3)}, generator);
    ASSERT_TRUE(text.ok()) << text.status();
    if (seeds.isOne()) {
      std::cout << *text << "\n";
    }
    const absl::StatusOr<Expected> expected = oneRank(form, seed);
    ASSERT_TRUE(expected.ok()) << expected.status();
    expectOneRankAnswer(*text, *expected);
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
