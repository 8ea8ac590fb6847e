#pragma once

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "planner/derive/propagation.h"
#include "planner/derive/settle_conflicts.h"
#include "planner/derive/strategies.h"

namespace weft::testing {

// One round of propagation over a graph on one mesh; `settle` decides what is left to decide by price.
class Spread {
 public:
  Spread(const ProgramGraph& graph, const std::string& mesh, const std::map<std::string, std::string>& layouts = {})
      : patterns_(layouts.begin(), layouts.end()),
        view_(graph),
        mesh_(*Mesh::parse(mesh)),
        settled_(settled()),
        shardings_(*openShardings(settled_)) {
    Propagation propagation(settled_, shardings_);
    readWords(propagation);
    propagation.hearParameters();
    for (const Phase phase : {Phase::kForward, Phase::kBackward, Phase::kUpdate}) {
      propagation.run(phase);
    }
  }

  // The axes of a factor of an operator: "dp", "" not split, "open".
  std::string axes(int op, const std::string& factor) const {
    const OperatorSharding& sharding = shardings_.operators[op];
    const auto& axes = sharding.axes[sharding.rule.factorIndex(factor)];
    if (!axes) {
      return "open";
    }
    std::string text;
    for (const Axis& axis : *axes) {
      text += (text.empty() ? "" : ",") + mesh_.name(axis);
    }
    return text;
  }
  const Shardings& shardings() const { return shardings_; }

  // Of the forward operators, before the backward ones follow.
  void settle(const Machine& machine) {
    ReshardMemo memo;
    settle(machine, memo);
  }
  void settle(const Machine& machine, ReshardMemo& memo, double bytePrice = 0) {
    shardings_ = *openShardings(settled_);
    Propagation propagation(settled_, shardings_);
    readWords(propagation);
    propagation.hearParameters();
    propagation.run(Phase::kForward);
    ASSERT_TRUE(
        settleConflicts(settled_, {machine, bytePrice, memo}, candidatesOf(settled_, shardings_), shardings_).ok());
    propagation.run(Phase::kBackward);
  }

  // Of each argument, for `settle`.
  void setZeroLevels(std::vector<int64_t> levels) { settled_.zeroLevels = std::move(levels); }

  // In each call, for `settle`.
  void regather() { settled_.regather = true; }

  absl::Status status;

 private:
  SettledGraph settled() const {
    const std::vector<int64_t> stages(view_.operators(), 0);
    return {view_,
            {stages, {{mesh_}, {0}}},
            *analyzeMicroBatches(view_, stages, mesh_.microBatches()),
            StoredShapes(view_)};
  }

  // Those of each priority before the next ones.
  void readWords(Propagation& propagation) {
    for (std::optional<int64_t> priority = 0; priority;) {
      const auto next = readUserWords(settled_, UserLayouts(view_.graph(), patterns_), *priority, shardings_);
      status = next.status();
      priority = next.ok() ? *next : std::nullopt;
      if (priority) {
        propagation.run(Phase::kForward);
      }
    }
  }

  std::vector<std::pair<std::string, std::string>> patterns_;
  GraphView view_;
  Mesh mesh_;
  SettledGraph settled_;
  Shardings shardings_;
};

}  // namespace weft::testing
