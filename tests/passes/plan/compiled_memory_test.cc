// Whole compilations of a small model: the plan's memory against the byte oracle, and the collectives it should have.
#include <gtest/gtest.h>

#include "ir/registry.h"
#include "passes/compile.h"
#include "passes/pipeline.h"
#include "runtime/plan/plan_file.h"
#include "runtime/plan/statistics.h"
#include "tests/passes/plan/memory_oracle.h"
#include "tests/passes/plan/planned.h"
#include "tests/support/parse.h"

namespace weft::testing {
namespace {

// Two layers, a bias, gelu, cross entropy, AdamW; the first layer split by columns and the second by rows over tp, if
// there is one. 18 rows divide among dp = 3 and are padded elsewhere.
std::string model(const std::string& mesh, int zero) {
  const std::string dp = mesh.find("dp") != std::string::npos ? "dp" : "";
  const bool tp = mesh.find("tp") != std::string::npos;
  const std::string first = tp ? ", nn.strategy = {in = [[\"" + dp + "\", \"\"], [\"\", \"tp\"]]}" : "";
  const std::string second = tp ? ", nn.strategy = {in = [[\"" + dp + "\", \"tp\"], [\"tp\", \"\"]]}" : "";
  return "module attributes {dist.mesh = #dist.mesh<\"" + mesh + "\">, nn.options = {zero = " + std::to_string(zero) +
         " : i64}, nn.optimizer = {kind = \"adamw\", lr = 0.01, beta1 = 0.9, beta2 = 0.99, epsilon = 1.0e-8, "
         "weight_decay = 0.1}} {\n" +
         R"mlir(
func.func @step(%x: tensor<18x8xf32> {nn.kind = "input", nn.name = "x"}, %y: tensor<18xi32> {nn.kind = "input", nn.name = "y"},
   %w1: tensor<8x12xf32> {nn.kind = "parameter", nn.name = "w1", nn.init = {distribution = "normal", a = 0.0, b = 0.1}},
   %b1: tensor<12xf32> {nn.kind = "parameter", nn.name = "b1", nn.init = {distribution = "zeros", a = 0.0, b = 0.0}},
   %w2: tensor<12x10xf32> {nn.kind = "parameter", nn.name = "w2", nn.init = {distribution = "normal", a = 0.0, b = 0.1}})
    -> (tensor<f32> {nn.kind = "loss", nn.name = "loss"}) {
  %0 = nn.matmul %x, %w1 {nn.name = "fc1")mlir" +
         first + R"mlir(} : (tensor<18x8xf32>, tensor<8x12xf32>) -> tensor<18x12xf32>
  %1 = nn.add %0, %b1 {nn.name = "fc1.bias"} : (tensor<18x12xf32>, tensor<12xf32>) -> tensor<18x12xf32>
  %2 = nn.gelu %1 : (tensor<18x12xf32>) -> tensor<18x12xf32>
  %3 = nn.matmul %2, %w2 {nn.name = "fc2")mlir" +
         second + R"mlir(} : (tensor<18x12xf32>, tensor<12x10xf32>) -> tensor<18x10xf32>
  %4, %5 = nn.softmax_cross_entropy %3, %y {rows = 10 : i64, ignore_index = -100 : i64} : (tensor<18x10xf32>, tensor<18xi32>) -> (tensor<18xf32>, tensor<18xf32>)
  %6 = nn.mean %4 {dims = array<i64: 0>, count = 18 : i64, keep_dims = false} : (tensor<18xf32>) -> tensor<f32>
  return %6 : tensor<f32>
}
})mlir";
}

class CompiledMemory : public ::testing::TestWithParam<std::tuple<std::string, int>> {};

TEST_P(CompiledMemory, HoldsWhatTheProgramSays) {
  const auto& [mesh, zero] = GetParam();
  Modules modules;
  auto module = modules.parse(model(mesh, zero));
  ASSERT_TRUE(module);
  mlir::PassManager manager(module->getContext());
  ASSERT_TRUE(buildPipeline(manager, ir::OperatorRegistry::builtin(), {.until = "form-buckets"}).ok());
  ASSERT_TRUE(mlir::succeeded(manager.run(*module)));
  uniqueNames(*module);
  const absl::StatusOr<plan::Plan> plan = planned(*module);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(compareMemory(*module, *plan, 3), "");
}

INSTANTIATE_TEST_SUITE_P(Meshes, CompiledMemory,
                         ::testing::Combine(::testing::Values("dp=1", "dp=3", "dp=4", "dp=3,micro=3", "tp=2",
                                                              "dp=2,tp=2,micro=2"),
                                            ::testing::Values(0, 1, 2, 3)));

TEST(CompiledCollectives, DataParallelReducesOnce) {
  for (const std::string mesh : {"dp=3", "dp=3,micro=3"}) {
    Modules modules;
    auto module = modules.parse(model(mesh, 0));
    absl::StatusOr<plan::Plan> plan = compileModule(*module, ir::OperatorRegistry::builtin(), {});
    ASSERT_TRUE(plan.ok()) << plan.status();
    const PlanStatistics statistics = statisticsOf(*plan);
    ASSERT_EQ(statistics.collectives.size(), 1u) << mesh;
    const CollectiveCount& reduce = statistics.collectives.at("all_reduce");
    EXPECT_EQ(reduce.calls, 1) << mesh;
    // Three gradients and the loss; ring: 2 (n-1)/n of 8x12 + 12 + 12x10 + 1 floats, each tensor rounded to a byte.
    EXPECT_EQ(reduce.tensors, 4);
    EXPECT_NEAR(static_cast<double>(reduce.bytesReceived), 229 * 4 * 4.0 / 3, 4) << mesh;
  }
}

// Parameters, state and accumulators are written where they lie; only the loss, a scalar of the bucket, is copied out.
TEST(CompiledCollectives, StepCopiesOnlyTheLoss) {
  Modules modules;
  auto module = modules.parse(model("dp=3,micro=3", 0));
  const plan::Plan plan = *compileModule(*module, ir::OperatorRegistry::builtin(), {});
  for (const plan::Function& function : plan.functions()) {
    for (const plan::Instruction& instruction : function.instructions()) {
      EXPECT_FALSE(function.kind() != plan::INIT && instruction.kernel() == "reshape" &&
                   instruction.label() != "copy to out.loss")
          << "@" << function.name() << ": " << instruction.label();
    }
  }
}

TEST(CompiledCollectives, SameBytesTwice) {
  std::string bytes[2];
  for (std::string& one : bytes) {
    Modules modules;
    auto module = modules.parse(model("dp=2,tp=2,micro=2", 2));
    one = *serializePlan(*compileModule(*module, ir::OperatorRegistry::builtin(), {}));
  }
  EXPECT_EQ(bytes[0], bytes[1]);
}

}  // namespace
}  // namespace weft::testing
