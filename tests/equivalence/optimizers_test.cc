// Optimizers: what three steps make of parameters, against derivations of its own (optimizer_answers.py), on one rank
// and with everything that cuts a parameter, its gradient or its state: data, tensor and pipeline parallelism, ZeRO,
// pads, micro-batches, clipping.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "kernels/kernel.h"
#include "runtime/base/status.h"
#include "runtime/exec/executor.h"
#include "runtime/plan/statistics.h"
#include "tests/equivalence/optimizer_answers.h"
#include "tests/equivalence/training_step.h"

namespace weft::testing {
namespace {

using ::testing::HasSubstr;
using Reals = std::vector<double>;

// --- against derivations ---

// Of three steps, as in optimizer_answers.py.
const std::vector<Reals> kGradientsOfW = {
    {1, -2, 0.5, 3, 0.25, -1}, {-0.5, 1, 2, 1, -3, 0.75}, {0.25, 1.5, -1, -2, 1, 4}};
const std::vector<Reals> kGradientsOfB = {{2, -0.5, 1}, {1, 3, -0.25}, {-4, 0.5, 1.25}};

// sum(w x) + sum(b y): the gradients are the inputs.
std::string linearModule(const std::string& mesh, int zero, const std::string& optimizer) {
  return absl::StrReplaceAll(
      R"mlir(module attributes {dist.mesh = #dist.mesh<"MESH">, nn.options = {zero = ZERO : i64},
                   nn.layouts = [["w", "LAYOUT"]], nn.optimizer = OPTIMIZER} {
  func.func @step(%x: tensor<2x3xf64> {nn.kind = "input", nn.name = "x", nn.batch_dim = -1 : i64},
                  %y: tensor<3xf64> {nn.kind = "input", nn.name = "y", nn.batch_dim = -1 : i64},
                  %w: tensor<2x3xf64> {nn.kind = "parameter", nn.name = "w", nn.init = {distribution = "zeros"}},
                  %b: tensor<3xf64> {nn.kind = "parameter", nn.name = "b", nn.init = {distribution = "zeros"}})
      -> (tensor<f64> {nn.kind = "loss", nn.name = "loss"}) {
    %0 = nn.mul %x, %w : (tensor<2x3xf64>, tensor<2x3xf64>) -> tensor<2x3xf64>
    %1 = nn.sum %0 {dims = array<i64: 0, 1>} : (tensor<2x3xf64>) -> tensor<f64>
    %2 = nn.mul %y, %b : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
    %3 = nn.sum %2 {dims = array<i64: 0>} : (tensor<3xf64>) -> tensor<f64>
    %loss = nn.add %1, %3 : (tensor<f64>, tensor<f64>) -> tensor<f64>
    return %loss : tensor<f64>
  }
})mlir",
      {{"MESH", mesh},
       {"ZERO", absl::StrCat(zero)},
       {"LAYOUT", mesh.find("tp") == std::string::npos ? "[{},{}]" : "[{tp},{}]"},
       {"OPTIMIZER", optimizer}});
}

Reals read(Executor& executor, const std::string& name, size_t count) {
  Reals values(count);
  const absl::StatusOr<std::vector<char>> bytes = executor.readTensor(name);
  EXPECT_TRUE(bytes.ok() && bytes->size() == count * sizeof(double)) << name << " " << bytes.status();
  if (bytes.ok() && bytes->size() == count * sizeof(double)) {
    std::memcpy(values.data(), bytes->data(), bytes->size());
  }
  return values;
}

void expectNear(const Reals& values, const Reals& expected) {
  ASSERT_EQ(values.size(), expected.size());
  for (size_t i = 0; i < values.size(); ++i) {
    // Numbers of size 1 and some hundred roundings.
    EXPECT_NEAR(values[i], expected[i], 1e-13) << "element " << i;
  }
}

void expectAnswer(const OptimizerAnswer& answer, const std::string& mesh, int zero) {
  SCOPED_TRACE(absl::StrCat(answer.name, ", mesh ", mesh, ", zero ", zero));
  absl::StatusOr<plan::Plan> plan = compileText(linearModule(mesh, zero, answer.optimizer));
  ASSERT_TRUE(plan.ok()) << plan.status();
  const KernelRegistry kernels = cpuKernels();
  absl::StatusOr<std::unique_ptr<Executor>> made =
      Executor::create(*std::move(plan), kernels, {.threadsPerRank = 1, .checkFinite = true});
  ASSERT_TRUE(made.ok() && (*made)->runInit().ok()) << made.status();
  Executor& executor = **made;
  const auto write = [&](const std::string& name, const Reals& values) {
    const absl::Status status = executor.writeTensor(name, values.data(), values.size() * sizeof(double));
    EXPECT_TRUE(status.ok()) << status;
  };
  write("w", {0.5, -1, 2, 1.5, -0.25, 1});
  write("b", {1, -2, 0.5});
  for (size_t step = 0; step < kGradientsOfW.size(); ++step) {
    write("x", kGradientsOfW[step]);
    write("y", kGradientsOfB[step]);
    const absl::Status status = executor.runStep();
    ASSERT_TRUE(status.ok()) << status;
  }
  expectNear(read(executor, "w", 6), answer.w);
  expectNear(read(executor, "b", 3), answer.b);
}

// w and b after a step of LAMB from zero.
absl::StatusOr<Reals> stepFromZero(const std::string& mesh, const Reals& x, const Reals& y) {
  WEFT_ASSIGN_OR_RETURN(plan::Plan plan,
                        compileText(linearModule(mesh, 1, R"({kind = "lamb", lr = 0.125, epsilon = 1.0e-14})")));
  const KernelRegistry kernels = cpuKernels();
  WEFT_ASSIGN_OR_RETURN(std::unique_ptr<Executor> executor,
                        Executor::create(std::move(plan), kernels, {.threadsPerRank = 1, .checkFinite = true}));
  WEFT_RETURN_IF_ERROR(executor->runInit());
  WEFT_RETURN_IF_ERROR(executor->writeTensor("x", x.data(), x.size() * sizeof(double)));
  WEFT_RETURN_IF_ERROR(executor->writeTensor("y", y.data(), y.size() * sizeof(double)));
  WEFT_RETURN_IF_ERROR(executor->runStep());
  Reals moved = read(*executor, "w", 6);
  const Reals b = read(*executor, "b", 3);
  moved.insert(moved.end(), b.begin(), b.end());
  return moved;
}

class OptimizerAnswerTest : public ::testing::TestWithParam<OptimizerAnswer> {};

TEST_P(OptimizerAnswerTest, OnOneRankAndOnMany) {
  expectAnswer(GetParam(), "1", 0);
  expectAnswer(GetParam(), "dp=2", 1);
  expectAnswer(GetParam(), "dp=3", 3);
  expectAnswer(GetParam(), "tp=2", 0);
  expectAnswer(GetParam(), "dp=3,tp=2", 2);
}

INSTANTIATE_TEST_SUITE_P(Optimizers, OptimizerAnswerTest, ::testing::ValuesIn(kOptimizerAnswers),
                         [](const auto& info) { return std::string(info.param.name); });

// Where a norm is 0 the ratio of LAMB is 1: the first step is lr sign(g), and nothing where g is 0, too.
TEST(OptimizerAnswer, LambOfZeros) {
  const absl::StatusOr<Reals> moved = stepFromZero("dp=2", {2, -3, 0.5, -4, 8, -1}, {0, 0, 0});
  ASSERT_TRUE(moved.ok()) << moved.status();
  expectNear(*moved, {-0.125, 0.125, -0.125, 0.125, -0.125, 0.125, 0, 0, 0});
}

// --- against one rank ---

struct Arrangement {
  const char* name;
  const char* mesh;
  int zero = 0;
  const char* layouts = "[]";
  bool isStaged = false;
  const char* clip = "0.0";
  const char* stageMeshes = nullptr;
};

constexpr Arrangement kArrangements[] = {
    {"Data", "dp=2"},
    {"Zero1", "dp=2", 1},
    {"Zero2Micro", "dp=2,micro=2", 2},
    {"Zero3Clipped", "dp=4", 3, "[]", false, "0.05"},
    {"Columns", "tp=2", 0, R"([["w1", "[{},{tp}] pad{1:132}"], ["w3", "[{},{},{tp}]"]])"},
    {"RowsAndZero", "dp=2,tp=2", 1, R"([["w1", "[{tp},{}]"], ["w3", "[{},{tp},{}]"]])"},
    {"PaddedColumns", "dp=2,tp=4", 3, R"([["w1", "[{},{tp}]"], ["w2", "[{tp},{}]"]])"},
    {"StagesMicro", "dp=2,micro=4", 0, "[]", true},
    {"StagesZeroClipped", "dp=2,tp=2,micro=2", 2, R"([["w1", "[{},{tp}]"]])", true, "0.05"},
    {"StagesOfUnlikeMeshes", "1", 1, "[]", true, "0.05", "dp=2;dp=4"}};

constexpr const char* kOptimizers[] = {
    R"({kind = "sgd", lr = 0.1, momentum = 0.9, dampening = 0.5, weight_decay = 0.1})",
    R"({kind = "adamw", lr = 0.1, epsilon = 0.01, weight_decay = 0.1,
        groups = [["b*", {weight_decay = 0.0, lr_factor = 0.5}], ["w2", {frozen = true}]]})",
    R"({kind = "adagrad", lr = 0.1, lr_decay = 0.5, epsilon = 0.01, weight_decay = 0.1})",
    R"({kind = "rmsprop", lr = 0.1, epsilon = 0.01, weight_decay = 0.1, momentum = 0.9, centered = true})",
    R"({kind = "rmsprop", lr = 0.1, epsilon = 0.01})",
    R"({kind = "lamb", lr = 0.1, epsilon = 0.01, weight_decay = 0.1})",
    R"({kind = "lion", lr = 0.1, weight_decay = 0.1})",
    R"({kind = "adafactor", lr = 0.1, epsilon = 0.01, weight_decay = 0.1})"};

// A net with a matrix that ZeRO pads (131 columns are more than 16 of each of 4 shards, and divide into nothing), one
// with three dimensions, and vectors.
TrainingProgram net() {
  TrainingProgram program;
  program.parameters = {{"w1", {6, 131}}, {"b1", {131}}, {"w2", {131, 4}}, {"w3", {2, 2, 4}}, {"b3", {4}}};
  program.inputs = {{"x", {8, 6}}};
  program.body = R"(
    %m = nn.matmul %x, %w1 : (tensor<8x6xf64>, tensor<6x131xf64>) -> tensor<8x131xf64>
    %a = nn.add %m, %b1 : (tensor<8x131xf64>, tensor<131xf64>) -> tensor<8x131xf64>
    %t = nn.tanh %a : (tensor<8x131xf64>) -> tensor<8x131xf64>
    %n = nn.matmul %t, %w2 {LATER} : (tensor<8x131xf64>, tensor<131x4xf64>) -> tensor<8x4xf64>
    %u = nn.tanh %n {LATER} : (tensor<8x4xf64>) -> tensor<8x4xf64>
    %r = nn.reshape %u {LATER} : (tensor<8x4xf64>) -> tensor<8x2x2xf64>
    %c = nn.contract %r, %w3 {spec = "m k l, k l n -> m n" LATER_TOO} : (tensor<8x2x2xf64>, tensor<2x2x4xf64>) -> tensor<8x4xf64>
    %y = nn.add %c, %b3 {LATER} : (tensor<8x4xf64>, tensor<4xf64>) -> tensor<8x4xf64>
    %s = nn.mul %y, %y {LATER} : (tensor<8x4xf64>, tensor<8x4xf64>) -> tensor<8x4xf64>
    %loss = nn.mean %s {dims = array<i64: 0, 1>, count = 32 : i64 LATER_TOO} : (tensor<8x4xf64>) -> tensor<f64>)";
  return program;
}

std::string netModule(const Arrangement& on, const std::string& optimizer) {
  TrainingProgram program = net();
  const char* const stage = on.isStaged ? "nn.stage = 1 : i64" : "";
  program.body = absl::StrReplaceAll(program.body, {{"LATER_TOO", on.isStaged ? ", nn.stage = 1 : i64" : ""},
                                                    {"{LATER}", absl::StrCat("{", stage, "}")}});
  return absl::StrReplaceAll(
      moduleText(program, {.mesh = on.mesh, .zero = on.zero, .optimizer = optimizer}),
      {{"nn.options =", on.stageMeshes == nullptr
                            ? "nn.options ="
                            : absl::StrCat("dist.stage_meshes = \"", on.stageMeshes, "\", nn.options =")},
       {"seed = 1 : i64", absl::StrCat("seed = 1 : i64, clip_norm = ", on.clip, " : f64")},
       {"nn.optimizer =", absl::StrCat("nn.layouts = ", on.layouts, ", nn.optimizer =")}});
}

class OptimizerArrangementTest : public ::testing::TestWithParam<Arrangement> {};

TEST_P(OptimizerArrangementTest, GivesTheAnswerOfOneRank) {
  const NamedTensors arguments = randomArguments(net(), 5);
  const Arrangement one = {"One", "1", 0, "[]", false, GetParam().clip};
  for (const std::string optimizer : kOptimizers) {
    SCOPED_TRACE(optimizer);
    absl::StatusOr<plan::Plan> single = compileText(netModule(one, optimizer));
    absl::StatusOr<plan::Plan> several = compileText(netModule(GetParam(), optimizer));
    ASSERT_TRUE(single.ok() && several.ok()) << single.status() << several.status();
    const absl::StatusOr<NamedTensors> expected = runPlan(*std::move(single), arguments, 3);
    const absl::StatusOr<NamedTensors> actual = runPlan(*std::move(several), arguments, 3);
    ASSERT_TRUE(expected.ok() && actual.ok()) << expected.status() << actual.status();
    EXPECT_EQ(difference(*expected, *actual), "");
  }
}

INSTANTIATE_TEST_SUITE_P(Arrangements, OptimizerArrangementTest, ::testing::ValuesIn(kArrangements),
                         [](const auto& info) { return std::string(info.param.name); });

// --- what is stored ---

// Elements of a state on each rank, by name.
std::map<std::string, int64_t> storedElements(const plan::Plan& plan) {
  std::map<std::string, int64_t> elements;
  for (const plan::NamedTensor& tensor : plan.tensors()) {
    if (tensor.kind() == plan::TENSOR_STATE) {
      int64_t most = 0;
      for (const plan::Slice& slice : tensor.slices()) {
        int64_t count = 1;
        for (const int64_t size : slice.valid()) {
          count *= size;
        }
        most = std::max(most, count);
      }
      elements[tensor.name()] = most;
    }
  }
  return elements;
}

// With ZeRO the moments of composed optimizers are split as Adam's; factored ones are vectors of a matrix.
TEST(OptimizerState, IsSplitByZero) {
  const auto stored = [](const char* optimizer) {
    const absl::StatusOr<plan::Plan> plan = compileText(netModule({"Zero1", "dp=2", 1}, optimizer));
    EXPECT_TRUE(plan.ok()) << plan.status();
    return plan.ok() ? storedElements(*plan) : std::map<std::string, int64_t>();
  };
  EXPECT_THAT(stored(R"({kind = "lamb"})"),
              ::testing::IsSupersetOf(std::map<std::string, int64_t>{
                  {"lamb.m.w2", 66 * 4}, {"lamb.v.w2", 66 * 4}, {"lamb.m.b3", 2}, {"lamb.v.w3", 8}}));
  EXPECT_THAT(
      stored(R"({kind = "adafactor"})"),
      ::testing::IsSupersetOf(std::map<std::string, int64_t>{
          {"adafactor.row.w2", 66}, {"adafactor.column.w2", 4}, {"adafactor.row.w3", 4}, {"adafactor.v.b3", 2}}));
}

// Sums over ranks of all parameters together: one collective for the norms of LAMB; for Adafactor one for the means
// over the dimension that is split, one for the mean of these where it is that of the rows, one for sizes of
// directions.
TEST(OptimizerCollectives, AreNoMoreThanPhases) {
  const auto reductions = [](const char* optimizer) {
    const absl::StatusOr<plan::Plan> plan = compileText(netModule({"Zero1", "dp=2", 1}, optimizer));
    EXPECT_TRUE(plan.ok()) << plan.status();
    return plan.ok() ? statisticsOf(*plan).byFunction.at("update")["all_reduce"] : 0;
  };
  EXPECT_EQ(reductions(R"({kind = "lion"})"), 1) << "the loss";
  EXPECT_EQ(reductions(R"({kind = "lamb"})"), 1);
  EXPECT_EQ(reductions(R"({kind = "adafactor"})"), 3);
}

TEST(OptimizerGroups, FrozenParametersHaveNoState) {
  const absl::StatusOr<plan::Plan> plan =
      compileText(netModule({"One", "1"}, R"({kind = "lion", groups = [["w?", {frozen = true}]]})"));
  ASSERT_TRUE(plan.ok()) << plan.status();
  std::vector<std::string> names;
  for (const auto& [name, elements] : storedElements(*plan)) {
    names.push_back(name);
  }
  EXPECT_THAT(names, ::testing::ElementsAre("lion.m.b1", "lion.m.b3", "lr", "step"));
}

TEST(OptimizerGroups, APatternThatMatchesNothingIsRefused) {
  const absl::StatusOr<plan::Plan> plan =
      compileText(netModule({"One", "1"}, R"({kind = "lion", groups = [["b2", {weight_decay = 0.0}]]})"));
  EXPECT_THAT(plan.status().message(), HasSubstr("groups: no parameter matches 'b2'; the nearest is 'b1'"));
}

}  // namespace
}  // namespace weft::testing
