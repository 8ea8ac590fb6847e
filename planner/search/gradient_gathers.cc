#include "planner/search/gradient_gathers.h"

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>
#include <utility>

#include "planner/stage_table.h"
#include "runtime/base/status.h"

namespace weft {
namespace {

// Do several operations of the backward pass read what it gathers there? Whether they are of both halves is known when
// the pass is cut; of one half alone nothing runs twice.
bool isSharedGather(const AnnotatedStep& step, const std::vector<std::vector<int>>& readers, int op,
                    const Prices& prices) {
  const AnnotatedOp& made = step.ops[op];
  if (made.kind != AnnotatedOp::Kind::kReshard || made.place.where != RunsIn::kBackward) {
    return false;
  }
  const int result = made.results[0];
  const auto isHere = [&](int reader) { return step.ops[reader].place == made.place; };
  const auto bytesOf = [&](int value) { return prices.localTensor(step.values[value]).bytes(); };
  return std::count_if(readers[result].begin(), readers[result].end(), isHere) > 1 &&
         bytesOf(result) > bytesOf(made.operands[0]);
}

}  // namespace

absl::StatusOr<std::optional<Decisions>> withGathersAgain(const Decisions& record, StepModel& model) {
  const bool trains = model.view().graph().trains();
  WEFT_ASSIGN_OR_RETURN(const schedule::Table table, stageTable(record.schedule, record.mesh.microBatches(), trains));
  if (record.schedule.submeshes.size() < 2 || !splitsBackward(table)) {
    return std::nullopt;
  }
  const AnnotatedStep& step = model.step();
  const std::vector<std::vector<int>> readers = step.readers();
  Decisions made = record;
  for (int op = 0; op < static_cast<int>(step.ops.size()); ++op) {
    if (!isSharedGather(step, readers, op, model.prices())) {
      continue;
    }
    ReshardDecision entry = reshardEntry(model.view(), record, step, op);
    entry.label = model.view().labelOf(step.values[step.ops[op].results[0]].source);
    entry.recompute = true;
    entry.recomputePrice.bytes = model.prices().localTensor(step.values[step.ops[op].results[0]]).bytes();
    WEFT_ASSIGN_OR_RETURN(entry.recomputePrice.time, model.prices().time(step, step.ops[op]));
    made.reshards.push_back(std::move(entry));
  }
  return made.reshards.size() > record.reshards.size() ? std::optional(std::move(made)) : std::nullopt;
}

absl::StatusOr<RecomputeStarts> RecomputeStarts::of(const MemoryLimits& limits, Attempt base, StepModel& model,
                                                    recompute::KnownFronts& fronts) {
  RecomputeStarts made;
  WEFT_ASSIGN_OR_RETURN(made.starts_.emplace_back(), Recomputation::of(limits, std::move(base), model, fronts));
  const Attempt& first = made.first();
  WEFT_ASSIGN_OR_RETURN(const std::optional<Decisions> changed,
                        first.fits ? std::nullopt : withGathersAgain(first.decisions, model));
  if (!changed) {
    return made;
  }
  WEFT_ASSIGN_OR_RETURN(Attempt again, asItIs(limits, *changed, model));
  again.decisions.recomputeSummary = nlohmann::ordered_json{
      {"limit", limits.least()},
      {"stages", nlohmann::ordered_json::array()},
      {"step_seconds", inSeconds(again.time)},
      {"step_seconds_otherwise",
       inSeconds(first.time)}}.dump();
  WEFT_ASSIGN_OR_RETURN(made.starts_.emplace_back(), Recomputation::of(limits, std::move(again), model, fronts));
  std::ranges::stable_sort(made.starts_, std::less<>(), [](const std::unique_ptr<Recomputation>& start) {
    return std::pair(expectedOf(*start), start->base().peakBytes);
  });
  return made;
}

absl::StatusOr<Attempt> RecomputeStarts::run(Picoseconds useless) const {
  std::optional<Attempt> best;
  for (const std::unique_ptr<Recomputation>& start : starts_) {
    const Picoseconds longest = best && best->fits ? std::min(useless, best->time) : useless;
    if (best && expectedOf(*start) >= longest) {
      continue;
    }
    WEFT_ASSIGN_OR_RETURN(Attempt made, start->base().fits ? start->base() : start->run(longest));
    if (!best || isBetter(made, *best)) {
      best = std::move(made);
    }
  }
  return *std::move(best);
}

}  // namespace weft
