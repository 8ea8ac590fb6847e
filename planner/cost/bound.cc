#include "planner/cost/bound.h"

#include <algorithm>
#include <vector>

#include "planner/derive/micro_batches.h"
#include "planner/graph/flops.h"
#include "planner/graph/graph_view.h"
#include "planner/machine/times.h"
#include "runtime/base/status.h"

namespace weft {

namespace {

// Is it a kernel in every plan?
bool isKernel(const GraphOperator& op) {
  return op.facts.view == ViewKind::kNone && !op.facts.isConstant && op.alternatives.empty();
}

absl::StatusOr<double> workOf(const GraphView& view, int op, const Machine& machine) {
  const GraphOperator& node = view.op(op);
  WEFT_ASSIGN_OR_RETURN(const Rule rule, ruleOf(view, op));
  KernelWork work = arithmeticOf(node.facts, rule, FactorAxes(rule.factors().size()));
  std::vector<DType> types;
  for (unsigned i = 0; i < node.operands.size(); ++i) {
    const TensorType& type = view.typeOf(view.operandOf(op, i));
    types.push_back(type.type);
    work.bytes += type.bytes();
  }
  for (const TensorType& result : node.results) {
    work.bytes += result.bytes();
  }
  work.type = arithmeticType(types, node.results[0].type);
  return leastKernelSeconds(machine, work);
}

}  // namespace

absl::StatusOr<Picoseconds> leastTime(const ProgramGraph& graph, const Machine& machine, int64_t ranks) {
  const GraphView view(graph);
  double work = 0;
  int64_t longest = 0;
  std::vector<int64_t> launches(view.values(), 0);  // of each value: on the longest path to it
  for (int op = 0; op < view.operators(); ++op) {
    int64_t before = 0;
    for (unsigned i = 0; i < view.op(op).operands.size(); ++i) {
      before = std::max(before, launches[view.operandOf(op, i)]);
    }
    if (isKernel(view.op(op))) {
      WEFT_ASSIGN_OR_RETURN(const double mine, workOf(view, op, machine));
      work += mine;
      ++before;
    }
    for (unsigned r = 0; r < view.op(op).results.size(); ++r) {
      launches[view.resultOf(op, r)] = before;
    }
    longest = std::max(longest, before);
  }
  return picosecondsOf(
      std::max(work / static_cast<double>(ranks), static_cast<double>(longest) * machine.launchLatency));
}

}  // namespace weft
