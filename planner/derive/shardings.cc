#include "planner/derive/shardings.h"

#include <algorithm>

#include "runtime/base/status.h"

namespace weft {
namespace {

void findOwners(const SettledGraph& graph, Shardings& shardings) {
  const GraphView& view = graph.view;
  const std::vector<int64_t>& stages = graph.placement.stages;
  for (size_t i = 0; i < view.graph().arguments.size(); ++i) {
    std::optional<int64_t> forward;
    std::optional<int64_t> any;
    for (const GraphView::Use& use : view.usesOf(static_cast<int>(i))) {
      if (use.op == GraphView::kStep) {
        continue;
      }
      const int64_t stage = stages[use.op];
      shardings.arguments[i][graph.placement.meshNumber(use.op)];
      any = std::min(any.value_or(stage), stage);
      if (view.op(use.op).phase == Phase::kForward) {
        forward = std::min(forward.value_or(stage), stage);
      }
    }
    shardings.ownerStages.push_back(forward.value_or(any.value_or(0)));
  }
  for (const GraphResult& result : view.graph().results) {
    const std::optional<int> made = view.producerOf(view.valueOf(result.value));
    if (result.updates && made) {
      shardings.ownerStages[*result.updates] = stages[*made];
    }
  }
  for (size_t i = 0; i < shardings.arguments.size(); ++i) {
    shardings.arguments[i][graph.placement.meshes.number(shardings.ownerStages[i])];
  }
}

}  // namespace

FactorAxes OperatorSharding::closed() const {
  FactorAxes result;
  for (const auto& list : axes) {
    result.push_back(list.value_or(std::vector<Axis>()));
  }
  return result;
}

bool OperatorSharding::splitsAnything() const {
  return std::any_of(axes.begin(), axes.end(), [](const auto& list) { return list && !list->empty(); });
}

void OperatorSharding::fix(const Layout& layout, const std::string& from) {
  const FactorAxes projected = rule.projectResult(0, layout).axes;
  axes.assign(projected.begin(), projected.end());
  origin = from;
}

absl::StatusOr<Shardings> openShardings(const SettledGraph& graph) {
  Shardings shardings;
  const GraphView& view = graph.view;
  for (int op = 0; op < view.operators(); ++op) {
    WEFT_ASSIGN_OR_RETURN(Rule rule, ruleOf(view, graph.stored, op));
    OperatorSharding& sharding = shardings.operators.emplace_back();
    sharding.rule = std::move(rule);
    sharding.axes.resize(sharding.rule.factors().size());
  }
  shardings.arguments.resize(view.graph().arguments.size());
  findOwners(graph, shardings);
  return shardings;
}

}  // namespace weft
