#include "planner/derive/operator_time.h"

#include <vector>

#include "planner/graph/flops.h"
#include "planner/machine/times.h"

namespace weft {

int64_t localBytes(const SettledGraph& graph, int value, const Layout& layout) {
  return TensorType{layout.localShape(graph.stored.of(value)), graph.view.typeOf(value).type}.bytes();
}

Picoseconds operatorTime(const SettledGraph& graph, const Machine& machine, int op, const Rule& rule,
                         const FactorAxes& axes) {
  const GraphView& view = graph.view;
  const GraphOperator& node = view.op(op);
  if (node.facts.view != ViewKind::kNone || node.facts.isConstant) {
    return 0;
  }
  const OperatorMicroBatches& cut = graph.microBatches.operators[op];
  const int64_t times = cut.perMicroBatch ? graph.placement.meshOf(op).microBatches() : 1;
  FactorAxes timed = axes;
  if (times > 1 && cut.batch >= 0) {
    timed[cut.batch].push_back({AxisKind::kTime, 1, times});
  }
  KernelWork work = arithmeticOf(node.facts, rule, timed);
  work.kernel = node.facts.kind;
  std::vector<DType> types;
  for (unsigned i = 0; i < node.operands.size(); ++i) {
    types.push_back(view.typeOf(view.operandOf(op, i)).type);
    work.bytes += localBytes(graph, view.operandOf(op, i), rule.operandLayout(i, timed));
  }
  for (unsigned r = 0; r < node.results.size(); ++r) {
    work.bytes += localBytes(graph, view.resultOf(op, r), rule.resultLayout(r, timed));
  }
  work.type = arithmeticType(types, node.results[0].type);
  return times * kernelTime(machine, work);
}

}  // namespace weft
