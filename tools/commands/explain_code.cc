#include "tools/commands/explain_code.h"

#include <utility>

#include "passes/logical/read_module.h"
#include "planner/explain/plan_words.h"
#include "runtime/base/read_text.h"
#include "runtime/base/status.h"
#include "tools/analysis/plan_code.h"
#include "tools/commands/explain.h"

namespace weft::tools {

absl::StatusOr<std::string> codeOf(const PlannerProblem& problem, const Decisions& decisions) {
  WEFT_ASSIGN_OR_RETURN(const PlanWords words, wordsOf(problem.graphs, problem.request, decisions));
  WEFT_ASSIGN_OR_RETURN(const auto graph, problem.graphs(decisions.mesh.microBatches()));
  return codeOf(words, *graph);
}

absl::StatusOr<std::string> codeOf(const plan::Plan& plan, const std::string& module) {
  WEFT_ASSIGN_OR_RETURN(const Decisions decisions, parseDecisions(plan.decisions()));
  mlir::DialectRegistry dialects;
  registerWeftDialects(dialects);
  mlir::MLIRContext context(dialects, mlir::MLIRContext::Threading::DISABLED);
  WEFT_ASSIGN_OR_RETURN(const std::string text, readText(module));
  WEFT_ASSIGN_OR_RETURN(const mlir::OwningOpRef<mlir::ModuleOp> read, readModule(text, module, context));
  const ir::OperatorRegistry registry = ir::OperatorRegistry::builtin();
  WEFT_ASSIGN_OR_RETURN(PlannerProblem problem, plannerProblem(*read, registry));
  problem.request.machine = plan.machine();
  absl::StatusOr<std::string> code = codeOf(problem, decisions);
  return code.ok() ? std::move(code) : plannerError(*read, code.status());
}

int explainWithCodeCommand(int argc, char** argv) {
  return explainWith(codeOf, argc, argv);
}

}  // namespace weft::tools
