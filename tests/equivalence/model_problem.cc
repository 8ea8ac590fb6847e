#include "tests/equivalence/model_problem.h"

#include <chrono>
#include <map>

#include "absl/strings/str_cat.h"
#include "ir/program/program.h"
#include "mlir/IR/MLIRContext.h"
#include "passes/compile.h"
#include "passes/logical/read_module.h"
#include "planner/check_request.h"
#include "planner/cost/bound.h"
#include "planner/explain/plan_summary.h"
#include "planner/search/bounded_plans.h"
#include "runtime/base/status.h"
#include "runtime/plan/statistics.h"

namespace weft::testing {
namespace {

mlir::DialectRegistry weftDialects() {
  mlir::DialectRegistry dialects;
  registerWeftDialects(dialects);
  return dialects;
}

}  // namespace

struct ModelProblem::Module {
  mlir::MLIRContext context{weftDialects(), mlir::MLIRContext::Threading::DISABLED};
  ir::OperatorRegistry registry = ir::OperatorRegistry::builtin();
  PlannerProblem problem = {};
  std::map<std::string, PlanningMemo> memos = {};  // by machine
};

ModelProblem::ModelProblem() : module_(std::make_unique<Module>()) {}
ModelProblem::~ModelProblem() = default;

absl::StatusOr<std::unique_ptr<ModelProblem>> ModelProblem::create(const KnownModel& model, const ModelWords& words) {
  const auto start = std::chrono::steady_clock::now();
  Graph g;
  const Tensor loss = model.build(g, words);
  CompileOptions options;
  options.mesh = words.sequence ? "dp=1,tp=1" : "";
  WEFT_ASSIGN_OR_RETURN(const std::string text, logicalModule(g, loss, optim::AdamW{}, options));
  WEFT_ASSIGN_OR_RETURN(std::unique_ptr<ModelProblem> made, parse(text, model.name));
  made->seconds_ = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return made;
}

absl::StatusOr<std::unique_ptr<ModelProblem>> ModelProblem::parse(const std::string& text, const std::string& name) {
  std::unique_ptr<ModelProblem> made(new ModelProblem());
  WEFT_ASSIGN_OR_RETURN(const mlir::OwningOpRef<mlir::ModuleOp> module, readModule(text, name, made->module_->context));
  WEFT_ASSIGN_OR_RETURN(made->module_->problem, plannerProblem(*module, made->module_->registry));
  WEFT_ASSIGN_OR_RETURN(const std::shared_ptr<const ProgramGraph> graph, made->graph());
  for (const GraphArgument& argument : graph->arguments) {
    if (argument.kind == ArgumentKind::kParameter) {
      made->parameters_.push_back(argument.name);
    }
  }
  return made;
}

const GraphFor& ModelProblem::graphs() const {
  return module_->problem.graphs;
}

absl::StatusOr<Attempt> ModelProblem::predict(const CompileOptions& closed) const {
  WEFT_ASSIGN_OR_RETURN(const std::shared_ptr<const ProgramGraph> program, graph(closed.microBatches()));
  PlanningMemo& memo = module_->memos[closed.machine];
  if (closed.stages.empty()) {
    return predictProgram(*program, closed, {}, &memo);
  }
  ProgramGraph staged = *program;
  for (GraphOperator& op : staged.operators) {
    op.userStage.reset();
  }
  return predictProgram(staged, closed, {}, &memo);
}

int64_t withinPercent(const Attempt& attempt, int64_t percent) {
  const MemorySummary memory = memoryOf(attempt.submeshes);
  const auto scratch = memory.byClass.find(memoryClassName(plan::WORKSPACE));
  const int64_t fixed = scratch == memory.byClass.end() ? 0 : scratch->second;
  return fixed + (memory.peakBytes - fixed) * percent / 100;
}

absl::StatusOr<Picoseconds> boundOfPlansLike(const ProgramGraph& program, const Attempt& attempt,
                                             const std::string& machine) {
  CompileOptions options;
  options.machine = machine;
  options.memoryLimit = attempt.peakBytes;
  const auto shared = std::make_shared<const ProgramGraph>(program);
  ClosedRequest closed = {options, shared, attempt};
  closed.attempt.fits = true;
  WEFT_ASSIGN_OR_RETURN(const BoundedPlans plans, boundedPlans(shared, options, closed, {}));
  WEFT_ASSIGN_OR_RETURN(const Machine priced, machineOf(options));
  return leastTime(program, priced, plans);
}

std::string planText(const Attempt& attempt) {
  const PlanSummary summary = summaryOf(attempt.decisions, {});
  const size_t submeshes = attempt.submeshes.size();
  return absl::StrCat(submeshes > 1 ? absl::StrCat(submeshes, " x ") : "", summary.stages.front().mesh,
                      summary.virtualStages > 1 ? absl::StrCat(", virtual ", summary.virtualStages) : "", ", micro ",
                      summary.microBatches, ", zero ", summary.zero,
                      submeshes > 1 ? absl::StrCat(", ", summary.schedule) : "", ", recomputed ", summary.recompute);
}

}  // namespace weft::testing
