#include "planner/search/plan.h"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "planner/check_request.h"
#include "planner/cost/bound.h"
#include "planner/derive/derive.h"
#include "planner/derive/placement.h"
#include "planner/search/choose_recompute.h"
#include "planner/search/choose_schedule.h"
#include "planner/search/segment_costs.h"
#include "runtime/base/status.h"

namespace weft {
namespace {

using Pads = std::map<unsigned, Shape>;

// What is derived anew for each of its values: gathers, a price of memory that decides between splits, and pads with
// which splits divide.
struct Choice {
  int64_t gatherBytes = -1;
  double bytePrice = 0;
  Pads pads = {};
};

// The models of one choice: one for each way in which schedules place stages on submeshes.
class Models {
 public:
  Models(const ProgramGraph& graph, const CompileOptions& request, const Correction& correction, const Choice& choice)
      : graph_(graph), request_(request), correction_(correction), choice_(choice) {}

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
    WEFT_ASSIGN_OR_RETURN(
        Derivation derived,
        deriveDecisions(graph, request_, {choice, choice_.gatherBytes, choice_.bytePrice, choice_.pads}));
    WEFT_ASSIGN_OR_RETURN(const Machine machine, machineOf(request_));
    WEFT_ASSIGN_OR_RETURN(models_.emplace_back(),
                          StepModel::create(std::move(graph), derived.decisions, machine, correction_));
    evenPads_ = std::move(derived.evenPads);
    return ScheduledModel{std::move(derived.decisions), models_.back().get()};
  }

  const Pads& evenPads() const { return evenPads_; }

 private:
  const ProgramGraph& graph_;
  const CompileOptions& request_;
  const Correction& correction_;
  const Choice& choice_;
  Pads evenPads_;
  std::vector<std::unique_ptr<StepModel>> models_;
};

struct Best {
  Attempt attempt;
  Pads evenPads;
};

// The best schedule and recomputation of a choice.
absl::StatusOr<Best> bestOf(const Choice& choice, const ProgramGraph& graph, const CompileOptions& request,
                            const Correction& correction) {
  Models models(graph, request, correction, choice);
  const bool recompute = request.memoryLimit > 0 && request.recompute == "auto";
  WEFT_ASSIGN_OR_RETURN(const ScheduledModel first, models.under(std::nullopt));
  if (request.schedule == "auto" && first.record.schedule.submeshes.size() > 1) {
    WEFT_ASSIGN_OR_RETURN(Attempt made, chooseSchedule(request, recompute, [&](const ScheduleChoice& schedule) {
                            return models.under(schedule);
                          }));
    return Best{std::move(made), models.evenPads()};
  }
  WEFT_ASSIGN_OR_RETURN(Attempt made, fitIn(request.memoryLimit, first.record, recompute, *first.model));
  return Best{std::move(made), models.evenPads()};
}

// Does the request leave anything to be searched? Stages are the user's: they stand in the graph as it is.
absl::StatusOr<bool> isOpen(const ProgramGraph& graph, const CompileOptions& request) {
  WEFT_ASSIGN_OR_RETURN(const int64_t memoryLimit, memoryLimitOf(request));
  if (!graph.trains() || memoryLimit > 0) {
    return graph.trains();
  }
  WEFT_ASSIGN_OR_RETURN(const Stages stages, assignStages(GraphView(graph), request.stages));
  return request.schedule == "auto" && stages.count > 1;
}

}  // namespace

GraphFor graphForAll(const ProgramGraph& graph) {
  return [shared = std::make_shared<const ProgramGraph>(graph)](int64_t) { return shared; };
}

namespace {

absl::StatusOr<ClosedRequest> close(const GraphFor& graphs, const CompileOptions& request,
                                    const Correction& correction) {
  const Predict predict = [&](const ProgramGraph& graph, const CompileOptions& closed) {
    return predictProgram(graph, closed, correction);
  };
  if (request.mode == Mode::kAuto) {
    return choosePlan(graphs, request, predict);
  }
  WEFT_ASSIGN_OR_RETURN(const std::shared_ptr<const ProgramGraph> graph, graphs(request.microBatches()));
  return chooseOpen(graph, request, predict);
}

}  // namespace

absl::StatusOr<ClosedRequest> closeRequest(const GraphFor& graphs, const CompileOptions& request,
                                           const Correction& correction) {
  WEFT_ASSIGN_OR_RETURN(ClosedRequest closed, close(graphs, request, correction));
  WEFT_ASSIGN_OR_RETURN(const Machine machine, machineOf(request));
  Decisions& record = closed.attempt.decisions;
  WEFT_ASSIGN_OR_RETURN(record.prediction->bound, leastTime(*closed.graph, machine, record.meshes().ranks()));
  return closed;
}

absl::StatusOr<Attempt> predictProgram(const ProgramGraph& graph, const CompileOptions& asked,
                                       const Correction& correction) {
  CompileOptions request = asked;
  WEFT_ASSIGN_OR_RETURN(request.memoryLimit, memoryLimitOf(asked));
  Choice choice;
  WEFT_ASSIGN_OR_RETURN(Best first, bestOf(choice, graph, request, correction));
  Attempt best = std::move(first.attempt);
  const auto keepBetter = [&](Attempt attempt) {
    const bool better = isBetter(attempt, best);
    if (better) {
      best = std::move(attempt);
    }
    return better;
  };
  if (!first.evenPads.empty()) {
    const Choice padded = {choice.gatherBytes, choice.bytePrice, std::move(first.evenPads)};
    absl::StatusOr<Best> with = bestOf(padded, graph, request, correction);
    if (with.ok() && keepBetter(std::move(with->attempt))) {
      choice = padded;
    }
  }
  const auto isShort = [&] {
    return request.memoryLimit > 0 && (!best.fits || !best.decisions.recomputeSummary.empty());
  };
  if (request.mode != Mode::kSemi && isShort()) {
    const double price = memoryPrice(best.time, request.memoryLimit);
    for (const double factor : kMemoryPrices) {
      const Choice priced = {choice.gatherBytes, factor * price, choice.pads};
      absl::StatusOr<Best> with = bestOf(priced, graph, request, correction);
      if (with.ok() && keepBetter(std::move(with->attempt))) {
        choice = priced;
      }
    }
  }
  const bool open = request.memoryLimit > 0 && request.zeroLevel() >= 3 && !request.regather;
  if (!open || !isShort()) {
    return best;
  }
  choice.gatherBytes = 0;
  WEFT_ASSIGN_OR_RETURN(Best none, bestOf(choice, graph, request, correction));
  const int64_t room = request.memoryLimit - none.attempt.peakBytes;
  const bool more = none.attempt.fits && room > 0;
  keepBetter(std::move(none.attempt));
  if (more) {
    choice.gatherBytes = room;
    WEFT_ASSIGN_OR_RETURN(Best some, bestOf(choice, graph, request, correction));
    keepBetter(std::move(some.attempt));
  }
  return best;
}

absl::StatusOr<Decisions> planProgram(const GraphFor& graphs, const CompileOptions& request,
                                      const Correction& correction) {
  if (leavesOpen(request)) {
    WEFT_ASSIGN_OR_RETURN(ClosedRequest closed, closeRequest(graphs, request, correction));
    return std::move(closed.attempt.decisions);
  }
  WEFT_ASSIGN_OR_RETURN(const std::shared_ptr<const ProgramGraph> graph, graphs(request.microBatches()));
  WEFT_ASSIGN_OR_RETURN(const bool open, isOpen(*graph, request));
  if (!open) {
    ProgramGraph copy = *graph;
    WEFT_ASSIGN_OR_RETURN(Derivation derived, deriveDecisions(copy, request, {}));
    if (derived.evenPads.empty()) {
      return std::move(derived.decisions);
    }
  }
  WEFT_ASSIGN_OR_RETURN(Attempt best, predictProgram(*graph, request, correction));
  return std::move(best.decisions);
}

}  // namespace weft
