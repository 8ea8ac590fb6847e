#include "passes/pipeline.h"

#include "ir/dist/dist.h"
#include "ir/nn/nn.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Transforms/Passes.h"
#include "passes/comm/passes.h"
#include "passes/decide/passes.h"
#include "passes/gates/passes.h"
#include "passes/grad/passes.h"
#include "passes/partition/passes.h"
#include "passes/plan/emit_plan.h"
#include "passes/simplify/passes.h"
#include "passes/support/dump.h"
#include "passes/update/passes.h"

namespace weft {

using namespace mlir;  // NOLINT

namespace {

// How far a module is. Phases of the states before are skipped.
int stateNumber(const std::string& state) {
  return state == "annotated" ? 1 : state == "local" ? 2 : state == "scheduled" ? 3 : 0;
}

// All diagnostics of a run as one text, the user's place first.
class DiagnosticText {
 public:
  explicit DiagnosticText(MLIRContext* context)
      : handler_(context, [this](Diagnostic& diagnostic) {
          add(diagnostic);
          return success();
        }) {}

  const std::string& text() const { return text_; }

 private:
  void add(Diagnostic& diagnostic) {
    if (diagnostic.getSeverity() != DiagnosticSeverity::Error) {
      return;
    }
    llvm::raw_string_ostream stream(text_);
    if (!text_.empty()) {
      stream << "\n";
    }
    if (auto place = diagnostic.getLocation()->findInstanceOf<FileLineColLoc>()) {
      stream << place.getFilename().getValue() << ":" << place.getLine() << ": ";
    }
    stream << "error: " << diagnostic.str();
  }

  std::string text_;
  ScopedDiagnosticHandler handler_;
};

}  // namespace

void registerWeftDialects(DialectRegistry& registry) {
  registry.insert<func::FuncDialect, ir::nn::NnDialect, ir::dist::DistDialect>();
}

void buildPipeline(OpPassManager& manager, const ir::OperatorRegistry& registry, const PipelineOptions& options,
                   const std::string& from) {
  const int state = stateNumber(from);
  if (state < 1) {
    manager.addPass(createVerifyLogicalPass());
    // Before the gradient: what is folded here need not be differentiated.
    manager.addPass(createSimplifyPass());
    if (options.program == "train") {
      // Of the serial program: gradients follow the user's operators, not the collectives.
      manager.addPass(createBuildGradientsPass(registry));
    }
    // After the gradients exist, before layouts: optimizer state takes part in all decisions.
    manager.addPass(createBuildUpdatePass());
    // Everything that chooses stands here; what follows only realises the record.
    manager.addPass(createDecidePass(registry, options.decisions));
    manager.addPass(createInsertReshardsPass());
    manager.addPass(createVerifyAnnotatedPass());
  }
  if (state < 2) {
    // Layouts are known: global tensors become one rank's, reshards become collectives.
    manager.addPass(createLocalizePass());
    manager.addPass(createVerifyLocalPass());
  }
  if (state < 3) {
    // On explicit collectives. (The reshard planner has already made most reduce_scatters; first those that are left,
    // because a bucket has several results.)
    manager.addPass(createFormReduceScatterPass());
    manager.addPass(createFormBucketsPass());
    manager.addPass(createVerifyScheduledPass());
  }
}

absl::StatusOr<plan::Plan> compileModule(ModuleOp module, const ir::OperatorRegistry& registry,
                                         const PipelineOptions& options) {
  DiagnosticText diagnostics(module.getContext());
  PassManager manager(module.getContext());
  auto state = module->getAttrOfType<StringAttr>("dist.state");
  buildPipeline(manager, registry, options, state ? state.getValue().str() : "");
  if (!options.dumpDir.empty()) {
    addDumps(manager, options.dumpDir);
  }
  if (failed(manager.run(module))) {
    return absl::InvalidArgumentError(diagnostics.text());
  }
  absl::StatusOr<plan::Plan> plan = emitPlan(module);
  if (!plan.ok() && !diagnostics.text().empty()) {
    return absl::InvalidArgumentError(diagnostics.text());
  }
  if (plan.ok()) {
    plan->set_program(options.program);
  }
  return plan;
}

}  // namespace weft
