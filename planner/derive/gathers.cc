#include "planner/derive/gathers.h"

#include <algorithm>
#include <memory>
#include <set>
#include <utility>

#include "ir/layout/reshard.h"

namespace weft {

std::vector<ParameterGather> parameterGathers(const SettledGraph& graph, const Shardings& shardings,
                                              const Machine& machine) {
  const GraphView& view = graph.view;
  std::vector<ParameterGather> gathers;
  std::vector<std::unique_ptr<ReshardPlanner>> planners;
  for (const Mesh& mesh : graph.placement.meshes.ofSubmesh) {
    planners.push_back(std::make_unique<ReshardPlanner>(mesh, machine));
  }
  for (unsigned i = 0; i < shardings.arguments.size(); ++i) {
    const GraphArgument& argument = view.graph().arguments[i];
    if (argument.kind != ArgumentKind::kParameter) {
      continue;
    }
    const Shape& logical = argument.type.shape;
    const Shape& stored = graph.stored.of(static_cast<int>(i));
    ParameterGather gather{i};
    std::set<std::pair<Phase, int64_t>> calls;
    for (const GraphView::Use& use : view.usesOf(static_cast<int>(i))) {
      if (use.op == GraphView::kStep || view.op(use.op).phase == Phase::kUpdate) {
        continue;
      }
      const int64_t mesh = graph.placement.meshNumber(use.op);
      const OperatorSharding& reader = shardings.operators[use.op];
      const Layout from = withPads(*shardings.arguments[i].at(mesh).layout, logical, stored);
      const Layout to = withPads(reader.rule.operandLayout(use.operand, reader.closed()), logical, stored);
      const absl::StatusOr<ReshardPlan> plan = planners[mesh]->plan(stored, argument.type.type, from, to);
      if (plan.ok() && plan->cost > 0) {
        calls.insert({view.op(use.op).phase, graph.placement.stages[use.op]});
        gather.time = std::max(gather.time, plan->cost);
        gather.bytes = std::max(gather.bytes, TensorType{to.localShape(logical), argument.type.type}.bytes());
      }
    }
    gather.calls = static_cast<int64_t>(calls.size());
    if (gather.calls > 0) {
      gathers.push_back(gather);
    }
  }
  return gathers;
}

void chooseGathers(const std::vector<ParameterGather>& gathers, int64_t microBatches, int64_t budget,
                   std::vector<ArgumentDecision>& arguments) {
  const auto saved = [&](const ParameterGather& gather) {
    return static_cast<double>(gather.calls * microBatches - 1) * static_cast<double>(gather.time) /
           static_cast<double>(gather.bytes);
  };
  std::vector<ParameterGather> order = gathers;
  std::stable_sort(order.begin(), order.end(),
                   [&](const ParameterGather& a, const ParameterGather& b) { return saved(a) > saved(b); });
  for (const ParameterGather& gather : order) {
    const bool once = budget < 0 || gather.bytes <= budget;
    arguments[gather.argument].gather = once ? GatherPolicy::kOncePerStep : GatherPolicy::kEachCall;
    budget -= once && budget >= 0 ? gather.bytes : 0;
  }
}

}  // namespace weft
