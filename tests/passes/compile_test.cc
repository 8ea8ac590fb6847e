// Compiling as a whole: how often the planner is asked.
#include "passes/compile.h"

#include <google/protobuf/util/message_differencer.h>
#include <gtest/gtest.h>

#include "mlir/IR/MLIRContext.h"
#include "passes/logical/read_module.h"

namespace weft::testing {
namespace {

// A step of some layers whose activations need memory.
std::string layersText(int64_t limit) {
  std::string body;
  std::string arguments;
  for (int layer = 0; layer < 4; ++layer) {
    const std::string n = std::to_string(layer);
    arguments += ", %w" + n + ": tensor<16x16xf32> {nn.kind = \"parameter\", nn.name = \"w" + n +
                 "\", nn.init = {distribution = \"normal\", a = 0.0 : f64, b = 1.0 : f64}}";
    body += "  %m" + n + " = nn.matmul " + (layer == 0 ? "%x" : "%h" + std::to_string(layer - 1)) + ", %w" + n +
            " : (tensor<256x16xf32>, tensor<16x16xf32>) -> tensor<256x16xf32>\n  %h" + n + " = nn.gelu %m" + n +
            " : (tensor<256x16xf32>) -> tensor<256x16xf32>\n";
  }
  return "module attributes {dist.mesh = #dist.mesh<\"1\">, nn.optimizer = {kind = \"sgd\", lr = 0.1 : f64}, "
         "nn.options = "
         "{memory_limit = " +
         std::to_string(limit) +
         " : i64, recompute = \"auto\"}} {\nfunc.func @step(%x: tensor<256x16xf32> {nn.kind = \"input\", nn.name = "
         "\"x\"}" +
         arguments + ") -> (tensor<f32> {nn.kind = \"loss\", nn.name = \"loss\"}) {\n" + body +
         "  %loss = nn.sum %h3 {dims = array<i64: 0, 1>, keep_dims = false} : (tensor<256x16xf32>) -> tensor<f32>\n"
         "  return %loss : tensor<f32>\n}\n}";
}

// A planner that is wrong about memory is told by how much, and asked again, until it listens or has been asked often
// enough.
TEST(CompileTest, APredictionThatWasTooLowIsCorrected) {
  mlir::DialectRegistry dialects;
  registerWeftDialects(dialects);
  mlir::MLIRContext context(dialects, mlir::MLIRContext::Threading::DISABLED);
  const ir::OperatorRegistry registry = ir::OperatorRegistry::builtin();
  const auto compiled = [&](int64_t limit, int64_t wrong, CompileReport& report) {
    PipelineOptions options;
    options.correction.bytes = {wrong};
    const absl::StatusOr<mlir::OwningOpRef<mlir::ModuleOp>> module =
        readModule(layersText(limit), "model.mlir", context);
    EXPECT_TRUE(module.ok()) << module.status();
    return compileModule(**module, registry, options, &report);
  };
  CompileReport free, right, low;
  const absl::StatusOr<plan::Plan> all = compiled(1 << 30, 0, free);
  ASSERT_TRUE(all.ok()) << all.status();
  EXPECT_EQ(free.compilations, 1);
  const int64_t limit = all->memory().peak_bytes() - 20'000;
  const absl::StatusOr<plan::Plan> fits = compiled(limit, 0, right);
  ASSERT_TRUE(fits.ok()) << fits.status();
  EXPECT_EQ(right.compilations, 1);
  const absl::StatusOr<plan::Plan> corrected = compiled(limit, -100'000, low);
  ASSERT_TRUE(corrected.ok()) << corrected.status();
  EXPECT_EQ(low.compilations, 2);
  EXPECT_TRUE(google::protobuf::util::MessageDifferencer::Equals(*corrected, *fits));
}

}  // namespace
}  // namespace weft::testing
