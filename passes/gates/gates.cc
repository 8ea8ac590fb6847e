#include "ir/dist/dist.h"
#include "ir/nn/operator_interface.h"
#include "mlir/Pass/Pass.h"
#include "passes/gates/passes.h"
#include "passes/support/program.h"

namespace weft {
namespace {

using namespace mlir;  // NOLINT

LogicalResult checkLogical(ModuleOp module) {
  func::FuncOp step = stepFunction(module);
  if (!step) {
    return module.emitError("the logical state needs a function @step");
  }
  for (const Argument& argument : argumentsOf(step)) {
    if (argument.kind != "input" && argument.kind != "parameter" && argument.kind != "state") {
      return step.emitError() << "argument " << argument.index << " has kind '" << argument.kind
                              << "'; it should be input, parameter or state";
    }
    if (argument.name.empty()) {
      return step.emitError() << "argument " << argument.index << " has no nn.name";
    }
  }
  const WalkResult walked = step.walk([](Operation* op) {
    if (isa_and_nonnull<ir::dist::DistDialect>(op->getDialect())) {
      op->emitError("an op of the dist dialect has no place in the logical state");
      return WalkResult::interrupt();
    }
    for (Type type : op->getResultTypes()) {
      if (ir::dist::hasLayout(type)) {
        op->emitError() << "a layout has no place in the logical state: " << type;
        return WalkResult::interrupt();
      }
    }
    return WalkResult::advance();
  });
  return failure(walked.wasInterrupted());
}

LogicalResult checkValue(Value value, const Mesh& mesh) {
  if (!ir::dist::hasLayout(value.getType())) {
    return emitError(value.getLoc()) << "every value of the annotated state has a layout, this one is "
                                     << value.getType();
  }
  FailureOr<Layout> layout = ir::dist::layoutOf(value.getType(), mesh, value.getLoc());
  if (failed(layout)) {
    return failure();
  }
  if (absl::Status status = layout->check(ir::shapeOf(value), mesh); !status.ok()) {
    return emitError(value.getLoc()) << std::string(status.message());
  }
  return success();
}

LogicalResult checkAnnotated(ModuleOp module) {
  FailureOr<Mesh> mesh = meshOf(module);
  if (failed(mesh)) {
    return failure();
  }
  for (auto function : module.getOps<func::FuncOp>()) {
    for (BlockArgument argument : function.getArguments()) {
      if (failed(checkValue(argument, *mesh))) {
        return failure();
      }
    }
    for (Operation& op : function.getBody().front().without_terminator()) {
      for (Value result : op.getResults()) {
        if (failed(checkValue(result, *mesh))) {
          return failure();
        }
      }
    }
  }
  return success();
}

LogicalResult checkLocal(ModuleOp module) {
  for (auto function : module.getOps<func::FuncOp>()) {
    if (!function->hasAttr("dist.kind")) {
      return function.emitError() << "@" << function.getName() << " is no function of the local state (no dist.kind)";
    }
    for (unsigned i = 0; i < function.getNumArguments(); ++i) {
      if (!function.getArgAttr(i, "dist.value")) {
        return function.emitError() << "argument " << i << " of @" << function.getName() << " has no dist.value";
      }
    }
    for (unsigned i = 0; i < function.getNumResults(); ++i) {
      if (!function.getResultAttr(i, "dist.value")) {
        return function.emitError() << "result " << i << " of @" << function.getName() << " has no dist.value";
      }
    }
  }
  const WalkResult walked = module.walk([](Operation* op) {
    if (isa<ir::dist::ReshardOp>(op)) {
      op->emitError("a reshard has no place in the local state; it should have become collectives");
      return WalkResult::interrupt();
    }
    for (Type type : op->getResultTypes()) {
      if (ir::dist::hasLayout(type)) {
        op->emitError() << "a layout has no place in the local state: " << type;
        return WalkResult::interrupt();
      }
    }
    return WalkResult::advance();
  });
  return failure(walked.wasInterrupted());
}

using Check = LogicalResult (*)(ModuleOp);

class GatePass : public PassWrapper<GatePass, OperationPass<ModuleOp>> {
 public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(GatePass)
  GatePass(StringRef argument, StringRef description, Check check)
      : argument_(argument), description_(description), check_(check) {}

  StringRef getArgument() const override { return argument_; }
  StringRef getDescription() const override { return description_; }
  void runOnOperation() override {
    if (failed(check_(getOperation()))) {
      signalPassFailure();
    }
  }

 private:
  StringRef argument_;
  StringRef description_;
  Check check_;
};

}  // namespace

std::unique_ptr<Pass> createVerifyLogicalPass() {
  return std::make_unique<GatePass>("weft-verify-logical", "Check the logical state", checkLogical);
}

std::unique_ptr<Pass> createVerifyAnnotatedPass() {
  return std::make_unique<GatePass>("weft-verify-annotated", "Check the annotated state", checkAnnotated);
}

std::unique_ptr<Pass> createVerifyLocalPass() {
  return std::make_unique<GatePass>("weft-verify-local", "Check the local state", checkLocal);
}

}  // namespace weft
