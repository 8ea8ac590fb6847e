#include "ir/dist/dist.h"
#include "ir/program/program.h"
#include "passes/gates/check_program.h"
#include "passes/gates/checks.h"

namespace weft {

using namespace mlir;  // NOLINT

namespace {

LogicalResult checkArguments(func::FuncOp step) {
  for (BlockArgument argument : step.getArguments()) {
    if (ir::dist::hasLayout(argument.getType())) {
      return emitError(argument.getLoc()) << "a layout has no place in the logical state: " << argument.getType();
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
  if (module->hasAttr(kStateAttr)) {
    return module.emitError() << "a module of the logical state has no " << kStateAttr << ", this one "
                              << module->getAttr(kStateAttr);
  }
  if (!stepFunction(module)) {
    return module.emitError("the logical state needs a function @step");
  }
  const auto layouts = [&] {
    const WalkResult walked = module.walk(
        [](Operation* op) { return failed(checkOp(op)) ? WalkResult::interrupt() : WalkResult::advance(); });
    return success(!walked.wasInterrupted() && succeeded(checkArguments(stepFunction(module))));
  };
  return success(succeeded(checkForms(module)) && succeeded(layouts()) && succeeded(checkNames(module)));
}

}  // namespace weft
