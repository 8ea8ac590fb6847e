#include "planner/derive/zero.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "planner/decisions.h"
#include "runtime/base/arithmetic.h"

namespace weft {
namespace {

bool compatibleWith(const Layout& layout, const Axis& axis) {
  return std::all_of(layout.dims().begin(), layout.dims().end(), [&](const AxisList& axes) {
    return std::all_of(axes.begin(), axes.end(), [&](const Axis& other) { return compatible(other, axis); });
  });
}

Layout stateLayout(const Layout& base, const Shape& stored, const Mesh& mesh, int64_t level) {
  AxisList extra;
  for (const Axis& axis : dataParallelAxes(mesh)) {
    if (!base.uses(axis) && compatibleWith(base, axis)) {
      extra.push_back(axis);
    }
  }
  int64_t best = -1;
  for (size_t d = 0; d < stored.size(); ++d) {
    const bool divides = stored[d] % (base.parts(d) * partsOf(extra)) == 0;
    if (divides && (best < 0 || stored[d] / base.parts(d) > stored[best] / base.parts(best))) {
      best = static_cast<int64_t>(d);
    }
  }
  Layout layout = base;
  if (level > 0 && !extra.empty() && best >= 0) {
    AxisList axes = base.dim(best);
    axes.insert(axes.end(), extra.begin(), extra.end());
    layout.setDim(best, axes);
  }
  return layout;
}

// Gives an operator that runs on elements of the state the axes of its layout.
void fix(const Layout& layout, OperatorSharding& sharding) {
  const FactorAxes axes = sharding.rule.projectResult(0, layout).axes;
  for (size_t f = 0; f < axes.size(); ++f) {
    sharding.fixFactor(f, axes[f]);
  }
  sharding.origin = "optimizer state of the parameter";
}

// The parameter whose next value is result 0 of an operator, or made of it alone (a cast of the master's), if any.
std::optional<int> parameterUpdatedBy(const GraphView& view, int op) {
  for (const GraphView::Use& use : view.usesOf(view.resultOf(op, 0))) {
    if (use.op == GraphView::kStep) {
      const std::optional<unsigned> updates = view.graph().results[use.operand].updates;
      if (updates && view.graph().arguments[*updates].kind == ArgumentKind::kParameter) {
        return static_cast<int>(*updates);
      }
    } else if (view.op(use.op).operands.size() == 1) {
      if (const std::optional<int> updated = parameterUpdatedBy(view, use.op)) {
        return updated;
      }
    }
  }
  return std::nullopt;
}

bool hasState(const GraphView& view, int op) {
  const std::vector<GraphValue>& operands = view.op(op).operands;
  return std::any_of(operands.begin(), operands.end(), [&](const GraphValue& operand) {
    return operand.isArgument() && view.graph().arguments[operand.index].kind == ArgumentKind::kState &&
           view.graph().arguments[operand.index].type.shape == view.op(op).results[0].shape;
  });
}

struct StateLayout {
  Layout layout;
  int64_t level = 0;  // of ZeRO
};

// The update operator of one parameter and the state it reads.
void shardOptimizer(const SettledGraph& graph, int op, const StateLayout& made, Shardings& shardings) {
  const auto& [layout, level] = made;
  fix(layout, shardings.operators[op]);
  for (const GraphValue& operand : graph.view.op(op).operands) {
    const bool state = operand.isArgument() &&
                       graph.view.graph().arguments[operand.index].kind == ArgumentKind::kState &&
                       graph.view.graph().arguments[operand.index].type.shape.size() == layout.dimensions();
    if (state) {
      shardings.arguments[operand.index][graph.placement.meshNumber(op)] = {
          layout, absl::StrCat("optimizer state, ZeRO ", level)};
    }
  }
}

}  // namespace

std::vector<int64_t> zeroLevels(const ProgramGraph& graph, const CompileOptions& request) {
  std::vector<int64_t> levels;
  for (const GraphArgument& argument : graph.arguments) {
    levels.push_back(argument.kind == ArgumentKind::kParameter
                         ? zeroLevelOf(request.zeroOf, argument.name, request.zeroLevel())
                         : 0);
  }
  return levels;
}

std::vector<std::pair<unsigned, Shape>> zeroPads(const ProgramGraph& graph, const CompileOptions& request,
                                                 int64_t shards, int64_t others, const UserLayouts& layouts) {
  const std::vector<int64_t> levels = zeroLevels(graph, request);
  std::vector<std::pair<unsigned, Shape>> pads;
  for (unsigned i = 0; i < graph.arguments.size(); ++i) {
    Shape shape = graph.arguments[i].type.shape;
    const bool divides = std::any_of(shape.begin(), shape.end(), [&](int64_t size) { return size % shards == 0; });
    const auto largest = std::max_element(shape.begin(), shape.end());
    const bool large = largest != shape.end() && *largest > shards * kSmallestZeroShard;
    if (levels[i] > 0 && large && !divides && layouts.of(i, 0).empty()) {
      *largest = alignUp(*largest, shards * std::gcd(*largest, others));
      pads.emplace_back(i, shape);
    }
  }
  return pads;
}

Layout stateLayoutOf(const SettledGraph& graph, int parameter, int64_t mesh, const Layout& layout) {
  return stateLayout(layout, graph.stored.of(parameter), graph.placement.meshes.withNumber(mesh),
                     graph.zeroLevelOf(parameter));
}

std::map<int, int> updatesOf(const GraphView& view) {
  std::map<int, int> updates;
  for (int op = 0; op < view.operators(); ++op) {
    const std::optional<int> updated = view.op(op).facts.updatesParameter ? parameterUpdatedBy(view, op) : std::nullopt;
    if (updated) {
      updates.emplace(*updated, op);
    }
  }
  return updates;
}

void shardState(const SettledGraph& graph, Shardings& shardings) {
  const GraphView& view = graph.view;
  std::map<std::string, StateLayout> states;  // of parameters
  for (size_t i = 0; i < shardings.arguments.size(); ++i) {
    const GraphArgument& argument = view.graph().arguments[i];
    if (argument.kind != ArgumentKind::kParameter) {
      continue;
    }
    const int64_t owner = graph.placement.meshes.number(shardings.ownerStages[i]);
    for (auto& [number, sharding] : shardings.arguments[i]) {
      const Layout layout = stateLayoutOf(graph, static_cast<int>(i), number, *sharding.layout);
      if (number == owner) {
        states[argument.name] = {layout, graph.zeroLevelOf(static_cast<int>(i))};
      }
      if (graph.zeroLevelOf(static_cast<int>(i)) >= 3 && !(layout == *sharding.layout)) {
        sharding.layout = layout;
        sharding.origin += "; ZeRO-3";
      }
    }
  }
  for (int op = 0; op < view.operators(); ++op) {
    const GraphOperator& node = view.op(op);
    if (states.count(node.gradientOf) > 0) {
      fix(states[node.gradientOf].layout, shardings.operators[op]);
    }
  }
  for (const auto& [parameter, op] : updatesOf(view)) {
    const auto state = states.find(view.graph().arguments[parameter].name);
    // Without state (the last step of an optimizer of several operators) it runs as its operands lie, as the others do:
    // propagation carries the layout of the finished gradient on, and state lies as what replaces it (closeStates).
    if (hasState(view, op) && state != states.end()) {
      shardOptimizer(graph, op, state->second, shardings);
    }
  }
}

}  // namespace weft
