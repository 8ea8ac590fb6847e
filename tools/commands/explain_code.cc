#include "tools/commands/explain_code.h"

#include <iostream>

#include "passes/compile.h"
#include "passes/logical/read_module.h"
#include "planner/explain/plan_words.h"
#include "runtime/base/read_text.h"
#include "runtime/base/status.h"
#include "tools/analysis/plan_code.h"

namespace weft::tools {

absl::Status printPlanAsCode(const plan::Plan& plan, const std::string& module) {
  WEFT_ASSIGN_OR_RETURN(const Decisions decisions, parseDecisions(plan.decisions()));
  mlir::DialectRegistry dialects;
  registerWeftDialects(dialects);
  mlir::MLIRContext context(dialects, mlir::MLIRContext::Threading::DISABLED);
  WEFT_ASSIGN_OR_RETURN(const std::string text, readText(module));
  WEFT_ASSIGN_OR_RETURN(const mlir::OwningOpRef<mlir::ModuleOp> read, readModule(text, module, context));
  const ir::OperatorRegistry registry = ir::OperatorRegistry::builtin();
  WEFT_ASSIGN_OR_RETURN(PlannerProblem problem, plannerProblem(*read, registry));
  problem.request.machine = plan.machine();
  const absl::StatusOr<PlanWords> words = wordsOf(problem.graphs, problem.request, decisions);
  if (!words.ok()) {
    return plannerError(*read, words.status());
  }
  WEFT_ASSIGN_OR_RETURN(const auto graph, problem.graphs(decisions.mesh.microBatches()));
  std::cout << codeOf(*words, *graph);
  return absl::OkStatus();
}

}  // namespace weft::tools
