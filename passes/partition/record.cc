#include "passes/partition/record.h"

#include "ir/program/decision_attributes.h"
#include "ir/program/program.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace weft {

using namespace mlir;  // NOLINT

const Decisions* recordOf(ModuleOp module) {
  const Decisions* decisions = decisionsOf(module);
  if (decisions == nullptr) {
    module.emitError() << "has no decisions to realize (" << kDecisionsAttr << "); run --weft-decide before";
    return nullptr;
  }
  func::FuncOp step = stepFunction(module);
  if (!step || decisions->arguments.size() != step.getNumArguments()) {
    module.emitError() << "the decisions know " << decisions->arguments.size() << " arguments, @step has "
                       << (step ? step.getNumArguments() : 0) << "; they were made for another program";
    return nullptr;
  }
  return decisions;
}

}  // namespace weft
