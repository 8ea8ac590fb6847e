// Modules as text, of every state: what `weft compile` reads.
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"
#include "passes/compile.h"
#include "passes/logical/read_module.h"
#include "runtime/plan/plan_file.h"
#include "tests/fuzz/target.h"
#include "tools/analysis/module_table.h"

namespace weft::fuzz {
namespace {

// A path beside which there can be no file, so that an input decides alone what comes of it.
constexpr char kNowhere[] = "/dev/null/fuzz.mlir";

Outcome run(const std::string& bytes) {
  mlir::DialectRegistry dialects;
  registerWeftDialects(dialects);
  mlir::MLIRContext context(dialects, mlir::MLIRContext::Threading::DISABLED);
  const mlir::ScopedDiagnosticHandler quiet(&context, [](mlir::Diagnostic&) { return mlir::success(); });
  const absl::StatusOr<mlir::OwningOpRef<mlir::ModuleOp>> read = readModule(bytes, kNowhere, context);
  if (!read.ok()) {
    return outcomeOf(read.status());
  }
  mlir::ModuleOp module = **read;
  static_cast<void>(tools::tableOf(module));  // as weft print does; no gate stands before it
  PipelineOptions options;
  options.program = module->hasAttr("nn.optimizer") ? "train" : "evaluate";
  const ir::OperatorRegistry registry = ir::OperatorRegistry::builtin();
  const absl::StatusOr<plan::Plan> plan = compileModule(module, registry, options);
  if (plan.ok()) {
    // What the compiler makes the runtime takes.
    requireOk(validatePlan(*plan), "a compiled plan");
  }
  return outcomeOf(plan.status());
}

}  // namespace

Target irTarget() {
  return {
      "ir", run, nullptr,
      wordsOf("%0|%arg0|@step|@init|tensor<4x8xf32>|tensor<f32>|tensor<?xf32>|tensor<0xf32>|"
              "tensor<4xi32>|f64|i64|bf16|nn.kind|nn.arg|nn.fwd|nn.gradient_of|nn.id|nn.strategy|"
              "nn.name|nn.layouts|nn.options|nn.optimizer|dist.stage|dist.mesh|dist.phase|"
              "dist.decisions|dist.decisions_file|dist.reshard|dist.all_reduce|dist.schedule|distribution|nn.matmul|"
              "nn.relu|nn.add|nn.reduce|nn.contract|nn.slice|nn.pad|nn.concat|nn.reshape|-1 : i64|"
              "9223372036854775807 : i64|\"text\"|[0, 1]|[[1, 2], [2, 1]]|unit|true|3.0 : f64|"
              "dense<0.0>|#dist.layout<\"[{dp},{}]\">|#dist.mesh<\"dp=2\">|{|}|[|]|(|)|->|:|,|="),
      1500};
}

}  // namespace weft::fuzz
