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
  // Of one stage the program is as it is: the same question as of a plan that was changed into this one.
  const bool isCut = sketch.cut.first.size() > 1;
  if (isCut) {
    question.first = sketch.cut.first;
  }
  if (const absl::StatusOr<ClosedRequest>* known = known_.before.plans.find(question)) {
    return *known;
  }
  const std::shared_ptr<const ProgramGraph> staged =
      isCut ? std::make_shared<const ProgramGraph>(program->onStages(sketch.cut.first)) : program->sharedGraph();
  return ask(std::move(question), staged, sketch.bytePrice);
}

absl::StatusOr<Attempt> PlanPredictions::ofChanged(const std::shared_ptr<const ProgramGraph>& staged,
                                                   const CompileOptions& closed, std::optional<double> bytePrice,
                                                   Picoseconds useless) {
  SearchQuestion question = {staged, closed, bytePrice.value_or(-1)};
  question.useless = useless;
  const absl::StatusOr<ClosedRequest>* known = known_.before.plans.find(question);
  if (known == nullptr) {
    known = &ask(std::move(question), staged, bytePrice);
  }
  return known->ok() ? absl::StatusOr<Attempt>((*known)->attempt) : known->status();
}

const absl::StatusOr<ClosedRequest>& PlanPredictions::ask(SearchQuestion question,
                                                          std::shared_ptr<const ProgramGraph> staged,
                                                          std::optional<double> bytePrice) {
  ++asked_;
  absl::StatusOr<ClosedRequest> made = ClosedRequest{question.closed, std::move(staged), {}, bytePrice};
  absl::StatusOr<Attempt> attempt = predict_(*made->graph, made->request, bytePrice, question.useless);
  if (attempt.ok()) {
    made->attempt = *std::move(attempt);
  } else {
    made = attempt.status();
  }
  return known_.before.plans.keep(std::move(question), std::move(made));
}

}  // namespace weft
