#include "planner/advise/step_memory.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "absl/strings/str_cat.h"
#include "planner/cost/plan_time.h"
#include "planner/memory/pack.h"
#include "planner/memory/rings.h"
#include "planner/schedule/simulate.h"
#include "planner/stage_table.h"
#include "planner/step/step_calls.h"
#include "runtime/base/arithmetic.h"
#include "runtime/base/status.h"

namespace weft::advise {
namespace {

// Functions of a submesh by number: those of stage index s are 3 s + kPart, then those that run once.
enum Part { kForward = 0, kFirst = 1, kSecond = 2 };  // kFirst: the whole backward pass, or gradients of inputs

struct Life {
  int64_t first = 0;
  int64_t last = 0;
  int64_t bytes = 0;
  std::vector<int> functions;
};

class SubmeshNeeds {
 public:
  SubmeshNeeds(const SubmeshModel& submesh, const schedule::Table& table, int64_t parts)
      : submesh_(submesh), parts_(parts), splits_(splitsBackward(table)) {
    for (const StageModel& stage : submesh.stages) {
      input_.push_back(splits_ ? inputPart(submesh, stage) : std::vector<bool>(stage.backward.size(), true));
    }
  }

  // Adds the times of this submesh's stages to `times`, which is indexed by the stage's number in the program.
  void addTimes(schedule::Times& times) const {
    for (size_t s = 0; s < submesh_.stages.size(); ++s) {
      schedule::StageTimes& stage = times.stages[submesh_.stages[s].stage];
      for (const Op& op : submesh_.stages[s].forward) {
        stage.f += op.seconds.of(parts_);
      }
      for (size_t at = 0; at < submesh_.stages[s].backward.size(); ++at) {
        (input_[s][at] ? stage.i : stage.w) += submesh_.stages[s].backward[at].seconds.of(parts_);
      }
    }
  }

  int64_t bytes(const std::vector<schedule::Action>& order) {
    walk();
    const std::vector<FunctionCall> calls = callsOf(functions(), order);
    std::vector<RingItem> kept;
    std::vector<PackItem> transients = firstSums_;
    for (const auto& [storage, life] : lives_) {
      if (life.functions.size() > 1) {
        kept.push_back({{life.first, life.last + 1, life.bytes}, life.functions, life.functions[0] / 3});
      } else {
        transients.push_back({life.first, life.last + 1, life.bytes});
      }
    }
    int64_t sum = maxLive(transients);
    for (const Ring& ring : planRings(kept, calls)) {
      std::vector<PackItem> lives;
      for (const size_t member : ring.members) {
        lives.push_back(kept[member].life);
      }
      sum += ring.slots * maxLive(lives);
    }
    return sum;
  }

 private:
  // All lists in the order in which a micro-batch meets them, with the functions they belong to.
  std::vector<std::pair<const Op*, int>> sequence() const {
    const auto stages = static_cast<int>(submesh_.stages.size());
    std::vector<std::pair<const Op*, int>> ops;
    for (int s = 0; s < stages; ++s) {
      for (const Op& op : submesh_.stages[s].forward) {
        ops.emplace_back(&op, 3 * s + kForward);
      }
    }
    for (const Part part : {kFirst, kSecond}) {
      for (int s = stages - 1; s >= 0; --s) {
        const StageModel& stage = submesh_.stages[s];
        for (size_t at = 0; at < stage.backward.size(); ++at) {
          if (input_[s][at] == (part == kFirst)) {
            ops.emplace_back(&stage.backward[at], 3 * s + part);
          }
        }
      }
    }
    for (size_t f = 0; f < submesh_.once.size(); ++f) {
      for (const Op& op : submesh_.once[f]) {
        ops.emplace_back(&op, 3 * stages + static_cast<int>(f));
      }
    }
    return ops;
  }

  void walk() {
    const std::vector<std::pair<const Op*, int>> ops = sequence();
    place_.assign(submesh_.values.size(), -1);
    lastRead_.assign(submesh_.values.size(), -1);
    for (size_t at = 0; at < ops.size(); ++at) {
      for (const int value : ops[at].first->inputs) {
        lastRead_[value] = static_cast<int64_t>(at);
      }
    }
    for (const auto& [op, function] : ops) {
      visit(*op, function);
      ++step_;
    }
  }

  // Where the operator's result lies: in the storage of the plan, unless what is there is still read afterwards (in the
  // plan it was not, but the order or the readers are others now).
  void put(int value) {
    const int storage = submesh_.values[value].storage;
    int& now = moved_.try_emplace(storage, storage).first->second;
    const auto held = holds_.find(now);
    if (held != holds_.end() && held->second != value && lastRead_[held->second] > step_) {
      now = submesh_.storages + extra_++;
    }
    holds_[now] = value;
    place_[value] = now;
  }

  void visit(const Op& op, int function) {
    for (const int value : op.inputs) {
      if (place_[value] < 0) {
        put(value);  // made by no operator that is followed
      }
      touch(value, function);
    }
    for (const int value : op.outputs) {
      put(value);
      touch(value, function);
    }
    // With one micro-batch a gradient is made where its sum lies; with more it is added to it.
    if (parts_ > 1 && submesh_.plan->micro_batches() == 1 && function < 3 * static_cast<int>(submesh_.stages.size())) {
      for (const plan::Operand& operand : op.source->outputs()) {
        const plan::Buffer& buffer = submesh_.plan->buffers(static_cast<int>(operand.buffer()));
        if (buffer.memory() == plan::ACCUMULATOR) {
          firstSums_.push_back({step_, step_ + 1, buffer.bytes()});
        }
      }
    }
  }

  void touch(int index, int function) {
    const Value& value = submesh_.values[index];
    Life& life = lives_.try_emplace(place_[index], Life{step_, step_, 0, {}}).first->second;
    life.last = step_;
    life.bytes = std::max(life.bytes, value.perMicroBatch ? (value.bytes + parts_ - 1) / parts_ : value.bytes);
    if (std::find(life.functions.begin(), life.functions.end(), function) == life.functions.end()) {
      life.functions.push_back(function);
    }
  }

  // The functions of the stages, numbered as sequence() does; a whole backward runs both parts.
  std::vector<StepFunction> functions() const {
    std::vector<StepFunction> functions;
    for (const StageModel& stage : submesh_.stages) {
      for (const plan::FunctionKind kind : {plan::FORWARD, plan::INPUT_GRAD, plan::WEIGHT_GRAD}) {
        functions.push_back({.kind = kind, .stage = stage.stage});
      }
    }
    return functions;
  }

  const SubmeshModel& submesh_;
  int64_t parts_;
  bool splits_;
  std::vector<std::vector<bool>> input_;  // of each stage's backward list
  int64_t step_ = 0;
  std::map<int, Life> lives_;      // of each storage
  std::vector<int> place_;         // storage of each value, -1 before it is made
  std::vector<int64_t> lastRead_;  // of each value
  std::map<int, int> moved_;       // storage of the plan to where its next value goes
  std::map<int, int> holds_;       // storage to the value in it
  int extra_ = 0;                  // storages beyond those of the model
  std::vector<PackItem> firstSums_;
};

template <typename Visit>
void forTransfers(const plan::Plan& plan, const Visit& visit) {
  for (const plan::Function& function : plan.functions()) {
    for (const plan::Instruction& instruction : function.instructions()) {
      if (instruction.has_transfer()) {
        visit(instruction, function.kind());
      }
    }
  }
}

int64_t mailboxBytes(const plan::Plan& plan, int64_t submesh, const ScheduleConfig& config,
                     const std::vector<int64_t>& inFlight) {
  int64_t bytes = 0;
  forTransfers(plan, [&](const plan::Instruction& instruction, plan::FunctionKind kind) {
    if (!instruction.transfer().send()) {
      const int64_t message = plan.buffers(static_cast<int>(instruction.outputs(0).buffer())).bytes();
      const int64_t room =
          channelCapacity(kind, {config.schedule.submeshes, inFlight, instruction.transfer().submesh(), submesh});
      bytes += alignUp(room * message / (isPerMicroBatch(kind) ? config.parts : 1));
    }
  });
  return bytes;
}

}  // namespace

absl::StatusOr<StepNeeds> needsOf(const std::vector<SubmeshModel>& submeshes, const ScheduleConfig& config,
                                  const Machine& machine) {
  WEFT_ASSIGN_OR_RETURN(const schedule::Table table, stageTable(config.schedule, config.microBatches, true));
  const bool placed = std::equal(table.stageToRank.begin(), table.stageToRank.end(), config.schedule.submeshes.begin(),
                                 config.schedule.submeshes.end());
  if (!placed || table.orders.size() < submeshes.size()) {
    return absl::InvalidArgumentError(absl::StrCat("the decisions place stages on submeshes otherwise than schedule ",
                                                   config.schedule.kind, " does, or on less than the ",
                                                   submeshes.size(), " submeshes of the plan; compile the plan again"));
  }
  const std::vector<int64_t> inFlight = inFlightOf(table);
  StepNeeds needs;
  schedule::Times times;
  times.stages.resize(config.schedule.submeshes.size(), {0, 0, 0, std::nullopt});
  double once = 0;
  for (size_t b = 0; b < submeshes.size(); ++b) {
    SubmeshNeeds submesh(submeshes[b], table, config.parts);
    submesh.addTimes(times);
    needs.bytes.push_back(submesh.bytes(table.orders[b]) +
                          mailboxBytes(*submeshes[b].plan, static_cast<int64_t>(b), config, inFlight));
    once = std::max(once, submeshes[b].onceSeconds);
    forTransfers(*submeshes[b].plan, [&](const plan::Instruction& instruction, plan::FunctionKind kind) {
      const double carried = transferSeconds(*submeshes[b].plan, instruction, machine) - machine.linkLatency;
      const double seconds = machine.linkLatency + carried / static_cast<double>(config.parts);
      times.comm = isPerMicroBatch(kind) ? std::max(times.comm, seconds) : times.comm;
    });
  }
  WEFT_ASSIGN_OR_RETURN(const schedule::Simulation result, schedule::simulate(table, times));
  needs.seconds = result.makespan + once;
  return needs;
}

}  // namespace weft::advise
