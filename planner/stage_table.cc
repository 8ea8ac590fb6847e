#include "planner/stage_table.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "planner/check_request.h"
#include "planner/schedule/generate.h"
#include "planner/schedule/transfers.h"
#include "runtime/base/status.h"

namespace weft {

namespace {

constexpr char kTableKind[] = "table";

// The user's table, if it fits the program.
absl::StatusOr<schedule::Table> givenTable(const ScheduleDecision& schedule, int64_t stages, int64_t microBatches) {
  WEFT_ASSIGN_OR_RETURN(schedule::Table table, schedule::parseCsv(schedule.table));
  WEFT_RETURN_IF_ERROR(schedule::validate(table));
  if (table.stages() != stages || table.micros() != microBatches) {
    return absl::InvalidArgumentError(absl::StrCat("the schedule's table is for ", table.stages(), " stages and ",
                                                   table.micros(), " micro-batches, the program has ", stages,
                                                   " stages and ", microBatches,
                                                   " micro-batches; write one for these"));
  }
  return table;
}

absl::StatusOr<schedule::Table> generated(const ScheduleDecision& schedule, int64_t microBatches) {
  if (schedule.kind == kTableKind) {
    return givenTable(schedule, static_cast<int64_t>(schedule.submeshes.size()), microBatches);
  }
  WEFT_ASSIGN_OR_RETURN(const schedule::Kind kind, schedule::parseKind(schedule.kind));
  schedule::Request request;
  request.kind = kind;
  request.virtualStages = static_cast<int32_t>(schedule.virtualStages);
  request.ranks = static_cast<int32_t>(static_cast<int64_t>(schedule.submeshes.size()) / schedule.virtualStages);
  request.micros = static_cast<int32_t>(microBatches);
  return schedule::generate(request);
}

// Submeshes by the table, which must not block itself even if every rank works off one queue of actions and transfers.
absl::StatusOr<ScheduleDecision> place(ScheduleDecision decision, const schedule::Table& table) {
  const schedule::Times times = schedule::Times::uniform(1, 1, 1);
  WEFT_ASSIGN_OR_RETURN(const schedule::Queues queues, schedule::placeTransfers(table, times));
  WEFT_RETURN_IF_ERROR(schedule::prove(table, queues));
  decision.submeshes.assign(table.stageToRank.begin(), table.stageToRank.end());
  return decision;
}

}  // namespace

absl::StatusOr<ScheduleDecision> decideSchedule(const ScheduleRequest& request) {
  ScheduleDecision decision;
  if (request.stages == 1) {
    return decision;
  }
  decision.kind = request.kind;
  if (request.kind == kTableKind) {
    decision.table = request.table;
    WEFT_ASSIGN_OR_RETURN(const schedule::Table table, schedule::parseCsv(request.table));
    if (request.backward) {
      WEFT_RETURN_IF_ERROR(givenTable(decision, request.stages, request.microBatches).status());
    }
    return place(std::move(decision), table);
  }
  WEFT_ASSIGN_OR_RETURN(const schedule::Kind parsed, executableKind(request.kind));
  decision.virtualStages = request.virtualStages > 0 ? request.virtualStages : schedule::defaultVirtualStages(parsed);
  if (request.stages % decision.virtualStages != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(request.stages, " stages do not divide into submeshes of ", decision.virtualStages,
                     " stages, which ", request.kind, " puts on each rank; make ",
                     (request.stages / decision.virtualStages + 1) * decision.virtualStages, " stages"));
  }
  decision.submeshes.assign(request.stages, 0);
  // The placement does not depend on the number of micro-batches; so many serve every kind.
  const int64_t microBatches = request.backward ? request.microBatches : 2 * request.stages;
  WEFT_ASSIGN_OR_RETURN(const schedule::Table table, generated(decision, microBatches));
  return place(std::move(decision), table);
}

absl::Status checkSchedule(const ScheduleDecision& schedule, int64_t microBatches, bool backward) {
  const auto stages = static_cast<int64_t>(schedule.submeshes.size());
  if (stages == 1 && schedule.submeshes[0] == 0) {
    return absl::OkStatus();
  }
  if (stages < 2 || stages > schedule::kMaxIndex || schedule.virtualStages < 1 ||
      stages % schedule.virtualStages != 0) {
    return absl::InvalidArgumentError(absl::StrCat("the schedule has ", stages, " stages, ", schedule.virtualStages,
                                                   " on each submesh; there are whole submeshes, and one stage is "
                                                   "on submesh 0"));
  }
  // Without a backward pass only the placement matters, which does not depend on the number of micro-batches.
  const bool given = schedule.kind == kTableKind && !backward;
  WEFT_ASSIGN_OR_RETURN(const schedule::Table table, given ? schedule::parseCsv(schedule.table)
                                                           : generated(schedule, backward ? microBatches : 2 * stages));
  if (!std::equal(schedule.submeshes.begin(), schedule.submeshes.end(), table.stageToRank.begin(),
                  table.stageToRank.end())) {
    return absl::InvalidArgumentError(absl::StrCat("the schedule ", schedule.kind, " puts its ", table.stages(),
                                                   " stages on submeshes ", absl::StrJoin(table.stageToRank, ","),
                                                   ", but the program has them on submeshes ",
                                                   absl::StrJoin(schedule.submeshes, ",")));
  }
  return absl::OkStatus();
}

absl::StatusOr<schedule::Table> stageTable(const ScheduleDecision& schedule, int64_t microBatches, bool backward) {
  if (backward && schedule.submeshes.size() > 1) {
    return generated(schedule, microBatches);
  }
  schedule::Table table;
  table.stageToRank.assign(schedule.submeshes.begin(), schedule.submeshes.end());
  table.orders.resize(*std::max_element(table.stageToRank.begin(), table.stageToRank.end()) + 1);
  for (int32_t microBatch = 0; microBatch < static_cast<int32_t>(microBatches); ++microBatch) {
    for (int32_t stage = 0; stage < table.stages(); ++stage) {
      std::vector<schedule::Action>& order = table.orders[table.stageToRank[stage]];
      order.push_back(schedule::forward(stage, microBatch));
      if (backward) {
        order.push_back(schedule::backward(stage, microBatch));
      }
    }
  }
  return table;
}

std::vector<HeldMicroBatches> heldIn(const schedule::Table& table) {
  std::vector<HeldMicroBatches> now(table.stages(), HeldMicroBatches{0, 0, 0});
  std::vector<HeldMicroBatches> most(table.stages());
  for (const std::vector<schedule::Action>& order : table.orders) {
    for (const schedule::Action& action : order) {
      HeldMicroBatches& held = now[action.stage];
      const bool makesInputs = schedule::makesInputGrad(action.kind);
      const bool makesWeights = action.kind == schedule::ActionKind::kWeightGrad;
      held.toInputs += action.kind == schedule::ActionKind::kForward ? 1 : makesInputs ? -1 : 0;
      held.between += action.kind == schedule::ActionKind::kInputGrad ? 1 : makesWeights ? -1 : 0;
      held.toWeights = held.toInputs + held.between;
      HeldMicroBatches& all = most[action.stage];
      all = {std::max(all.toInputs, held.toInputs), std::max(all.toWeights, held.toWeights),
             std::max(all.between, held.between)};
    }
  }
  return most;
}

std::vector<int64_t> inFlightOf(const schedule::Table& table) {
  std::vector<int64_t> inFlight;
  for (const HeldMicroBatches& held : heldIn(table)) {
    inFlight.push_back(held.toInputs);
  }
  return inFlight;
}

bool splitsBackward(const schedule::Table& table) {
  return std::any_of(table.orders.begin(), table.orders.end(), [](const std::vector<schedule::Action>& order) {
    return std::any_of(order.begin(), order.end(), [](const schedule::Action& action) {
      return action.kind == schedule::ActionKind::kInputGrad || action.kind == schedule::ActionKind::kWeightGrad;
    });
  });
}

}  // namespace weft
