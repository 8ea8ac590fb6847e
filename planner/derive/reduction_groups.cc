#include "planner/derive/reduction_groups.h"

#include <algorithm>
#include <map>

#include "planner/graph/sums.h"

namespace weft {
namespace {

// Over which axes a value is a partial sum, and how many reductions its terms have had before.
struct Added {
  AxisList sum;
  int reductions = 0;
};

Added addedTo(const Added& a, const Added& b) {
  if (a.sum == b.sum) {
    return {a.sum, a.reductions + b.reductions};
  }
  return {{}, a.reductions + b.reductions + (a.sum.empty() ? 0 : 1) + (b.sum.empty() ? 0 : 1)};
}

// The reductions of the sum as its operators stand, that of its result included.
int reductionsOf(const GraphView& view, const Propagation& propagation, const Sum& sum) {
  std::map<int, Added> added;  // by value
  for (const int value : sum.terms) {
    added[value] = {propagation.sumOf(value), 0};
  }
  for (const int op : sum.operators) {
    added[view.resultOf(op, 0)] = addedTo(added[view.operandOf(op, 0)], added[view.operandOf(op, 1)]);
  }
  const Added& all = added[view.resultOf(sum.operators.back(), 0)];
  return all.reductions + (all.sum.empty() ? 0 : 1);
}

}  // namespace

std::vector<std::vector<unsigned>> reductionGroups(const SettledGraph& graph, const Propagation& propagation, int op) {
  const GraphView& view = graph.view;
  const Sum sum = view.op(op).phase == Phase::kBackward ? sumEndingIn(view, op) : Sum();
  const bool oneStage = std::all_of(sum.terms.begin(), sum.terms.end(), [&](int value) {
    const std::optional<int> producer = view.producerOf(value);
    return !producer || graph.placement.stages[*producer] == graph.placement.stages[op];
  });
  if (sum.terms.size() < 3 || !oneStage) {
    return {};
  }
  std::vector<std::vector<unsigned>> groups;
  std::vector<AxisList> sums;   // of the groups
  std::vector<unsigned> whole;  // no sums: added last
  for (unsigned term = 0; term < sum.terms.size(); ++term) {
    const AxisList& partial = propagation.sumOf(sum.terms[term]);
    const auto known = std::find(sums.begin(), sums.end(), partial);
    if (partial.empty()) {
      whole.push_back(term);
    } else if (known != sums.end()) {
      groups[known - sums.begin()].push_back(term);
    } else {
      sums.push_back(partial);
      groups.push_back({term});
    }
  }
  if (static_cast<int>(groups.size()) >= reductionsOf(view, propagation, sum)) {
    return {};
  }
  if (!whole.empty()) {
    groups.push_back(std::move(whole));
  }
  return groups;
}

}  // namespace weft
