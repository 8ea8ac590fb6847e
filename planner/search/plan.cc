#include "planner/search/plan.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "planner/check_request.h"
#include "planner/derive/derive.h"
#include "planner/derive/placement.h"
#include "planner/search/choose_recompute.h"
#include "planner/search/choose_schedule.h"
#include "runtime/base/status.h"

namespace weft {
namespace {

// The models of one choice of gathers: one for each way in which schedules place stages on submeshes.
class Models {
 public:
  Models(const ProgramGraph& graph, const CompileOptions& request, const Correction& correction, int64_t gatherBytes)
      : graph_(graph), request_(request), correction_(correction), gatherBytes_(gatherBytes) {}

  absl::StatusOr<ScheduledModel> under(const std::optional<ScheduleChoice>& choice) {
    if (!models_.empty()) {
      const auto stages = static_cast<int64_t>(models_.front()->record().schedule.submeshes.size());
      WEFT_ASSIGN_OR_RETURN(ScheduleDecision schedule, scheduleFor(request_, choice, stages, true));
      for (const std::unique_ptr<StepModel>& model : models_) {
        if (model->record().schedule.submeshes == schedule.submeshes) {
          Decisions record = model->record();
          record.schedule = std::move(schedule);
          return ScheduledModel{std::move(record), model.get()};
        }
      }
    }
    ProgramGraph graph = graph_;
    WEFT_ASSIGN_OR_RETURN(Decisions record, deriveDecisions(graph, request_, {choice, gatherBytes_}));
    WEFT_ASSIGN_OR_RETURN(const Machine machine, machineOf(request_));
    WEFT_ASSIGN_OR_RETURN(models_.emplace_back(), StepModel::create(std::move(graph), record, machine, correction_));
    return ScheduledModel{std::move(record), models_.back().get()};
  }

 private:
  const ProgramGraph& graph_;
  const CompileOptions& request_;
  const Correction& correction_;
  int64_t gatherBytes_;
  std::vector<std::unique_ptr<StepModel>> models_;
};

// Of a choice of gathers: the best schedule and recomputation with it.
absl::StatusOr<Attempt> bestWith(int64_t gatherBytes, const ProgramGraph& graph, const CompileOptions& request,
                                 const Correction& correction) {
  Models models(graph, request, correction, gatherBytes);
  const bool recompute = request.memoryLimit > 0 && request.recompute == "auto";
  WEFT_ASSIGN_OR_RETURN(const ScheduledModel first, models.under(std::nullopt));
  if (request.schedule == "auto" && first.record.schedule.submeshes.size() > 1) {
    return chooseSchedule(request, recompute, [&](const ScheduleChoice& choice) { return models.under(choice); });
  }
  return fitIn(request.memoryLimit, first.record, recompute, *first.model);
}

// Does the request leave anything to be searched? Stages are the user's: they stand in the graph as it is.
absl::StatusOr<bool> isOpen(const ProgramGraph& graph, const CompileOptions& request) {
  if (!graph.trains() || request.memoryLimit > 0) {
    return graph.trains();
  }
  WEFT_ASSIGN_OR_RETURN(const Stages stages, assignStages(GraphView(graph)));
  return request.schedule == "auto" && stages.count > 1;
}

}  // namespace

absl::StatusOr<Attempt> predictProgram(const ProgramGraph& graph, const CompileOptions& request,
                                       const Correction& correction) {
  constexpr int64_t kNoBound = -1;
  WEFT_ASSIGN_OR_RETURN(Attempt best, bestWith(kNoBound, graph, request, correction));
  const bool open = request.memoryLimit > 0 && request.zero >= 3 && !request.regather;
  if (!open || (best.fits && best.decisions.recomputeSummary.empty())) {
    return best;
  }
  const auto keepBetter = [&](Attempt attempt) {
    if (attempt.fits ? !best.fits || attempt.time < best.time : !best.fits && attempt.peakBytes < best.peakBytes) {
      best = std::move(attempt);
    }
  };
  WEFT_ASSIGN_OR_RETURN(Attempt none, bestWith(0, graph, request, correction));
  const int64_t room = request.memoryLimit - none.peakBytes;
  const bool more = none.fits && room > 0;
  keepBetter(std::move(none));
  if (more) {
    WEFT_ASSIGN_OR_RETURN(Attempt some, bestWith(room, graph, request, correction));
    keepBetter(std::move(some));
  }
  return best;
}

absl::StatusOr<Decisions> planProgram(const ProgramGraph& graph, const CompileOptions& request,
                                      const Correction& correction) {
  WEFT_ASSIGN_OR_RETURN(const bool open, isOpen(graph, request));
  if (!open) {
    ProgramGraph derived = graph;
    return deriveDecisions(derived, request, {});
  }
  WEFT_ASSIGN_OR_RETURN(Attempt best, predictProgram(graph, request, correction));
  return std::move(best.decisions);
}

}  // namespace weft
