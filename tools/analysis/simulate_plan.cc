#include "tools/analysis/simulate_plan.h"

#include <algorithm>
#include <compare>
#include <map>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "planner/cost/plan_time.h"
#include "planner/machine/times.h"
#include "runtime/base/status.h"
#include "runtime/plan/rank_groups.h"
#include "runtime/plan/routes.h"
#include "runtime/plan/statistics.h"

namespace weft::schedule {
namespace {

using plan::Function;
using plan::Instruction;

// The latency of a transfer is the wake-up of the rank that waits for it.
double transferSecondsAfterWake(const plan::Plan& plan, const plan::Plan& submesh, const Instruction& instruction,
                                const Machine& machine) {
  return transferSeconds(plan, submesh, instruction, machine) -
         inSeconds(transferTime(machine.of(0, plan.ranks()), plan.ranks(), 0));
}

class Simulator {
 public:
  Simulator(const plan::Plan& plan, const PlanTimes& times)
      : times_(times), submeshes_(submeshesOf(plan)), routes_(plan) {
    for (size_t submesh = 0; submesh < submeshes_.size(); ++submesh) {
      groups_.emplace_back(*submeshes_[submesh]);
      for (int64_t place = 0; place < submeshes_[submesh]->ranks(); ++place) {
        Cursor& cursor = cursors_.emplace_back();
        cursor.submesh = submesh;
        cursor.place = place;
        cursor.rank = cursors_.size() - 1;
        cursor.clock = times.calls.empty() ? times.start : times.starts[cursor.rank];
      }
    }
  }

  absl::StatusOr<PlanSimulation> run() {
    bool progress = true;
    while (progress) {
      progress = false;
      for (Cursor& cursor : cursors_) {
        while (step(cursor)) {
          progress = true;
        }
      }
    }
    PlanSimulation result;
    for (Cursor& cursor : cursors_) {
      if (!isDone(cursor)) {
        return absl::InvalidArgumentError(absl::StrCat("rank ", cursor.place, " of submesh ", cursor.submesh,
                                                       " waits for ever at ", functionOf(cursor).name(),
                                                       ", instruction ", cursor.instruction));
      }
      result.seconds = std::max(result.seconds, cursor.clock + times_.finish);
      result.ranks.push_back(std::move(cursor.run));
    }
    double idle = 0;
    for (const RankRun& rank : result.ranks) {
      idle += result.seconds - rank.busy;
    }
    const double whole = static_cast<double>(result.ranks.size()) * result.seconds;
    result.bubbleRatio = whole > 0 ? idle / whole : 0;
    return result;
  }

 private:
  // Where a rank is.
  struct Cursor {
    size_t submesh = 0;
    int64_t place = 0;  // in the submesh
    size_t rank = 0;
    int action = 0;
    int instruction = 0;
    double clock = 0;
    bool arrived = false;  // at the collective it stands at
    RankRun run;
    std::map<int, size_t> rounds;                         // how many it has been to, by group
    std::map<std::pair<uint32_t, bool>, size_t> letters;  // sent or received, by channel and direction
    size_t outlet = 0;                                    // of a send to several ranks: done so far
    double ready = 0;                                     // when there was room for those
  };
  // The parts of a channel's messages from one rank to another.
  struct Route {
    uint32_t channel = 0;
    int64_t source = 0;
    int64_t target = 0;
    auto operator<=>(const Route&) const = default;
  };
  struct Arrivals {
    int64_t count = 0;
    double last = 0;
  };

  const plan::RankSchedule& scheduleOf(const Cursor& cursor) const {
    return submeshes_[cursor.submesh]->schedules(static_cast<int>(cursor.place));
  }
  bool isDone(const Cursor& cursor) const { return cursor.action == scheduleOf(cursor).step_size(); }
  const Function& functionOf(const Cursor& cursor) const {
    return submeshes_[cursor.submesh]->functions(static_cast<int>(scheduleOf(cursor).step(cursor.action).function()));
  }

  // One instruction, or the turn to the next action. False where the rank has to wait, or is done.
  bool step(Cursor& cursor) {
    if (isDone(cursor)) {
      return false;
    }
    const Function& function = functionOf(cursor);
    if (cursor.run.starts.size() == static_cast<size_t>(cursor.action)) {
      cursor.run.starts.push_back(cursor.clock);
    }
    if (cursor.instruction == function.instructions_size()) {
      cursor.run.ends.push_back(cursor.clock);
      ++cursor.action;
      cursor.instruction = 0;
      return true;
    }
    const Instruction& instruction = function.instructions(cursor.instruction);
    if (instruction.has_collective()) {
      return meet(cursor, instruction.collective());
    }
    if (instruction.has_transfer()) {
      return transfer(cursor, instruction.transfer());
    }
    finish(cursor, cursor.clock);
    return true;
  }

  double secondsOf(const Cursor& cursor) const {
    const auto function = scheduleOf(cursor).step(cursor.action).function();
    return times_.calls.empty() ? times_.instructions[cursor.submesh][function][cursor.instruction]
                                : times_.calls[cursor.rank][cursor.action][cursor.instruction];
  }

  // The instruction runs from `start`.
  void finish(Cursor& cursor, double start) {
    const double seconds = secondsOf(cursor);
    cursor.clock = start + seconds;
    cursor.run.busy += seconds;
    ++cursor.instruction;
  }

  bool transfer(Cursor& cursor, const plan::Transfer& end) {
    size_t& count = cursor.letters[{end.channel(), end.send()}];
    if (end.send() ? !sends(cursor, end, count) : !receives(cursor, end, count)) {
      return false;
    }
    finish(cursor, startAfter(cursor, cursor.ready));
    if (!end.send()) {
      received_[{end.channel(), cursor.place}].push_back(cursor.clock);
    }
    cursor.outlet = 0;
    cursor.ready = 0;
    ++count;
    return true;
  }

  // When a rank goes on that waited until `ready`, if it had to.
  double startAfter(const Cursor& cursor, double ready) const {
    return ready > cursor.clock ? ready + times_.wake : cursor.clock;
  }

  // Sends the next message to one rank after another; false where the mailbox of one is full.
  bool sends(Cursor& cursor, const plan::Transfer& end, size_t count) {
    const std::vector<int64_t>& targets = routes_.targets(end.channel(), cursor.place);
    const auto capacity = static_cast<size_t>(end.capacity());
    for (; cursor.outlet < targets.size(); ++cursor.outlet) {
      const int64_t target = targets[cursor.outlet];
      const std::vector<double>& received = received_[{end.channel(), target}];
      if (count >= capacity && received.size() <= count - capacity) {
        return false;
      }
      cursor.ready = std::max(cursor.ready, count >= capacity ? received[count - capacity] : 0);
      sent_[{end.channel(), cursor.place, target}].push_back(startAfter(cursor, cursor.ready) + secondsOf(cursor));
    }
    return true;
  }

  // False where a part of the next message has not been sent.
  bool receives(Cursor& cursor, const plan::Transfer& end, size_t count) {
    for (const int64_t source : routes_.sources(end.channel(), cursor.place)) {
      const std::vector<double>& sent = sent_[{end.channel(), source, cursor.place}];
      if (sent.size() <= count) {
        return false;
      }
      cursor.ready = std::max(cursor.ready, sent[count]);
    }
    return true;
  }

  bool meet(Cursor& cursor, const plan::Collective& collective) {
    const int group = groups_[cursor.submesh].of(collective, cursor.place);
    std::vector<Arrivals>& past = arrivals_[{cursor.submesh, group}];
    size_t& count = cursor.rounds[group];
    past.resize(std::max(past.size(), count + 1));
    Arrivals& now = past[count];
    if (!cursor.arrived) {
      cursor.arrived = true;
      ++now.count;
      now.last = std::max(now.last, cursor.clock);
    }
    if (now.count < static_cast<int64_t>(groups_[cursor.submesh].members(group).size())) {
      return false;
    }
    finish(cursor, now.last);
    cursor.arrived = false;
    ++count;
    return true;
  }

  const PlanTimes& times_;
  std::vector<const plan::Plan*> submeshes_;
  Routes routes_;
  std::vector<RankGroups> groups_;  // of each submesh
  std::vector<Cursor> cursors_;
  // When messages were sent and received, in order; the latter by channel and place.
  std::map<Route, std::vector<double>> sent_;
  std::map<std::pair<uint32_t, int64_t>, std::vector<double>> received_;
  std::map<std::pair<size_t, int>, std::vector<Arrivals>> arrivals_;  // by submesh and group
};

bool fits(const std::vector<double>& seconds, const Function& function) {
  return seconds.size() == static_cast<size_t>(function.instructions_size());
}

bool fitFunctions(const plan::Plan& submesh, const std::vector<std::vector<double>>& seconds) {
  bool fit = seconds.size() == static_cast<size_t>(submesh.functions_size());
  for (int f = 0; fit && f < submesh.functions_size(); ++f) {
    fit = fits(seconds[f], submesh.functions(f));
  }
  return fit;
}

bool fitCalls(const plan::Plan& submesh, int64_t place, const std::vector<std::vector<double>>& seconds) {
  const auto& step = submesh.schedules(static_cast<int>(place)).step();
  bool fit = seconds.size() == static_cast<size_t>(step.size());
  for (int a = 0; fit && a < step.size(); ++a) {
    fit = fits(seconds[a], submesh.functions(static_cast<int>(step[a].function())));
  }
  return fit;
}

absl::Status checkTimes(const plan::Plan& plan, const PlanTimes& times) {
  const std::vector<const plan::Plan*> submeshes = submeshesOf(plan);
  const bool replays = !times.calls.empty();
  const auto ranks = static_cast<size_t>(plan.ranks());
  bool fit = replays ? times.calls.size() == ranks && times.starts.size() == ranks
                     : times.instructions.size() == submeshes.size();
  size_t rank = 0;
  for (size_t b = 0; fit && b < submeshes.size(); ++b) {
    fit = replays || fitFunctions(*submeshes[b], times.instructions[b]);
    for (int64_t place = 0; fit && replays && place < submeshes[b]->ranks(); ++place) {
      fit = fitCalls(*submeshes[b], place, times.calls[rank++]);
    }
  }
  return fit ? absl::OkStatus() : absl::InvalidArgumentError("the times are of another plan: instructions differ");
}

// The kind of an action that calls the function; none for those that run once per step.
std::optional<ActionKind> actionKindOf(plan::FunctionKind kind) {
  switch (kind) {
    case plan::FORWARD:
      return ActionKind::kForward;
    case plan::BACKWARD:
      return ActionKind::kBackward;
    case plan::INPUT_GRAD:
      return ActionKind::kInputGrad;
    case plan::WEIGHT_GRAD:
      return ActionKind::kWeightGrad;
    default:
      return std::nullopt;
  }
}

}  // namespace

PlanTimes predictedTimes(const plan::Plan& plan, const Machine& machine) {
  PlanTimes times;
  times.wake = inSeconds(transferTime(machine.of(0, plan.ranks()), plan.ranks(), 0));
  const std::vector<const plan::Plan*> submeshes = submeshesOf(plan);
  const std::vector<Machine> machines = machinesOf(plan, machine);
  for (size_t s = 0; s < submeshes.size(); ++s) {
    auto& functions = times.instructions.emplace_back();
    for (const Function& function : submeshes[s]->functions()) {
      std::vector<double>& seconds = functions.emplace_back();
      for (const Instruction& instruction : function.instructions()) {
        seconds.push_back(instruction.has_transfer()
                              ? transferSecondsAfterWake(plan, *submeshes[s], instruction, machine)
                              : secondsOf(*submeshes[s], instruction, machines[s]));
      }
    }
  }
  return times;
}

std::vector<StageTimes> stageTimes(const plan::Plan& plan, const PlanTimes& times) {
  std::vector<StageTimes> stages;
  const std::vector<const plan::Plan*> submeshes = submeshesOf(plan);
  for (size_t b = 0; b < submeshes.size(); ++b) {
    for (int f = 0; f < submeshes[b]->functions_size(); ++f) {
      const Function& function = submeshes[b]->functions(f);
      const std::optional<ActionKind> kind = actionKindOf(function.kind());
      if (!kind.has_value()) {
        continue;
      }
      double sum = 0;
      for (const double seconds : times.instructions[b][f]) {
        sum += seconds;
      }
      stages.resize(std::max<size_t>(stages.size(), function.stage() + 1), {0, 0, 0, std::nullopt});
      StageTimes& stage = stages[function.stage()];
      if (*kind == ActionKind::kBackward) {
        stage.b = sum;
      } else {
        (*kind == ActionKind::kForward ? stage.f : *kind == ActionKind::kInputGrad ? stage.i : stage.w) = sum;
      }
    }
  }
  return stages;
}

absl::StatusOr<PlanSimulation> simulatePlan(const plan::Plan& plan, const PlanTimes& times) {
  WEFT_RETURN_IF_ERROR(checkTimes(plan, times));
  return Simulator(plan, times).run();
}

}  // namespace weft::schedule
