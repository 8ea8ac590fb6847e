#include "planner/search/change_splits.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "planner/derive/pads.h"
#include "planner/derive/strategy_words.h"
#include "planner/search/block_program.h"

namespace weft {
namespace {

// As many plans are predicted as have so many operators together.
constexpr size_t kPredictedOperators = 8000;

// Each with the axis on no factor, and on each of them.
std::vector<FactorAxes> withAxis(const std::vector<FactorAxes>& all, const Axis& axis) {
  std::vector<FactorAxes> found = all;
  for (const FactorAxes& axes : all) {
    for (size_t f = 0; f < axes.size(); ++f) {
      found.push_back(axes);
      found.back()[f].push_back(axis);
    }
  }
  return found;
}

class SplitChanger {
 public:
  SplitChanger(ClosedRequest plan, const Predict& predict)
      : plan_(std::move(plan)), predict_(predict), left_(kPredictedOperators / plan_.graph->operators.size()) {}

  ClosedRequest run() {
    const Picoseconds before = plan_.attempt.time;
    size_t changed = 0;
    while (changeOne()) {
      ++changed;
    }
    if (changed > 0) {
      plan_.notes.push_back(absl::StrFormat("splits of single operators: %d changed, %.4g ms instead of %.4g ms",
                                            changed, 1e3 * inSeconds(plan_.attempt.time), 1e3 * inSeconds(before)));
    }
    return std::move(plan_);
  }

 private:
  // All operators are asked about again after each change: what was not better before may be now.
  bool changeOne() {
    return std::ranges::any_of(openOperators(), [&](int op) { return change(op); });
  }

  // False: no other split of the operator is better, as far as they are asked about.
  bool change(int op) {
    for (UserStrategy& strategy : otherSplits(op)) {
      if (left_ == 0) {
        return false;
      }
      auto graph = std::make_shared<ProgramGraph>(*plan_.graph);
      graph->operators[op].strategy = std::move(strategy);
      --left_;
      ++plan_.ticks;
      absl::StatusOr<Attempt> made = predict_(*graph, plan_.request, plan_.bytePrice, uselessBeside(plan_.attempt));
      if (made.ok() && made->fits && made->time < plan_.attempt.time) {
        plan_.graph = std::move(graph);
        plan_.attempt = *std::move(made);
        return true;
      }
    }
    return false;
  }

  const OperatorDecision* decisionOf(const GraphOperator& op) const { return plan_.attempt.decisions.find(op.id); }

  // Those of the forward pass of whose splits nothing is said, next to borders of stages first.
  std::vector<int> openOperators() const {
    const GraphView view(*plan_.graph);
    std::vector<int> operators;
    for (int op = 0; op < view.operators(); ++op) {
      const GraphOperator& node = view.op(op);
      const bool isOpen = !node.strategy && node.constraint.empty();
      if (isOpen && node.phase == Phase::kForward && decisionOf(node) != nullptr) {
        operators.push_back(op);
      }
    }
    std::ranges::stable_partition(operators, [&](int op) { return isAtBorder(view, op); });
    return operators;
  }

  // Does it pass a value on to another stage, or read one from there, or does the step return what it makes?
  bool isAtBorder(const GraphView& view, int op) const {
    const auto isElsewhere = [&](int other) {
      const OperatorDecision* decision = decisionOf(view.op(other));
      return decision != nullptr && view.op(other).phase == Phase::kForward &&
             decision->stage != decisionOf(view.op(op))->stage;
    };
    for (unsigned r = 0; r < view.op(op).results.size(); ++r) {
      const std::vector<GraphView::Use>& uses = view.usesOf(view.resultOf(op, r));
      if (std::ranges::any_of(uses,
                              [&](const auto& use) { return use.op == GraphView::kStep || isElsewhere(use.op); })) {
        return true;
      }
    }
    for (unsigned i = 0; i < view.op(op).operands.size(); ++i) {
      const std::optional<int> producer = view.producerOf(view.operandOf(op, i));
      if (producer && isElsewhere(*producer)) {
        return true;
      }
    }
    return false;
  }

  // Every other way to split it over the axes of its mesh.
  std::vector<UserStrategy> otherSplits(int op) const {
    const GraphView view(*plan_.graph);
    const absl::StatusOr<Rule> rule = ruleOf(view, StoredShapes(view), op);
    if (!rule.ok()) {
      return {};
    }
    const OperatorDecision& decision = *decisionOf(view.op(op));
    const Mesh mesh = plan_.attempt.decisions.meshes().ofStage(decision.stage);
    std::vector<FactorAxes> all = {FactorAxes(rule->factors().size())};
    for (const NamedAxis& named : mesh.axes()) {
      if (named.axis.kind == AxisKind::kSpace && named.axis.size > 1) {
        all = withAxis(all, named.axis);
      }
    }
    std::vector<UserStrategy> found;
    for (const FactorAxes& axes : all) {
      if (axes != axesOf(decision, *rule) && rule->check(axes, mesh).ok()) {
        found.push_back(strategyOf(*rule, axes, decision.results, mesh).strategy);
        found.back().line = view.op(op).line;
        found.back().isSearched = true;
      }
    }
    return found;
  }

  ClosedRequest plan_;
  const Predict& predict_;
  size_t left_;  // predictions
};

}  // namespace

ClosedRequest changeSplits(ClosedRequest plan, const CompileOptions& request, const Predict& predict) {
  const bool isOpen = plan.request.mode != Mode::kSemi && request.may(Freedom::kBatchAxes);
  const bool mayChange = isOpen && plan.attempt.fits && isTiny(*plan.graph);
  return mayChange ? SplitChanger(std::move(plan), predict).run() : plan;
}

}  // namespace weft
