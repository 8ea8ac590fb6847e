#include "planner/explain/predicted_step.h"

#include <memory>
#include <utility>

#include "planner/cost/step_model.h"
#include "planner/graph/rewrites.h"
#include "runtime/base/status.h"

namespace weft {

absl::StatusOr<StepTimes> predictedStep(const ProgramGraph& graph, const Decisions& decisions, const Machine& machine) {
  WEFT_ASSIGN_OR_RETURN(ProgramGraph made, withRewrites(graph, decisions.rewrites));
  WEFT_ASSIGN_OR_RETURN(const std::unique_ptr<StepModel> model,
                        StepModel::create(std::move(made), decisions, machine, {}));
  WEFT_ASSIGN_OR_RETURN(const StepNeeds needs, model->needs(decisions));
  StepTimes step;
  const auto seconds = [](double picoseconds) { return inSeconds(static_cast<Picoseconds>(picoseconds)); };
  step.times.comm = seconds(needs.times.comm);
  for (const schedule::StageTimes& stage : needs.times.stages) {
    schedule::StageTimes& mine = step.times.stages.emplace_back();
    mine = {seconds(stage.f), seconds(stage.i), seconds(stage.w), std::nullopt};
    if (stage.b) {
      mine.b = seconds(*stage.b);
    }
  }
  for (const SubmeshNeeds& submesh : needs.submeshes) {
    step.before.push_back(inSeconds(submesh.before));
    step.after.push_back(inSeconds(submesh.after));
    step.functions.push_back(submesh.functions);
  }
  return step;
}

}  // namespace weft
