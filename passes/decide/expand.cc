#include "passes/decide/expand.h"

#include "ir/program/program.h"

namespace weft {

using namespace mlir;  // NOLINT

namespace {

Operation* findOperator(func::FuncOp step, int64_t id) {
  for (Operation& op : step.getBody().front()) {
    if (idOf(&op) == id) {
      return &op;
    }
  }
  return nullptr;
}

}  // namespace

LogicalResult expandOperator(func::FuncOp step, int64_t id, const ir::OperatorRegistry& registry) {
  Operation* op = findOperator(step, id);
  const ir::ExpansionFunction* expansion = op != nullptr ? registry.expansion(op) : nullptr;
  if (expansion == nullptr) {
    return step.emitError() << "decisions: operator " << id << " has no expansion in this program";
  }
  OpBuilder builder(op);
  Operation* before = op->getPrevNode();
  FailureOr<SmallVector<Value>> values = (*expansion)(op, builder);
  if (failed(values)) {
    return failure();
  }
  Operation* first = before != nullptr ? before->getNextNode() : &op->getBlock()->front();
  for (Operation* made = first; made != op; made = made->getNextNode()) {
    copyMarks(op, made);
  }
  op->replaceAllUsesWith(*values);
  op->erase();
  assignIds(step->getParentOfType<ModuleOp>());
  return success();
}

}  // namespace weft
