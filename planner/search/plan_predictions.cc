#include "planner/search/plan_predictions.h"

#include <utility>

#include "runtime/base/status.h"

namespace weft {

absl::StatusOr<ClosedRequest> PlanPredictions::of(const Sketch& sketch, Picoseconds useless) {
  WEFT_ASSIGN_OR_RETURN(const BlockProgram* program, sketches_.programFor(sketch.request.microBatches()));
  CompileOptions closed = sketch.request;
  closed.virtualStages = sketch.grid.submeshes > 1 ? sketch.grid.virtualStages : 0;
  SearchQuestion question = {program->sharedGraph(), closed, sketch.bytePrice.value_or(-1)};
  question.useless = useless;
  question.stages = program->stagesOf(sketch.cut.first);
  return ask(std::move(question), sketch.bytePrice, program);
}

absl::StatusOr<ClosedRequest> PlanPredictions::onStages(const ClosedRequest& plan, const BlockProgram& program,
                                                        std::vector<int> stages, Picoseconds useless) {
  SearchQuestion question = {program.sharedGraph(), plan.request, plan.bytePrice.value_or(-1)};
  question.useless = useless;
  question.stages = std::move(stages);
  return ask(std::move(question), plan.bytePrice, &program);
}

absl::StatusOr<Attempt> PlanPredictions::ofChanged(const std::shared_ptr<const ProgramGraph>& staged,
                                                   const CompileOptions& closed, std::optional<double> bytePrice,
                                                   Picoseconds useless) {
  SearchQuestion question = {staged, closed, bytePrice.value_or(-1)};
  question.useless = useless;
  const absl::StatusOr<ClosedRequest>& made = ask(std::move(question), bytePrice, nullptr);
  return made.ok() ? absl::StatusOr<Attempt>(made->attempt) : made.status();
}

const absl::StatusOr<ClosedRequest>& PlanPredictions::ask(SearchQuestion question, std::optional<double> bytePrice,
                                                          const BlockProgram* program) {
  if (const absl::StatusOr<ClosedRequest>* known = known_.before.plans.find(question)) {
    return *known;
  }
  ++asked_;
  absl::StatusOr<ClosedRequest> made = ClosedRequest{question.closed, question.graph, {}, bytePrice};
  if (!question.stages.empty()) {
    made->graph = std::make_shared<const ProgramGraph>(program->withStages(question.stages));
  }
  absl::StatusOr<Attempt> attempt = predict_(*made->graph, made->request, bytePrice, question.useless);
  if (attempt.ok()) {
    made->attempt = *std::move(attempt);
  } else {
    made = attempt.status();
  }
  return known_.before.plans.keep(std::move(question), std::move(made));
}

}  // namespace weft
