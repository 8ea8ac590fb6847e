// Plans from small local modules written by hand: what stands in them, and what running them gives.
#include "passes/plan/emit_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ir/registry.h"
#include "kernels/kernel.h"
#include "passes/compile.h"
#include "runtime/exec/executor.h"
#include "runtime/plan/statistics.h"
#include "tests/support/parse.h"

namespace weft::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Regression on two ranks and two micro-batches: loss = sum over 8 rows of (x - w)^2, gradient -2 sum (x - w). Momentum
// sgd with a constant learning rate. The two sums of @update are separate here; form-buckets joins them.
constexpr char kTrain[] = R"mlir(
module attributes {dist.mesh = #dist.mesh<"dp=2,micro=2">, dist.state = "local",
    dist.rank_table = dense<[[0], [4]]> : tensor<2x1xi64>,
    dist.tensors = [
      {name = "x", kind = "input", value = "x", type = "f32", shape = array<i64: 8, 2>, file_shape = array<i64: 8, 2>,
       offsets = [array<i64: 0, 0>, array<i64: 4, 0>], valid = [array<i64: 4, 2>, array<i64: 4, 2>]},
      {name = "w", kind = "parameter", value = "w", type = "f32", shape = array<i64: 2>, file_shape = array<i64: 2, 1>,
       offsets = [array<i64: 0>, array<i64: 0>], valid = [array<i64: 2>, array<i64: 2>]},
      {name = "m", kind = "state", value = "m", type = "f32", shape = array<i64: 2>, file_shape = array<i64: 2>,
       offsets = [array<i64: 0>, array<i64: 0>], valid = [array<i64: 2>, array<i64: 2>]},
      {name = "loss", kind = "output", value = "out.loss", type = "f32", shape = array<i64>, file_shape = array<i64>,
       offsets = [array<i64>, array<i64>], valid = [array<i64>, array<i64>]},
      {name = "unread", kind = "input", value = "unread", type = "f32", shape = array<i64: 8>, file_shape = array<i64: 8>,
       offsets = [array<i64: 0>, array<i64: 4>], valid = [array<i64: 4>, array<i64: 4>]}]} {
  func.func @init() -> (tensor<2xf32> {dist.value = "w", dist.memory = #dist.memory<parameter>}, tensor<2xf32> {dist.value = "m", dist.memory = #dist.memory<state>})
      attributes {dist.kind = "init"} {
    %w = nn.constant {value = dense<[1.0, -1.0]> : tensor<2xf32>} : () -> tensor<2xf32>
    %m = nn.fill {value = 0.0} : () -> tensor<2xf32>
    return %w, %m : tensor<2xf32>, tensor<2xf32>
  }
  func.func @forward(%x: tensor<4x2xf32> {dist.value = "x", dist.memory = #dist.memory<input>}, %w: tensor<2xf32> {dist.value = "w", dist.memory = #dist.memory<parameter>},
                     %a: tensor<f32> {dist.value = "acc0", dist.memory = #dist.memory<accumulator>})
      -> (tensor<2x2xf32> {dist.value = "v0", dist.memory = #dist.memory<activation>}, tensor<4xf32> {dist.value = "v1", dist.memory = #dist.memory<activation>},
          tensor<f32> {dist.value = "acc0", dist.memory = #dist.memory<accumulator>}) attributes {dist.kind = "forward"} {
    %p = dist.dynamic_slice %x {dist.scalars = [#dist.scalar<0, -1, 2>, #dist.scalar<0, -1, 0>]} : (tensor<4x2xf32>) -> tensor<2x2xf32> loc("model.cc":7:1)
    %d = nn.sub %p, %w {nn.name = "residual"} : (tensor<2x2xf32>, tensor<2xf32>) -> tensor<2x2xf32> loc("model.cc":8:1)
    %r = nn.reshape %d : (tensor<2x2xf32>) -> tensor<4xf32>
    %s = nn.mul %d, %d : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
    %l = nn.sum %s {dims = array<i64: 0, 1>} : (tensor<2x2xf32>) -> tensor<f32>
    %n = dist.accumulate %a, %l {nn.name = "loss", dist.scalars = [#dist.scalar<0, -1, 1>]} : (tensor<f32>, tensor<f32>) -> tensor<f32>
    return %d, %r, %n : tensor<2x2xf32>, tensor<4xf32>, tensor<f32>
  }
  func.func @backward(%d: tensor<2x2xf32> {dist.value = "v0", dist.memory = #dist.memory<activation>}, %r: tensor<4xf32> {dist.value = "v1", dist.memory = #dist.memory<activation>},
                      %a: tensor<2xf32> {dist.value = "acc1", dist.memory = #dist.memory<accumulator>})
      -> (tensor<2xf32> {dist.value = "acc1", dist.memory = #dist.memory<accumulator>}) attributes {dist.kind = "backward"} {
    %c = nn.constant {value = dense<-1.0> : tensor<2x2xf32>} : () -> tensor<2x2xf32>
    %t = nn.mul %d, %c : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
    %b = nn.reshape %r : (tensor<4xf32>) -> tensor<2x2xf32>
    %u = nn.sub %t, %b : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
    %g = nn.sum %u {dims = array<i64: 0>} : (tensor<2x2xf32>) -> tensor<2xf32>
    %n = dist.accumulate %a, %g {nn.name = "residual.grad", dist.scalars = [#dist.scalar<0, -1, 1>]} : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
    return %n : tensor<2xf32>
  }
  func.func @update(%w: tensor<2xf32> {dist.value = "w", dist.memory = #dist.memory<parameter>}, %m: tensor<2xf32> {dist.value = "m", dist.memory = #dist.memory<state>},
                    %g: tensor<2xf32> {dist.value = "acc1", dist.memory = #dist.memory<accumulator>}, %l: tensor<f32> {dist.value = "acc0", dist.memory = #dist.memory<accumulator>})
      -> (tensor<f32> {dist.value = "out.loss", dist.memory = #dist.memory<output>}, tensor<2xf32> {dist.value = "w", dist.memory = #dist.memory<parameter>},
          tensor<2xf32> {dist.value = "m", dist.memory = #dist.memory<state>}) attributes {dist.kind = "update"} {
    %r = dist.all_reduce %g {over = #dist.axes<"{dp}">, reduce = "sum", reason = "w reads", bytes_received = 8 : i64, cost = 1.0, nn.name = "residual.grad"} : (tensor<2xf32>) -> tensor<2xf32> loc("model.cc":8:1)
    %lr = nn.constant {value = dense<0.1> : tensor<f32>} : () -> tensor<f32>
    %p:2 = nn.sgd %w, %r, %m, %lr {momentum = 0.5 : f64, nn.name = "w"} : (tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<f32>) -> (tensor<2xf32>, tensor<2xf32>)
    %s = dist.all_reduce %l {over = #dist.axes<"{dp}">, reduce = "sum", reason = "result 0", bytes_received = 4 : i64, cost = 1.0, nn.name = "loss"} : (tensor<f32>) -> tensor<f32>
    return %s, %p#0, %p#1 : tensor<f32>, tensor<2xf32>, tensor<2xf32>
  }
}
)mlir";

// As the pipeline does from the local state on.
absl::StatusOr<plan::Plan> compileLocal(const std::string& text) {
  Modules modules;
  auto module = modules.parse(text);
  if (!module) {
    return absl::InvalidArgumentError("the text is wrong");
  }
  return compileModule(*module, ir::OperatorRegistry::builtin(), {});
}

std::vector<std::string> instructions(const plan::Plan& plan, const std::string& function) {
  std::vector<std::string> names;
  for (const plan::Function& one : plan.functions()) {
    for (const plan::Instruction& instruction : one.instructions()) {
      if (one.name() == function) {
        names.push_back(instruction.has_collective() ? collectiveKindName(instruction.collective().kind())
                                                     : instruction.kernel());
      }
    }
  }
  return names;
}

int64_t regionBytes(const plan::Plan& plan, plan::MemoryClass memory) {
  for (const plan::Region& region : plan.memory().regions()) {
    if (region.memory() == memory) {
      return region.bytes();
    }
  }
  return 0;
}

TEST(EmitPlan, InstructionsOfTheStep) {
  absl::StatusOr<plan::Plan> plan = compileLocal(kTrain);
  ASSERT_TRUE(plan.ok()) << plan.status();
  // The constant is copied once, at init, and the loss out of its accumulator; all else is written where it is to lie.
  EXPECT_THAT(instructions(*plan, "init"), ElementsAre("fill", "reshape"));
  EXPECT_THAT(instructions(*plan, "forward"), ElementsAre("dynamic_slice", "sub", "mul", "sum", "accumulate"));
  EXPECT_THAT(instructions(*plan, "backward"), ElementsAre("mul", "sub", "sum", "accumulate"));
  EXPECT_THAT(instructions(*plan, "update"), ElementsAre("all_reduce", "sgd", "reshape"));
}

TEST(EmitPlan, MemoryOfTheStep) {
  const plan::Plan plan = *compileLocal(kTrain);
  EXPECT_EQ(regionBytes(plan, plan::PARAMETER), 64);
  EXPECT_EQ(regionBytes(plan, plan::STATE), 64);
  EXPECT_EQ(regionBytes(plan, plan::INPUT), 64);
  EXPECT_EQ(regionBytes(plan, plan::OUTPUT), 64);
  // v0 and its view v1 are one tensor.
  EXPECT_EQ(regionBytes(plan, plan::ACTIVATION), 64);
  EXPECT_EQ(regionBytes(plan, plan::ACCUMULATOR), 128);
  EXPECT_EQ(regionBytes(plan, plan::CONSTANT), 3 * 64);
  int64_t peak = 0;
  for (const plan::Region& region : plan.memory().regions()) {
    EXPECT_GE(region.bytes(), region.max_live());
    peak += region.bytes();
  }
  EXPECT_EQ(plan.memory().peak_bytes(), peak);
}

TEST(EmitPlan, StatisticsAndReasons) {
  const plan::Plan plan = *compileLocal(kTrain);
  const PlanStatistics statistics = statisticsOf(plan);
  ASSERT_EQ(statistics.collectives.size(), 1u);
  EXPECT_EQ(statistics.collectives.at("all_reduce").calls, 1);
  EXPECT_EQ(statistics.collectives.at("all_reduce").tensors, 2);
  EXPECT_EQ(statistics.collectives.at("all_reduce").bytesReceived, 12);
  // Two micro-batches of sub, mul, sum and mul, sub, sum over 4 elements each; sgd 6 x 2.
  EXPECT_EQ(statistics.flops, 2 * 6 * 4 + 12);
  EXPECT_EQ(statistics.peakBytes, plan.memory().peak_bytes());
  const plan::Instruction& bucket = plan.functions(3).instructions(0);
  EXPECT_EQ(bucket.label(), "bucket of 2");
  EXPECT_EQ(bucket.attributes().at("members").text(), "residual.grad, loss");
  EXPECT_EQ(bucket.collective().reason(), "bucket of 2: w reads; result 0");
  EXPECT_EQ(plan.locations(static_cast<int>(bucket.location())).file(), "model.cc");
  EXPECT_EQ(plan.locations(static_cast<int>(bucket.location())).line(), 8);
}

TEST(EmitPlan, NamedTensors) {
  const plan::Plan plan = *compileLocal(kTrain);
  ASSERT_EQ(plan.tensors_size(), 4);  // `unread` has no memory
  EXPECT_EQ(plan.tensors(0).slices(1).offset(0), 4);
  EXPECT_THAT(plan.tensors(1).file_shape(), ElementsAre(2, 1));
  EXPECT_EQ(plan.buffers(static_cast<int>(plan.tensors(0).buffer())).memory(), plan::INPUT);
}

// Two steps on two ranks against the same arithmetic on the whole batch.
TEST(EmitPlan, RunsAndTrains) {
  auto executor = Executor::create(*compileLocal(kTrain), cpuKernels());
  ASSERT_TRUE(executor.ok()) << executor.status();
  ASSERT_TRUE((*executor)->runInit().ok());
  double w[2] = {1.0, -1.0};
  double m[2] = {0.0, 0.0};
  for (int step = 0; step < 2; ++step) {
    std::vector<float> x(16);
    for (int i = 0; i < 16; ++i) {
      x[i] = 0.25f * static_cast<float>((i * 7 + step * 3) % 11) - 1.0f;
    }
    double loss = 0;
    double gradient[2] = {0, 0};
    for (int i = 0; i < 16; ++i) {
      loss += (x[i] - w[i % 2]) * (x[i] - w[i % 2]);
      gradient[i % 2] -= 2 * (x[i] - w[i % 2]);
    }
    ASSERT_TRUE((*executor)->writeTensor("x", x.data(), 64).ok());
    ASSERT_TRUE((*executor)->runStep().ok());
    // Sums of 16 terms of size about 1 in f32: a few units in the last place.
    EXPECT_NEAR(*(*executor)->readScalar("loss"), loss, 1e-4) << "step " << step;
    const std::vector<char> bytes = *(*executor)->readTensor("w");
    for (int i = 0; i < 2; ++i) {
      m[i] = 0.5 * m[i] + gradient[i];
      w[i] -= 0.1 * m[i];
      EXPECT_NEAR(reinterpret_cast<const float*>(bytes.data())[i], w[i], 1e-5) << "step " << step;
    }
  }
}

TEST(EmitPlan, GroupsAreSharedAndPermutesGetAColumn) {
  absl::StatusOr<plan::Plan> plan = compileLocal(R"mlir(
module attributes {dist.mesh = #dist.mesh<"dp=2,tp=2">, dist.state = "local"} {
  func.func @forward(%x: tensor<2xf32> {dist.value = "x", dist.memory = #dist.memory<input>}) -> (tensor<2xf32> {dist.value = "y", dist.memory = #dist.memory<output>}) attributes {dist.kind = "forward"} {
    %0 = dist.permute %x {from = #dist.layout<"[{dp,tp}]">, to = #dist.layout<"[{tp,dp}]">, reason = "swap"} : (tensor<2xf32>) -> tensor<2xf32>
    %1 = dist.all_gather %0 {over = #dist.axes<"{dp}">, dim = 0 : i64} : (tensor<2xf32>) -> tensor<4xf32>
    %2 = dist.permute %1 {from = #dist.layout<"[{dp,tp}]">, to = #dist.layout<"[{tp,dp}]">} : (tensor<4xf32>) -> tensor<4xf32>
    %3 = dist.reduce_scatter %2 {over = #dist.axes<"{dp}">, dim = 0 : i64, reduce = "max"} : (tensor<4xf32>) -> tensor<2xf32>
    return %3 : tensor<2xf32>
  }
})mlir");
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->group_sets_size(), 1);
  EXPECT_EQ(plan->rank_table().columns(), 1);
  EXPECT_THAT(plan->rank_table().values(), ElementsAre(0, 2, 1, 3));
  const auto& list = plan->functions(0).instructions();
  EXPECT_EQ(list[0].collective().source_column(), 0);
  EXPECT_EQ(list[0].collective().reason(), "swap");
  EXPECT_EQ(list[3].collective().reduction(), plan::MAX);
}

TEST(EmitPlan, AttributesScalarsAndConstants) {
  absl::StatusOr<plan::Plan> plan = compileLocal(R"mlir(
module attributes {dist.mesh = #dist.mesh<"dp=2,micro=2">, dist.state = "local", dist.rank_table = dense<[[0, 7], [2, 9]]> : tensor<2x2xi64>} {
  func.func @forward() -> (tensor<2xf32> {dist.value = "y", dist.memory = #dist.memory<output>}, tensor<3xi1> {dist.value = "z", dist.memory = #dist.memory<output>}) attributes {dist.kind = "forward"} {
    %0 = nn.random {distribution = "normal", a = 0.5, b = 2.0, seed = 3, key = 4, global_shape = array<i64: 4>, dist.scalars = [#dist.scalar<5, 1, 6>], nn.name = "noise"} : () -> tensor<2xf32>
    %1 = nn.constant {value = dense<[true, false, true]> : tensor<3xi1>} : () -> tensor<3xi1>
    %2 = nn.constant {value = dense<2> : tensor<3xi64>} : () -> tensor<3xi64>
    return %0, %1 : tensor<2xf32>, tensor<3xi1>
  }
})mlir");
  ASSERT_TRUE(plan.ok()) << plan.status();
  const plan::Instruction& random = plan->functions(0).instructions(0);
  EXPECT_EQ(random.label(), "noise");
  EXPECT_EQ(random.attributes_size(), 6);  // nothing of nn. or dist.
  EXPECT_EQ(random.attributes().at("distribution").text(), "normal");
  EXPECT_EQ(random.attributes().at("a").real(), 0.5);
  EXPECT_EQ(random.attributes().at("seed").integer(), 3);
  EXPECT_THAT(random.attributes().at("global_shape").integers().values(), ElementsAre(4));
  ASSERT_EQ(random.scalars_size(), 1);
  EXPECT_EQ(random.scalars(0).immediate(), 5);
  EXPECT_EQ(random.scalars(0).column(), 1);
  EXPECT_EQ(random.scalars(0).micro_batch_factor(), 6);
  std::vector<std::string> data;
  for (const plan::Buffer& buffer : plan->buffers()) {
    if (buffer.memory() == plan::CONSTANT) {
      data.push_back(buffer.data());
    }
  }
  const std::string two("\2\0\0\0\0\0\0\0", 8);
  EXPECT_THAT(data, ElementsAre(std::string("\1\0\1", 3), two + two + two));
}

TEST(EmitPlan, ScheduleOfOneStage) {
  const plan::Plan plan = *compileLocal(kTrain);
  ASSERT_EQ(plan.schedules_size(), 2);
  std::vector<std::string> actions;
  for (const plan::Action& action : plan.schedules(1).step()) {
    actions.push_back(plan.functions(static_cast<int>(action.function())).name() +
                      std::to_string(action.micro_batch()));
  }
  EXPECT_THAT(actions, ElementsAre("forward0", "backward0", "forward1", "backward1", "update0"));
  EXPECT_EQ(plan.schedules(0).init_size(), 1);
}

TEST(EmitPlan, RefusesWhatIsNotLocal) {
  absl::StatusOr<plan::Plan> plan = compileLocal(
      R"(module attributes {dist.mesh = #dist.mesh<"dp=2">, dist.state = "local"} { func.func @step() { return } })");
  ASSERT_FALSE(plan.ok());
  EXPECT_THAT(std::string(plan.status().message()), HasSubstr("@step is no function of the local state"));
}

}  // namespace
}  // namespace weft::testing
