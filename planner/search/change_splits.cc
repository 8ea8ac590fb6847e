#include "planner/search/change_splits.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "planner/derive/pads.h"
#include "planner/derive/shardings.h"
#include "planner/derive/strategy_words.h"
#include "planner/search/block_program.h"

namespace weft {
namespace {

// As many plans are predicted as have so many operators together.
constexpr size_t kPredictedOperators = 4000;

// An operator of the program with one way to split it.
struct ChangedSplit {
  int op = 0;
  UserStrategy strategy;
};

class SplitChanger {
 public:
  SplitChanger(ClosedRequest plan, const Predict& predict)
      : plan_(std::move(plan)), predict_(predict), left_(kPredictedOperators / plan_.graph->operators.size()) {}

  ClosedRequest run() {
    const Picoseconds before = plan_.attempt.time;
    size_t changed = 0;
    while (left_ > 0 && changeOne()) {
      ++changed;
    }
    if (changed > 0) {
      plan_.attempt.decisions.notes.push_back(
          absl::StrFormat("splits of single operators: %d changed, %.4g ms instead of %.4g ms", changed,
                          1e3 * inSeconds(plan_.attempt.time), 1e3 * inSeconds(before)));
    }
    return std::move(plan_);
  }

 private:
  // False: no other split of one operator is better, as far as they are asked about.
  bool changeOne() {
    for (ChangedSplit& change : changes()) {
      if (left_ == 0) {
        return false;
      }
      auto graph = std::make_shared<ProgramGraph>(*plan_.graph);
      graph->operators[change.op].strategy = std::move(change.strategy);
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

  std::vector<ChangedSplit> changes() const {
    const GraphView view(*plan_.graph);
    std::vector<int> operators;
    for (int op = 0; op < view.operators(); ++op) {
      const GraphOperator& node = view.op(op);
      const bool isOpen = !node.strategy && node.constraint.empty();
      if (isOpen && node.phase == Phase::kForward && plan_.attempt.decisions.find(node.id) != nullptr) {
        operators.push_back(op);
      }
    }
    std::ranges::stable_partition(operators, [&](int op) { return isAtBorder(view, op); });
    std::vector<ChangedSplit> found;
    for (const int op : operators) {
      addChanges(view, op, found);
    }
    return found;
  }

  int64_t stageOf(const GraphView& view, int op) const {
    const OperatorDecision* decision = plan_.attempt.decisions.find(view.op(op).id);
    return decision == nullptr ? 0 : decision->stage;
  }

  // Does it pass a value on to another stage, or read one from there, or does the step return what it makes?
  bool isAtBorder(const GraphView& view, int op) const {
    const int64_t stage = stageOf(view, op);
    for (unsigned r = 0; r < view.op(op).results.size(); ++r) {
      const std::vector<GraphView::Use>& uses = view.usesOf(view.resultOf(op, r));
      const bool passes = std::ranges::any_of(uses, [&](const GraphView::Use& use) {
        return use.op == GraphView::kStep ||
               (view.op(use.op).phase == Phase::kForward && stageOf(view, use.op) != stage);
      });
      if (passes) {
        return true;
      }
    }
    for (unsigned i = 0; i < view.op(op).operands.size(); ++i) {
      const std::optional<int> producer = view.producerOf(view.operandOf(op, i));
      if (producer && stageOf(view, *producer) != stage) {
        return true;
      }
    }
    return false;
  }

  // Every other way to split it over the axes of its mesh.
  void addChanges(const GraphView& view, int op, std::vector<ChangedSplit>& found) const {
    const absl::StatusOr<Rule> rule = ruleOf(view, StoredShapes(view), op);
    if (!rule.ok()) {
      return;
    }
    Decisions record = plan_.attempt.decisions;
    OperatorDecision& decision = *std::ranges::find(record.operators, view.op(op).id, &OperatorDecision::id);
    const auto before = decision.axes;
    const Mesh mesh = record.meshes().ofStage(decision.stage);
    std::vector<FactorAxes> all = {FactorAxes(rule->factors().size())};
    for (const NamedAxis& named : mesh.axes()) {
      if (named.axis.kind == AxisKind::kSpace && named.axis.size > 1) {
        all = withAxis(all, named.axis);
      }
    }
    for (const FactorAxes& axes : all) {
      decision.axes.clear();
      for (size_t f = 0; f < axes.size(); ++f) {
        if (!axes[f].empty()) {
          decision.axes[rule->factors()[f].name] = axes[f];
        }
      }
      if (decision.axes != before && rule->check(axes, mesh).ok()) {
        absl::StatusOr<StrategyWords> words = StrategyWriter(view, view, record).of(op);
        if (words.ok()) {
          words->strategy.isSearched = true;
          found.push_back({op, std::move(words->strategy)});
        }
      }
    }
  }

  // Each with the axis on no factor, and on each of them.
  static std::vector<FactorAxes> withAxis(const std::vector<FactorAxes>& all, const Axis& axis) {
    std::vector<FactorAxes> found = all;
    for (const FactorAxes& axes : all) {
      for (size_t f = 0; f < axes.size(); ++f) {
        found.push_back(axes);
        found.back()[f].push_back(axis);
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
  const bool mayChange = isOpen && plan.attempt.fits && plan.graph->operators.size() <= kOperatorsOfTiny;
  return mayChange ? SplitChanger(std::move(plan), predict).run() : plan;
}

}  // namespace weft
