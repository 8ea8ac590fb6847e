#include "passes/partition/value_shapes.h"

#include "passes/decide/build_program_graph.h"
#include "planner/derive/pads.h"

namespace weft {

using namespace mlir;  // NOLINT: the file is about MLIR values throughout

std::vector<Shape> ValueShapes::operands(Operation* op) const {
  std::vector<Shape> shapes;
  for (Value value : op->getOperands()) {
    shapes.push_back(of(value));
  }
  return shapes;
}

std::vector<Shape> ValueShapes::results(Operation* op) const {
  std::vector<Shape> shapes;
  for (Value value : op->getResults()) {
    shapes.push_back(of(value));
  }
  return shapes;
}

FailureOr<ValueShapes> storedShapes(func::FuncOp step, const Decisions& decisions) {
  FailureOr<ProgramGraph> graph = buildProgramGraph(step, /*registry=*/nullptr);
  if (failed(graph)) {
    return failure();
  }
  std::map<unsigned, Shape> padded;
  for (unsigned i = 0; i < graph->arguments.size(); ++i) {
    padded[i] = decisions.arguments[i].layout.storedShape(graph->arguments[i].type.shape);
  }
  const GraphView view(*graph);
  const absl::StatusOr<StoredShapes> stored = spreadPads(view, padded);
  if (!stored.ok()) {
    emitPlannerError(step->getParentOfType<ModuleOp>(), stored.status());
    return failure();
  }
  // The view numbers values as the function has them.
  ValueShapes shapes;
  int next = 0;
  for (Value argument : step.getArguments()) {
    shapes.set(argument, stored->of(next++));
  }
  for (Operation& op : step.getBody().front().without_terminator()) {
    for (Value result : op.getResults()) {
      shapes.set(result, stored->of(next++));
    }
  }
  return shapes;
}

}  // namespace weft
