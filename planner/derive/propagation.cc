#include "planner/derive/propagation.h"

#include <algorithm>
#include <functional>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "ir/layout/across.h"
#include "planner/graph/iterations.h"
#include "planner/graph/sums.h"

namespace weft {
namespace {

int64_t elementsOf(const Shape& shape) {
  return std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
}

}  // namespace

void Propagation::run(Phase phase) {
  while (sweep(phase)) {
  }
}

bool Propagation::sweep(Phase phase) {
  bool changed = false;
  for (int op = 0; op < view_.operators(); ++op) {
    if (view_.op(op).phase == phase) {
      changed |= inherit(op);
      changed |= fromOperands(op);
      noteSums(op);
    }
  }
  for (int op = view_.operators() - 1; op >= 0; --op) {
    if (view_.op(op).phase == phase) {
      changed |= fromReaders(op);
    }
  }
  return changed;
}

bool Propagation::inherit(int op) {
  const std::optional<int64_t>& id = view_.op(op).forward;
  const std::optional<int> forward = id ? view_.find(*id) : std::nullopt;
  // Axes of another mesh say nothing here.
  if (!forward || *forward == op || !view_.op(op).gradientOf.empty() ||
      graph_.placement.meshNumber(op) != graph_.placement.meshNumber(*forward)) {
    return false;
  }
  const OperatorSharding& source = of_.operators[*forward];
  bool changed = false;
  for (size_t f = 0; f < of_.operators[op].axes.size(); ++f) {
    const int same = of_.operators[op].forwardFactors[f];
    if (same == kNoFactor || of_.operators[op].fixed[f]) {
      continue;
    }
    const AxisList axes = source.axes[same].value_or(AxisList());
    changed |= assign(op, static_cast<int>(f), axes, "forward operator " + view_.op(*forward).label());
    // What the user fixed or the price decided holds for the gradient, too.
    if (source.settled || source.fixed[same]) {
      of_.operators[op].fixFactor(f, of_.operators[op].axes[f].value_or(AxisList()));
    }
  }
  return changed;
}

bool Propagation::fromOperands(int op) {
  std::vector<unsigned> order(view_.op(op).operands.size());
  std::iota(order.begin(), order.end(), 0U);
  std::stable_sort(order.begin(), order.end(), [&](unsigned a, unsigned b) {
    return elementsOf(graph_.stored.of(view_.operandOf(op, a))) > elementsOf(graph_.stored.of(view_.operandOf(op, b)));
  });
  const Rule& rule = of_.operators[op].rule;
  std::vector<FactorAxes> wanted;  // by each operand
  for (unsigned i = 0; i < order.size(); ++i) {
    const std::optional<Layout> layout = layoutAt(view_.operandOf(op, i), op);
    wanted.push_back(layout ? rule.projectOperand(i, *layout).axes : FactorAxes());
  }
  bool changed = false;
  for (const bool splittable : {true, false}) {  // an alternative gets the axes that the operator has no use for
    for (const unsigned i : order) {
      for (size_t f = 0; f < wanted[i].size(); ++f) {
        if (!wanted[i][f].empty() && rule.splittable(static_cast<int>(f)) == splittable) {
          changed |= assign(op, static_cast<int>(f), wanted[i][f], absl::StrCat("operand ", i));
        }
      }
    }
  }
  return changed;
}

// The last reader in the program is asked first.
bool Propagation::fromReaders(int op) {
  bool changed = false;
  for (unsigned r = 0; r < view_.op(op).results.size(); ++r) {
    const std::vector<GraphView::Use>& uses = view_.usesOf(view_.resultOf(op, r));
    for (auto use = uses.rbegin(); use != uses.rend(); ++use) {
      if (use->op == GraphView::kStep || view_.op(use->op).phase != view_.op(op).phase ||
          !of_.operators[use->op].splitsAnything()) {
        continue;
      }
      const OperatorSharding& reader = of_.operators[use->op];
      Layout layout = reader.rule.operandLayout(use->operand, reader.closed());
      if (graph_.placement.meshNumber(use->op) != graph_.placement.meshNumber(op)) {
        layout = translated(layout, graph_.placement.meshOf(use->op), graph_.placement.meshOf(op));
      }
      const FactorAxes axes = of_.operators[op].rule.projectResult(r, layout).axes;
      for (size_t f = 0; f < axes.size(); ++f) {
        if (!axes[f].empty() && (!of_.operators[op].axes[f] || !of_.operators[op].kept[f].empty())) {
          changed |= assign(op, static_cast<int>(f), axes[f], "reader " + view_.op(use->op).label());
        }
      }
    }
  }
  return changed;
}

bool Propagation::assign(int op, int factor, const AxisList& axes, const std::string& origin) {
  OperatorSharding& sharding = of_.operators[op];
  if (axes.empty()) {
    return false;
  }
  if (!sharding.rule.splittable(factor)) {
    if (fit(op, factor, {}, axes.front()) != Fit::kInUse) {
      noteExpansion(op, factor);
    }
    return false;
  }
  AxisList taken = sharding.axes[factor].value_or(AxisList());
  const size_t before = taken.size();
  const bool extends =
      !sharding.fixed[factor] && before <= axes.size() && std::equal(taken.begin(), taken.end(), axes.begin());
  for (size_t i = before; extends && i < axes.size(); ++i) {
    const Fit found = fit(op, factor, taken, axes[i]);
    if (found == Fit::kNo) {
      break;
    }
    if (found == Fit::kYes) {
      taken.push_back(axes[i]);
    }
  }
  const bool changed = taken.size() > before;
  if (changed) {
    sharding.axes[factor] = taken;
    if (sharding.origin.empty()) {
      sharding.origin = origin;
    }
    noteSums(op);
  }
  if (sharding.axes[factor] && *sharding.axes[factor] != axes && view_.op(op).phase == Phase::kForward) {
    noteConflict(op, factor, axes, origin);
  }
  return changed;
}

void Propagation::noteConflict(int op, int factor, const AxisList& axes, const std::string& origin) {
  const OperatorSharding& sharding = of_.operators[op];
  const Mesh& mesh = graph_.placement.meshOf(op);
  const std::string note = absl::StrCat(view_.op(op).label(), " factor ", sharding.rule.factors()[factor].name, ": ",
                                        Layout({*sharding.axes[factor]}).print(mesh), " (", sharding.origin,
                                        ") against ", Layout({axes}).print(mesh), " from ", origin);
  if (noted_.insert(note).second) {
    of_.conflicts.push_back(note);
  }
}

void Propagation::noteExpansion(int op, int factor) {
  const GraphOperator& node = view_.op(op);
  std::vector<int64_t>& expansions = of_.expansions;
  if (of_.operators[op].rule.factors()[factor].mayExpand() && !of_.operators[op].fixed[factor] &&
      !node.alternatives.empty() && std::find(expansions.begin(), expansions.end(), node.id) == expansions.end()) {
    expansions.push_back(node.id);
  }
}

Propagation::Fit Propagation::fit(int op, int factor, const AxisList& before, const Axis& axis) const {
  const OperatorSharding& sharding = of_.operators[op];
  const Rule& rule = sharding.rule;
  FactorAxes all = sharding.closed();
  all[factor] = before;
  for (const AxisList& list : all) {
    if (!std::all_of(list.begin(), list.end(), [&](const Axis& other) { return compatible(axis, other); })) {
      return Fit::kInUse;
    }
  }
  const bool isHeld = std::any_of(sharding.held.begin(), sharding.held.end(),
                                  [&](const Axis& other) { return !compatible(axis, other); });
  if (isHeld || addsSums(op, axis)) {
    return Fit::kInUse;
  }
  all[factor].push_back(axis);
  return divides(graph_, op, rule, all) && inOneBlock(rule, all) ? Fit::kYes : Fit::kNo;
}

bool Propagation::addsSums(int op, const Axis& axis) const {
  const GraphOperator& node = view_.op(op);
  return std::any_of(node.facts.linear.begin(), node.facts.linear.end(), [&](const std::vector<unsigned>& operands) {
    return operands.size() > 1 && passesOn(view_, op, operands) &&
           std::all_of(operands.begin(), operands.end(),
                       [&](unsigned i) { return isPartial(view_.operandOf(op, i), axis); });
  });
}

bool Propagation::isPartial(int value, const Axis& axis) const {
  return std::any_of(sums_[value].begin(), sums_[value].end(), [&](const Axis& other) { return overlap(axis, other); });
}

void Propagation::noteSums(int op) {
  const GraphOperator& node = view_.op(op);
  const OperatorSharding& sharding = of_.operators[op];
  std::set<Axis> passed;
  for (const std::vector<unsigned>& operands : node.facts.linear) {
    for (const Axis& axis : sums_[view_.operandOf(op, operands.front())]) {
      const bool all = std::all_of(operands.begin(), operands.end(), [&](unsigned i) {
        const AxisList& sum = sums_[view_.operandOf(op, i)];
        return std::find(sum.begin(), sum.end(), axis) != sum.end();
      });
      if (all && passes(op, operands, axis)) {
        passed.insert(axis);
      }
    }
  }
  for (unsigned r = 0; r < node.results.size(); ++r) {
    Layout layout(0);
    std::vector<Partial> sums;
    if (sharding.wanted.count(r) == 0 && node.facts.reduceOf(r) == ReduceKind::kSum) {
      sums = sharding.rule.resultLayout(r, sharding.closed()).partial();
    }
    for (const Axis& axis : passed) {
      sums.push_back({axis, ReduceKind::kSum});
    }
    layout.setPartial(std::move(sums));
    AxisList& noted = sums_[view_.resultOf(op, r)];
    noted.clear();
    for (const Partial& sum : sumsCutAtNames(layout, graph_.placement.meshOf(op))) {
      noted.push_back(sum.axis);
    }
  }
}

bool Propagation::passes(int op, const std::vector<unsigned>& operands, const Axis& axis) const {
  const GraphOperator& node = view_.op(op);
  if (node.facts.passesSums) {
    return passesOn(view_, op, operands);
  }
  return operands.size() == 1 && fitsBeside(of_.operators[op].closed(), axis) && node.gradientOf.empty() &&
         productsPass(view_, view_.operandOf(op, operands.front()), axis, [&](int other) {
           const OperatorSharding& sharding = of_.operators[other];
           return ownSumsOf(sharding.rule, sharding.closed(), view_.op(other).facts.reduceOf(0));
         });
}

// An operator of the backward pass whose forward operator was expanded inherits nothing from it. What it reads of the
// arguments it reads like what stands for that.
std::optional<Layout> Propagation::layoutForForward(int argument, int reader) const {
  const GraphOperator& node = view_.op(reader);
  if (node.phase != Phase::kBackward || !node.forward || view_.find(*node.forward)) {
    return std::nullopt;
  }
  for (const GraphView::Use& use : view_.usesOf(argument)) {
    if (use.op != GraphView::kStep && view_.op(use.op).phase == Phase::kForward &&
        graph_.placement.meshNumber(use.op) == graph_.placement.meshNumber(reader)) {
      return of_.operators[use.op].rule.operandLayout(use.operand, of_.operators[use.op].closed());
    }
  }
  return std::nullopt;
}

std::optional<Layout> Propagation::layoutAt(int value, int reader) const {
  const std::optional<int> producer = view_.producerOf(value);
  if (!producer) {
    const ArgumentSharding& sharding = of_.arguments[value].at(graph_.placement.meshNumber(reader));
    if (!parameters_ && !sharding.heard && view_.graph().arguments[value].kind == ArgumentKind::kParameter) {
      return std::nullopt;
    }
    std::optional<Layout> layout = sharding.layout ? sharding.layout : layoutForForward(value, reader);
    if (layout) {
      layout->setPartial({});
    }
    return layout;
  }
  const OperatorSharding& source = of_.operators[*producer];
  const unsigned index = view_.indexOf(value);
  const auto wanted = source.wanted.find(index);
  Layout layout = wanted != source.wanted.end() ? wanted->second : source.rule.resultLayout(index, source.closed());
  layout.setPartial({});
  const Placement& placement = graph_.placement;
  return placement.meshNumber(*producer) == placement.meshNumber(reader)
             ? layout
             : translated(layout, placement.meshOf(*producer), placement.meshOf(reader));
}

}  // namespace weft
