#include "ir/dist/dist.h"
#include "ir/nn/nn.h"
#include "passes/gates/checks.h"
#include "passes/support/program.h"

namespace weft {

using namespace mlir;  // NOLINT

namespace {

constexpr StringRef kFunctions[] = {"init", "prologue", "forward", "backward", "input_grad", "weight_grad", "update"};
constexpr StringRef kMemories[] = {"parameter", "state", "accumulator", "input", "output", "activation", "constant"};

LogicalResult checkFunction(func::FuncOp function) {
  auto kind = function->getAttrOfType<StringAttr>("dist.kind");
  if (!kind) {
    return function.emitError() << "@" << function.getName() << " is no function of the local state (no dist.kind)";
  }
  if (!llvm::is_contained(kFunctions, kind.getValue()) || function.getName().split('.').first != kind.getValue()) {
    return function.emitError() << "@" << function.getName() << " has dist.kind '" << kind.getValue()
                                << "'; the local state has @init, @prologue, @forward, @backward (or @input_grad and "
                                   "@weight_grad) and @update, each of the kind of its name";
  }
  return success();
}

// What is wrong with the attributes of an argument or result; empty if nothing.
std::string wrongAttributes(DictionaryAttr attrs) {
  auto value = attrs ? attrs.getAs<StringAttr>("dist.value") : StringAttr();
  auto memory = attrs ? attrs.getAs<StringAttr>("dist.memory") : StringAttr();
  if (!value || value.empty()) {
    return "has no dist.value";
  }
  if (!memory || !llvm::is_contained(kMemories, memory.getValue())) {
    return "('" + value.str() + "') has dist.memory '" + (memory ? memory.str() : "") +
           "'; it should be parameter, state, accumulator, input, output, activation or constant";
  }
  return "";
}

LogicalResult checkNames(func::FuncOp function) {
  for (unsigned i = 0; i < function.getNumArguments(); ++i) {
    if (const std::string wrong = wrongAttributes(function.getArgAttrDict(i)); !wrong.empty()) {
      return emitError(function.getArgument(i).getLoc())
             << "argument " << i << " of @" << function.getName() << " " << wrong;
    }
  }
  for (unsigned i = 0; i < function.getNumResults(); ++i) {
    if (const std::string wrong = wrongAttributes(function.getResultAttrDict(i)); !wrong.empty()) {
      return emitError(returned(function, i).getLoc())
             << "result " << i << " of @" << function.getName() << " " << wrong;
    }
  }
  return success();
}

LogicalResult checkTypes(Location place, TypeRange types) {
  for (Type type : types) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    if (!tensor || !tensor.hasStaticShape()) {
      return emitError(place) << "the local state has tensors of static shape only, this is " << type;
    }
    if (tensor.getEncoding()) {
      return emitError(place) << "a layout has no place in the local state: " << type;
    }
  }
  return success();
}

LogicalResult checkOp(Operation* op) {
  if (isa<ir::dist::ReshardOp>(op)) {
    return op->emitError("a reshard has no place in the local state; it should have become collectives");
  }
  if (isa<ir::nn::ConstrainOp, ir::nn::StopGradientOp>(op)) {
    return op->emitError() << op->getName() << " has no place in the local state; it is a word to the compiler only";
  }
  if (!isa_and_nonnull<ir::dist::DistDialect, ir::nn::NnDialect>(op->getDialect())) {
    return op->emitError() << op->getName() << " is no operator of the local state";
  }
  return checkTypes(op->getLoc(), op->getResultTypes());
}

}  // namespace

namespace {

LogicalResult checkBlock(ModuleOp module) {
  for (Operation& op : *module.getBody()) {
    auto function = dyn_cast<func::FuncOp>(op);
    if (!function) {
      return op.emitError() << op.getName() << " has no place in the local state; it holds functions only";
    }
    if (failed(checkFunction(function)) || failed(checkNames(function))) {
      return failure();
    }
    for (BlockArgument argument : function.getArguments()) {
      if (failed(checkTypes(argument.getLoc(), argument.getType()))) {
        return failure();
      }
    }
    for (Operation& inner : function.getBody().front().without_terminator()) {
      if (failed(checkOp(&inner))) {
        return failure();
      }
    }
  }
  return success();
}

}  // namespace

LogicalResult checkLocal(ModuleOp module) {
  for (ModuleOp block : blocksOf(module)) {
    if (failed(checkBlock(block))) {
      return failure();
    }
  }
  return success();
}

}  // namespace weft
