#include "tools/commands/view/step_timeline.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "absl/strings/str_cat.h"
#include "passes/schedule/simulate.h"
#include "passes/stage/step_time.h"
#include "runtime/base/status.h"
#include "runtime/plan/statistics.h"

namespace weft::tools {
namespace {

using schedule::ActionKind;

constexpr int kNoCall = -1;

std::optional<ActionKind> actionKind(plan::FunctionKind kind) {
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

// An action of the table, and the call of the block's step that it stands for. The compiler leaves out functions
// without instructions, a table has all actions: those without a call take no time.
struct Entry {
  schedule::Action action;
  int call = kNoCall;
};

using Order = std::vector<Entry>;

// With the actions that have no function: an F or I before what needs it, a W after its I, a B of a program without
// gradients at the end, where it delays nothing.
Order completed(const Order& given) {
  std::map<std::pair<int32_t, int32_t>, std::set<ActionKind>> kinds;
  for (const Entry& entry : given) {
    kinds[{entry.action.micro, -entry.action.stage}].insert(entry.action.kind);
  }
  Order order;
  for (const Entry& entry : given) {
    const auto& [stage, kind, micro] = entry.action;
    std::set<ActionKind>& known = kinds[{micro, -stage}];
    if (known.insert(ActionKind::kForward).second) {
      order.push_back({schedule::forward(stage, micro)});
    }
    if (kind == ActionKind::kWeightGrad && known.insert(ActionKind::kInputGrad).second) {
      order.push_back({schedule::inputGrad(stage, micro)});
    }
    order.push_back(entry);
    if (kind == ActionKind::kInputGrad && known.insert(ActionKind::kWeightGrad).second) {
      order.push_back({schedule::weightGrad(stage, micro)});
    }
  }
  for (const auto& [key, known] : kinds) {
    if (known == std::set{ActionKind::kForward}) {
      order.push_back({schedule::backward(-key.second, key.first)});
    }
  }
  return order;
}

class Simulator {
 public:
  Simulator(const plan::Plan& plan, const Machine& machine) : blocks_(blocksOf(plan)), machine_(machine) {}

  absl::StatusOr<StepTimeline> run() {
    WEFT_RETURN_IF_ERROR(numberStages());
    for (const plan::Plan* block : blocks_) {
      readFunctions(*block);
    }
    readOrders();
    out_.blocks.resize(blocks_.size());
    out_.busy.resize(blocks_.size(), 0);
    for (size_t b = 0; b < blocks_.size(); ++b) {
      out_.prologue = std::max(out_.prologue, placeOnce(b, 0, onceBefore_[b]));
    }
    if (!stages_.empty()) {
      WEFT_RETURN_IF_ERROR(placePieces());
    }
    for (size_t b = 0; b < blocks_.size(); ++b) {
      const double begin = out_.prologue + out_.pieces;
      out_.update = std::max(out_.update, placeOnce(b, begin, onceAfter_[b]) - begin);
    }
    return std::move(out_);
  }

 private:
  using Calls = google::protobuf::RepeatedPtrField<plan::Action>;

  const Calls& calls(size_t b) const { return blocks_[b]->schedules(0).step(); }
  const plan::Function& functionOf(size_t b, const plan::Action& call) const {
    return blocks_[b]->functions(static_cast<int>(call.function()));
  }

  // Stages as 0, 1, ... in their order, each on one block.
  absl::Status numberStages() {
    std::map<int64_t, size_t> owner;
    for (size_t b = 0; b < blocks_.size(); ++b) {
      if (blocks_[b]->schedules_size() == 0) {
        return absl::InvalidArgumentError(absl::StrCat("block ", b, " has no schedule; compile the plan again"));
      }
      for (const plan::Action& call : calls(b)) {
        const plan::Function& function = functionOf(b, call);
        const bool perPiece = actionKind(function.kind()).has_value();
        if (call.piece() > schedule::kMaxIndex) {
          return absl::InvalidArgumentError(
              absl::StrCat("piece ", call.piece(), " is above ", schedule::kMaxIndex, ", the most that is simulated"));
        }
        if (perPiece && owner.try_emplace(function.stage(), b).first->second != b) {
          return absl::InvalidArgumentError(absl::StrCat("stage ", function.stage(), " is on block ",
                                                         owner[function.stage()], " and on block ", b,
                                                         "; a stage is on one, compile the plan again"));
        }
      }
    }
    for (const auto& [stage, block] : owner) {
      stages_.emplace(stage, static_cast<int32_t>(stages_.size()));
      table_.stageToRank.push_back(static_cast<int32_t>(block));
    }
    times_.stages.resize(stages_.size(), {0, 0, 0, std::nullopt});
    return absl::OkStatus();
  }

  void readFunctions(const plan::Plan& block) {
    std::vector<double>& seconds = seconds_.emplace_back();
    for (const plan::Function& function : block.functions()) {
      double sum = 0;
      for (const plan::Instruction& instruction : function.instructions()) {
        sum += secondsOf(block, instruction, machine_);
        if (instruction.has_transfer() && instruction.transfer().send() && function.kind() != plan::UPDATE) {
          times_.comm = std::max(times_.comm, transferSeconds(block, instruction, machine_));
        }
      }
      seconds.push_back(sum);
      const auto stage = stages_.find(function.stage());
      if (const auto kind = actionKind(function.kind()); kind && stage != stages_.end()) {
        setTime(times_.stages[stage->second], *kind, sum);
      }
    }
  }

  static void setTime(schedule::StageTimes& times, ActionKind kind, double seconds) {
    if (kind == ActionKind::kBackward) {
      times.b = seconds;
    } else {
      (kind == ActionKind::kForward ? times.f : kind == ActionKind::kInputGrad ? times.i : times.w) = seconds;
    }
  }

  void readOrders() {
    onceBefore_.resize(blocks_.size());
    onceAfter_.resize(blocks_.size());
    for (size_t b = 0; b < blocks_.size(); ++b) {
      Order order;
      for (int at = 0; at < calls(b).size(); ++at) {
        const plan::Action& call = calls(b)[at];
        const plan::Function& function = functionOf(b, call);
        if (const auto kind = actionKind(function.kind())) {
          order.push_back({{stages_.at(function.stage()), *kind, static_cast<int32_t>(call.piece())}, at});
        } else {
          (order.empty() ? onceBefore_ : onceAfter_)[b].push_back(at);
        }
      }
      orders_.push_back(completed(order));
    }
  }

  // One after another from `begin`; returns the end.
  double placeOnce(size_t b, double begin, const std::vector<int>& positions) {
    for (const int at : positions) {
      const plan::Action& call = calls(b)[at];
      const double end = begin + seconds_[b][call.function()];
      out_.blocks[b].push_back({call.function(), call.piece(), begin, end});
      begin = end;
    }
    return begin;
  }

  absl::Status placePieces() {
    for (const Order& order : orders_) {
      if (order.empty()) {
        return absl::InvalidArgumentError(
            absl::StrCat("block ", table_.orders.size(), " runs no piece of the step; compile the plan again"));
      }
      std::vector<schedule::Action>& row = table_.orders.emplace_back();
      for (const Entry& entry : order) {
        row.push_back(entry.action);
      }
    }
    const absl::StatusOr<schedule::Simulation> result = schedule::simulate(table_, times_);
    if (!result.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat("the plan's calls are no schedule: ", std::string(result.status().message())));
    }
    for (size_t b = 0; b < orders_.size(); ++b) {
      for (size_t k = 0; k < orders_[b].size(); ++k) {
        if (orders_[b][k].call == kNoCall) {
          continue;
        }
        const plan::Action& call = calls(b)[orders_[b][k].call];
        const double start = result->starts[b][k];
        const double end = result->ends[b][k];
        out_.blocks[b].push_back({call.function(), call.piece(), out_.prologue + start, out_.prologue + end});
        out_.busy[b] += end - start;
        out_.pieces = std::max(out_.pieces, end);
      }
    }
    return absl::OkStatus();
  }

  const std::vector<const plan::Plan*> blocks_;
  const Machine& machine_;
  std::map<int64_t, int32_t> stages_;         // number in the plan to number in the table
  std::vector<std::vector<double>> seconds_;  // of each block's functions
  std::vector<Order> orders_;
  std::vector<std::vector<int>> onceBefore_;  // of each block: calls before the pieces, as places in its step
  std::vector<std::vector<int>> onceAfter_;
  schedule::Table table_;
  schedule::Times times_;
  StepTimeline out_;
};

}  // namespace

double StepTimeline::bubble() const {
  double sum = 0;
  for (const double seconds : busy) {
    sum += seconds;
  }
  return pieces > 0 ? std::max(0.0, 1 - sum / (static_cast<double>(busy.size()) * pieces)) : 0;
}

absl::StatusOr<StepTimeline> simulateStep(const plan::Plan& plan, const Machine& machine) {
  return Simulator(plan, machine).run();
}

}  // namespace weft::tools
