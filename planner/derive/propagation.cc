#include "planner/derive/propagation.h"

#include <algorithm>
#include <functional>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "ir/layout/across.h"

namespace weft {
namespace {

int64_t elementsOf(const Shape& shape) {
  return std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
}

// In a compound dimension a factor may be split only if all factors before it are split to single elements.
bool contiguous(const std::vector<std::vector<DimFactors>>& tensors, const Rule& rule, const FactorAxes& axes) {
  for (const auto& dims : tensors) {
    for (const DimFactors& dim : dims) {
      for (size_t k = 1; k < dim.size(); ++k) {
        if (!axes[dim[k]].empty() && partsOf(axes[dim[k - 1]]) != rule.factors()[dim[k - 1]].size) {
          return false;
        }
      }
    }
  }
  return true;
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
  const Rule& rule = of_.operators[op].rule;
  bool changed = false;
  for (size_t f = 0; f < rule.factors().size(); ++f) {
    const int other = source.rule.factorIndex(rule.factors()[f].name);
    if (other >= 0 && source.axes[other] && source.rule.factors()[other].size == rule.factors()[f].size) {
      changed |= assign(op, static_cast<int>(f), *source.axes[other], "forward operator " + view_.op(*forward).label());
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
  bool changed = false;
  for (const unsigned i : order) {
    const std::optional<Layout> layout = layoutAt(view_.operandOf(op, i), op);
    if (!layout) {
      continue;
    }
    const FactorAxes axes = of_.operators[op].rule.projectOperand(i, *layout).axes;
    for (size_t f = 0; f < axes.size(); ++f) {
      changed |= assign(op, static_cast<int>(f), axes[f], absl::StrCat("operand ", i));
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
        if (!of_.operators[op].axes[f]) {
          changed |= assign(op, static_cast<int>(f), axes[f], "reader " + view_.op(use->op).label());
        }
      }
    }
  }
  return changed;
}

bool Propagation::assign(int op, int factor, const std::vector<Axis>& axes, const std::string& origin) {
  OperatorSharding& sharding = of_.operators[op];
  if (axes.empty()) {
    return false;
  }
  if (sharding.axes[factor]) {
    if (*sharding.axes[factor] != axes && view_.op(op).phase == Phase::kForward) {
      noteConflict(op, factor, axes, origin);
    }
    return false;
  }
  if (!fits(op, factor, axes)) {
    return false;
  }
  sharding.axes[factor] = axes;
  if (sharding.origin.empty()) {
    sharding.origin = origin;
  }
  return true;
}

void Propagation::noteConflict(int op, int factor, const std::vector<Axis>& axes, const std::string& origin) {
  const OperatorSharding& sharding = of_.operators[op];
  const Mesh& mesh = graph_.placement.meshOf(op);
  const std::string note = absl::StrCat(view_.op(op).label(), " factor ", sharding.rule.factors()[factor].name, ": ",
                                        Layout({*sharding.axes[factor]}).print(mesh), " (", sharding.origin,
                                        ") against ", Layout({axes}).print(mesh), " from ", origin);
  if (noted_.insert(note).second) {
    of_.conflicts.push_back(note);
  }
}

bool Propagation::fits(int op, int factor, const std::vector<Axis>& axes) {
  const GraphOperator& node = view_.op(op);
  const OperatorSharding& sharding = of_.operators[op];
  const Rule& rule = sharding.rule;
  if (!rule.splittable(factor)) {
    std::vector<int64_t>& expansions = of_.expansions;
    if (rule.factors()[factor].whole && !node.alternatives.empty() &&
        std::find(expansions.begin(), expansions.end(), node.id) == expansions.end()) {
      expansions.push_back(node.id);
    }
    return false;
  }
  FactorAxes all = sharding.closed();
  for (size_t f = 0; f < all.size(); ++f) {
    for (const Axis& other : all[f]) {
      for (const Axis& axis : axes) {
        if (static_cast<int>(f) != factor && !compatible(axis, other)) {
          return false;
        }
      }
    }
  }
  const bool cut = factor == graph_.microBatches.operators[op].batch && !node.prologueOf;
  const int64_t microBatches = cut ? graph_.placement.meshOf(op).microBatches() : 1;
  if (rule.factors()[factor].size % (partsOf(axes) * microBatches) != 0) {
    return false;
  }
  all[factor] = axes;
  return contiguous(rule.operands(), rule, all) && contiguous(rule.results(), rule, all);
}

std::optional<Layout> Propagation::layoutAt(int value, int reader) const {
  const std::optional<int> producer = view_.producerOf(value);
  if (!producer) {
    const auto& sharding = of_.arguments[value].at(graph_.placement.meshNumber(reader));
    std::optional<Layout> layout = sharding.layout;
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
