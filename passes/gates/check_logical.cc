#include "ir/dist/dist.h"
#include "passes/gates/checks.h"
#include "passes/support/program.h"

namespace weft {

using namespace mlir;  // NOLINT

namespace {

LogicalResult checkArguments(func::FuncOp step) {
  for (const Argument& argument : argumentsOf(step)) {
    const Location place = step.getArgument(argument.index).getLoc();
    if (argument.kind != "input" && argument.kind != "parameter" && argument.kind != "state") {
      return emitError(place) << "argument " << argument.index << " of @step has kind '" << argument.kind
                              << "'; it should be input, parameter or state";
    }
    if (argument.name.empty()) {
      return emitError(place) << "argument " << argument.index << " of @step has no nn.name";
    }
    if (ir::dist::hasLayout(step.getArgument(argument.index).getType())) {
      return emitError(place) << "a layout has no place in the logical state: "
                              << step.getArgument(argument.index).getType();
    }
  }
  return success();
}

LogicalResult checkOp(Operation* op) {
  if (isa_and_nonnull<ir::dist::DistDialect>(op->getDialect())) {
    return op->emitError() << op->getName() << " has no place in the logical state; it belongs to the states after";
  }
  for (Type type : op->getResultTypes()) {
    if (ir::dist::hasLayout(type)) {
      return op->emitError() << "a layout has no place in the logical state: " << type;
    }
  }
  return success();
}

}  // namespace

LogicalResult checkLogical(ModuleOp module) {
  func::FuncOp step = stepFunction(module);
  if (!step) {
    return module.emitError("the logical state needs a function @step");
  }
  if (failed(checkArguments(step))) {
    return failure();
  }
  const WalkResult walked =
      module.walk([](Operation* op) { return failed(checkOp(op)) ? WalkResult::interrupt() : WalkResult::advance(); });
  return failure(walked.wasInterrupted());
}

}  // namespace weft
