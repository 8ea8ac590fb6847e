#include "planner/derive/shardings.h"

#include <algorithm>

#include "planner/graph/iterations.h"
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
    result.push_back(list.value_or(AxisList()));
  }
  return result;
}

bool OperatorSharding::splitsAnything() const {
  return std::any_of(axes.begin(), axes.end(), [](const auto& list) { return list && !list->empty(); });
}

void OperatorSharding::fixFactor(size_t factor, const AxisList& wanted) {
  axes[factor] = wanted;
  fixed[factor] = true;
}

void OperatorSharding::keepFactor(size_t factor, const AxisList& wanted) {
  fixed[factor] = false;
  kept[factor] = wanted;
  axes[factor] = wanted.empty() ? std::nullopt : std::optional(wanted);
}

bool divides(const SettledGraph& graph, int op, const Rule& rule, const FactorAxes& axes) {
  for (size_t f = 0; f < axes.size(); ++f) {
    const bool cut = static_cast<int>(f) == graph.microBatches.operators[op].batch && !graph.view.op(op).prologueOf;
    const int64_t microBatches = cut ? graph.placement.meshOf(op).microBatches() : 1;
    if (!axes[f].empty() && rule.factors()[f].size % (partsOf(axes[f]) * microBatches) != 0) {
      return false;
    }
  }
  return true;
}

bool inOneBlock(const DimFactors& dim, const Rule& rule, const FactorAxes& axes) {
  for (size_t k = 1; k < dim.size(); ++k) {
    if (!axes[dim[k]].empty() && partsOf(axes[dim[k - 1]]) != rule.factors()[dim[k - 1]].size) {
      return false;
    }
  }
  return true;
}

bool inOneBlock(const Rule& rule, const FactorAxes& axes) {
  const auto all = [&](const std::vector<std::vector<DimFactors>>& tensors) {
    return std::all_of(tensors.begin(), tensors.end(), [&](const std::vector<DimFactors>& dims) {
      return std::all_of(dims.begin(), dims.end(), [&](const DimFactors& dim) { return inOneBlock(dim, rule, axes); });
    });
  };
  return all(rule.operands()) && all(rule.results());
}

absl::StatusOr<Shardings> openShardings(const SettledGraph& graph) {
  Shardings shardings;
  const GraphView& view = graph.view;
  for (int op = 0; op < view.operators(); ++op) {
    WEFT_ASSIGN_OR_RETURN(Rule rule, ruleOf(view, graph.stored, op));
    OperatorSharding& sharding = shardings.operators.emplace_back();
    sharding.rule = std::move(rule);
    sharding.axes.resize(sharding.rule.factors().size());
    sharding.fixed.resize(sharding.axes.size());
    sharding.kept.resize(sharding.axes.size());
  }
  ForwardFactors factors = forwardFactors(view, [&](int op) -> const Rule& { return shardings.operators[op].rule; });
  for (int op = 0; op < view.operators(); ++op) {
    shardings.operators[op].forwardFactors = std::move(factors[op]);
  }
  shardings.arguments.resize(view.graph().arguments.size());
  findOwners(graph, shardings);
  return shardings;
}

}  // namespace weft
