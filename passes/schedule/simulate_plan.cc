#include "passes/schedule/simulate_plan.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/status.h"
#include "runtime/plan/statistics.h"

namespace weft::schedule {
namespace {

using plan::Function;
using plan::Instruction;

double bytesOf(const plan::Plan& block, const plan::Operand& operand) {
  return static_cast<double>(block.buffers(static_cast<int>(operand.buffer())).bytes());
}

double predictedSeconds(const plan::Plan& block, const Instruction& instruction, const Machine& machine) {
  if (instruction.has_collective()) {
    return instruction.collective().cost();
  }
  if (instruction.has_transfer()) {
    const bool send = instruction.transfer().send();
    return bytesOf(block, send ? instruction.inputs(0) : instruction.outputs(0)) / machine.linkBandwidth;
  }
  double bytes = 0;
  for (const auto* operands : {&instruction.inputs(), &instruction.outputs()}) {
    for (const plan::Operand& operand : *operands) {
      bytes += bytesOf(block, operand);
    }
  }
  return static_cast<double>(instruction.flops()) / machine.flops + bytes / machine.memoryBandwidth;
}

// The ranks that meet in a collective: its group, or all of the block for a permute.
struct Meeting {
  int64_t key = 0;  // of the meeting place within the block
  int64_t members = 0;
};

Meeting meetingOf(const plan::Plan& block, const plan::Collective& collective, int64_t place) {
  if (collective.kind() == plan::PERMUTE) {
    return {-1, block.ranks()};
  }
  const plan::GroupSet& set = block.group_sets(static_cast<int>(collective.group_set()));
  for (int g = 0; g < set.groups_size(); ++g) {
    const auto& ranks = set.groups(g).ranks();
    if (std::find(ranks.begin(), ranks.end(), place) != ranks.end()) {
      return {static_cast<int64_t>(collective.group_set()) * block.ranks() + g, ranks.size()};
    }
  }
  return {-1, 1};
}

class Simulator {
 public:
  Simulator(const plan::Plan& plan, const PlanTimes& times) : times_(times), blocks_(blocksOf(plan)) {
    for (size_t block = 0; block < blocks_.size(); ++block) {
      for (int64_t place = 0; place < blocks_[block]->ranks(); ++place) {
        Cursor& cursor = cursors_.emplace_back();
        cursor.block = block;
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
        return absl::InvalidArgumentError(absl::StrCat("rank ", cursor.place, " of block ", cursor.block,
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
    size_t block = 0;
    int64_t place = 0;  // in the block
    size_t rank = 0;
    int action = 0;
    int instruction = 0;
    double clock = 0;
    bool arrived = false;  // at the collective it stands at
    RankRun run;
    std::map<int64_t, size_t> meetings;                   // how many it has been to, by key
    std::map<std::pair<uint32_t, bool>, size_t> letters;  // sent or received, by channel and direction
  };
  // When the messages of a channel between two ranks were sent and received.
  struct Mail {
    std::vector<double> sent;
    std::vector<double> received;
  };
  struct Arrivals {
    int64_t count = 0;
    double last = 0;
  };

  const plan::RankSchedule& scheduleOf(const Cursor& cursor) const {
    return blocks_[cursor.block]->schedules(static_cast<int>(cursor.place));
  }
  bool isDone(const Cursor& cursor) const { return cursor.action == scheduleOf(cursor).step_size(); }
  const Function& functionOf(const Cursor& cursor) const {
    return blocks_[cursor.block]->functions(static_cast<int>(scheduleOf(cursor).step(cursor.action).function()));
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

  // The instruction runs from `start`.
  void finish(Cursor& cursor, double start) {
    const auto function = scheduleOf(cursor).step(cursor.action).function();
    const double seconds = times_.calls.empty() ? times_.instructions[cursor.block][function][cursor.instruction]
                                                : times_.calls[cursor.rank][cursor.action][cursor.instruction];
    cursor.clock = start + seconds;
    cursor.run.busy += seconds;
    ++cursor.instruction;
  }

  bool transfer(Cursor& cursor, const plan::Transfer& end) {
    Mail& mail = mails_[{end.channel(), cursor.place}];
    size_t& count = cursor.letters[{end.channel(), end.send()}];
    const auto capacity = static_cast<size_t>(end.capacity());
    const std::vector<double>& awaited = end.send() ? mail.received : mail.sent;
    const bool waits = !end.send() || count >= capacity;
    const size_t needed = end.send() ? count - capacity : count;
    if (waits && awaited.size() <= needed) {
      return false;
    }
    const bool late = waits && awaited[needed] > cursor.clock;
    finish(cursor, late ? awaited[needed] + times_.wake : cursor.clock);
    (end.send() ? mail.sent : mail.received).push_back(cursor.clock);
    ++count;
    return true;
  }

  bool meet(Cursor& cursor, const plan::Collective& collective) {
    const Meeting meeting = meetingOf(*blocks_[cursor.block], collective, cursor.place);
    std::vector<Arrivals>& past = arrivals_[{cursor.block, meeting.key}];
    size_t& count = cursor.meetings[meeting.key];
    past.resize(std::max(past.size(), count + 1));
    Arrivals& now = past[count];
    if (!cursor.arrived) {
      cursor.arrived = true;
      ++now.count;
      now.last = std::max(now.last, cursor.clock);
    }
    if (now.count < meeting.members) {
      return false;
    }
    finish(cursor, now.last);
    cursor.arrived = false;
    ++count;
    return true;
  }

  const PlanTimes& times_;
  std::vector<const plan::Plan*> blocks_;
  std::vector<Cursor> cursors_;
  std::map<std::pair<uint32_t, int64_t>, Mail> mails_;                    // by channel and place
  std::map<std::pair<size_t, int64_t>, std::vector<Arrivals>> arrivals_;  // by block and key
};

bool fits(const std::vector<double>& seconds, const Function& function) {
  return seconds.size() == static_cast<size_t>(function.instructions_size());
}

bool fitFunctions(const plan::Plan& block, const std::vector<std::vector<double>>& seconds) {
  bool fit = seconds.size() == static_cast<size_t>(block.functions_size());
  for (int f = 0; fit && f < block.functions_size(); ++f) {
    fit = fits(seconds[f], block.functions(f));
  }
  return fit;
}

bool fitCalls(const plan::Plan& block, int64_t place, const std::vector<std::vector<double>>& seconds) {
  const auto& step = block.schedules(static_cast<int>(place)).step();
  bool fit = seconds.size() == static_cast<size_t>(step.size());
  for (int a = 0; fit && a < step.size(); ++a) {
    fit = fits(seconds[a], block.functions(static_cast<int>(step[a].function())));
  }
  return fit;
}

absl::Status checkTimes(const plan::Plan& plan, const PlanTimes& times) {
  const std::vector<const plan::Plan*> blocks = blocksOf(plan);
  const bool replays = !times.calls.empty();
  const auto ranks = static_cast<size_t>(plan.ranks());
  bool fit = replays ? times.calls.size() == ranks && times.starts.size() == ranks
                     : times.instructions.size() == blocks.size();
  size_t rank = 0;
  for (size_t b = 0; fit && b < blocks.size(); ++b) {
    fit = replays || fitFunctions(*blocks[b], times.instructions[b]);
    for (int64_t place = 0; fit && replays && place < blocks[b]->ranks(); ++place) {
      fit = fitCalls(*blocks[b], place, times.calls[rank++]);
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
  times.wake = machine.linkLatency;
  for (const plan::Plan* block : blocksOf(plan)) {
    auto& functions = times.instructions.emplace_back();
    for (const Function& function : block->functions()) {
      std::vector<double>& seconds = functions.emplace_back();
      for (const Instruction& instruction : function.instructions()) {
        seconds.push_back(predictedSeconds(*block, instruction, machine));
      }
    }
  }
  return times;
}

std::vector<StageTimes> stageTimes(const plan::Plan& plan, const PlanTimes& times) {
  std::vector<StageTimes> stages;
  const std::vector<const plan::Plan*> blocks = blocksOf(plan);
  for (size_t b = 0; b < blocks.size(); ++b) {
    for (int f = 0; f < blocks[b]->functions_size(); ++f) {
      const Function& function = blocks[b]->functions(f);
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
