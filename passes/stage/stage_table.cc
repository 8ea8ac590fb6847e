#include "passes/stage/stage_table.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "passes/schedule/generate.h"
#include "passes/schedule/transfers.h"
#include "planner/check_request.h"
#include "runtime/base/status.h"

namespace weft {

namespace {

constexpr char kTableKind[] = "table";

// The user's table, if it fits the program.
absl::StatusOr<schedule::Table> givenTable(const ScheduleDecision& schedule, int64_t stages, int64_t pieces) {
  WEFT_ASSIGN_OR_RETURN(schedule::Table table, schedule::parseCsv(schedule.table));
  WEFT_RETURN_IF_ERROR(schedule::validate(table));
  if (table.stages() != stages || table.micros() != pieces) {
    return absl::InvalidArgumentError(absl::StrCat("the schedule's table is for ", table.stages(), " stages and ",
                                                   table.micros(), " micro-batches, the program has ", stages,
                                                   " stages and ", pieces, " micro-batches; write one for these"));
  }
  return table;
}

absl::StatusOr<schedule::Table> generated(const ScheduleDecision& schedule, int64_t pieces) {
  if (schedule.kind == kTableKind) {
    return givenTable(schedule, static_cast<int64_t>(schedule.blocks.size()), pieces);
  }
  WEFT_ASSIGN_OR_RETURN(const schedule::Kind kind, schedule::parseKind(schedule.kind));
  schedule::Request request;
  request.kind = kind;
  request.virtualStages = static_cast<int32_t>(schedule.virtualStages);
  request.ranks = static_cast<int32_t>(static_cast<int64_t>(schedule.blocks.size()) / schedule.virtualStages);
  request.micros = static_cast<int32_t>(pieces);
  return schedule::generate(request);
}

// Blocks by the table, which must not block itself even if every rank works off one queue of actions and transfers.
absl::StatusOr<ScheduleDecision> place(ScheduleDecision decision, const schedule::Table& table) {
  const schedule::Times times = schedule::Times::uniform(1, 1, 1);
  WEFT_ASSIGN_OR_RETURN(const schedule::Queues queues, schedule::placeTransfers(table, times));
  WEFT_RETURN_IF_ERROR(schedule::prove(table, queues));
  decision.blocks.assign(table.stageToRank.begin(), table.stageToRank.end());
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
      WEFT_RETURN_IF_ERROR(givenTable(decision, request.stages, request.pieces).status());
    }
    return place(std::move(decision), table);
  }
  WEFT_ASSIGN_OR_RETURN(const schedule::Kind parsed, executableKind(request.kind));
  decision.virtualStages = request.virtualStages > 0 ? request.virtualStages : schedule::defaultVirtualStages(parsed);
  if (request.stages % decision.virtualStages != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(request.stages, " stages do not divide into blocks of ", decision.virtualStages, " stages, which ",
                     request.kind, " puts on each rank; make ",
                     (request.stages / decision.virtualStages + 1) * decision.virtualStages, " stages"));
  }
  decision.blocks.assign(request.stages, 0);
  // The placement does not depend on the number of pieces; so many serve every kind.
  const int64_t pieces = request.backward ? request.pieces : 2 * request.stages;
  WEFT_ASSIGN_OR_RETURN(const schedule::Table table, generated(decision, pieces));
  return place(std::move(decision), table);
}

absl::Status checkSchedule(const ScheduleDecision& schedule, int64_t pieces, bool backward) {
  const auto stages = static_cast<int64_t>(schedule.blocks.size());
  if (stages == 1 && schedule.blocks[0] == 0) {
    return absl::OkStatus();
  }
  if (stages < 2 || stages > schedule::kMaxIndex || schedule.virtualStages < 1 ||
      stages % schedule.virtualStages != 0) {
    return absl::InvalidArgumentError(absl::StrCat("the schedule has ", stages, " stages, ", schedule.virtualStages,
                                                   " on each block of ranks; there are whole blocks, and one stage is "
                                                   "on block 0"));
  }
  // Without a backward pass only the placement matters, which does not depend on the number of pieces.
  const bool given = schedule.kind == kTableKind && !backward;
  WEFT_ASSIGN_OR_RETURN(const schedule::Table table, given ? schedule::parseCsv(schedule.table)
                                                           : generated(schedule, backward ? pieces : 2 * stages));
  if (!std::equal(schedule.blocks.begin(), schedule.blocks.end(), table.stageToRank.begin(), table.stageToRank.end())) {
    return absl::InvalidArgumentError(absl::StrCat("the schedule ", schedule.kind, " puts its ", table.stages(),
                                                   " stages on blocks ", absl::StrJoin(table.stageToRank, ","),
                                                   ", but the program has them on blocks ",
                                                   absl::StrJoin(schedule.blocks, ",")));
  }
  return absl::OkStatus();
}

absl::StatusOr<schedule::Table> stageTable(const ScheduleDecision& schedule, int64_t pieces, bool backward) {
  if (backward && schedule.blocks.size() > 1) {
    return generated(schedule, pieces);
  }
  schedule::Table table;
  table.stageToRank.assign(schedule.blocks.begin(), schedule.blocks.end());
  table.orders.resize(*std::max_element(table.stageToRank.begin(), table.stageToRank.end()) + 1);
  for (int32_t piece = 0; piece < static_cast<int32_t>(pieces); ++piece) {
    for (int32_t stage = 0; stage < table.stages(); ++stage) {
      std::vector<schedule::Action>& order = table.orders[table.stageToRank[stage]];
      order.push_back(schedule::forward(stage, piece));
      if (backward) {
        order.push_back(schedule::backward(stage, piece));
      }
    }
  }
  return table;
}

std::vector<int64_t> inFlightOf(const schedule::Table& table) {
  std::vector<int64_t> now(table.stages(), 0);
  std::vector<int64_t> most(table.stages(), 1);
  for (const std::vector<schedule::Action>& order : table.orders) {
    for (const schedule::Action& action : order) {
      now[action.stage] += action.kind == schedule::ActionKind::kForward ? 1
                           : schedule::makesInputGrad(action.kind)       ? -1
                                                                         : 0;
      most[action.stage] = std::max(most[action.stage], now[action.stage]);
    }
  }
  return most;
}

bool splitsBackward(const schedule::Table& table) {
  return std::any_of(table.orders.begin(), table.orders.end(), [](const std::vector<schedule::Action>& order) {
    return std::any_of(order.begin(), order.end(), [](const schedule::Action& action) {
      return action.kind == schedule::ActionKind::kInputGrad || action.kind == schedule::ActionKind::kWeightGrad;
    });
  });
}

}  // namespace weft
