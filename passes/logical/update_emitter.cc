#include "passes/logical/update_emitter.h"

#include "ir/nn/create.h"
#include "ir/nn/nn.h"
#include "ir/program/program.h"

namespace weft {

using namespace mlir;  // NOLINT

UpdateEmitter::UpdateEmitter(func::FuncOp step)
    : step_(step), builder_(step.getBody().front().getTerminator()), signature_(step) {}

Operation* UpdateEmitter::create(Location loc, StringRef mnemonic, ValueRange operands, NamedAttrList attrs) {
  if (failed_ || !llvm::all_of(operands, [](Value operand) { return static_cast<bool>(operand); })) {
    failed_ = true;
    return nullptr;
  }
  FailureOr<Operation*> op = ir::createOperator(builder_, loc, mnemonic, operands, std::move(attrs));
  if (mlir::failed(op)) {
    failed_ = true;
    return nullptr;
  }
  (*op)->setAttr(kPhaseAttr, builder_.getStringAttr("update"));
  return *op;
}

Value UpdateEmitter::value(Location loc, StringRef mnemonic, ValueRange operands, NamedAttrList attrs) {
  Operation* op = create(loc, mnemonic, operands, std::move(attrs));
  return op ? op->getResult(0) : Value();
}

Value UpdateEmitter::scalar(Type element, double value) {
  Value& known = scalars_[{element.getAsOpaquePointer(), value}];
  if (!known) {
    OperationState state(step_.getLoc(), ir::nn::FillOp::getOperationName());
    state.addTypes(RankedTensorType::get({}, element));
    state.addAttribute("value", builder_.getF64FloatAttr(value));
    state.addAttribute(kPhaseAttr, builder_.getStringAttr("update"));
    known = builder_.create(state)->getResult(0);
  }
  return known;
}

Type UpdateEmitter::elementOf(Value value) {
  return cast<RankedTensorType>(value.getType()).getElementType();
}

NamedAttrList UpdateEmitter::named(StringRef kind, const std::string& name) {
  NamedAttrList attrs;
  attrs.set(kKindAttr, builder_.getStringAttr(kind));
  attrs.set(kNameAttr, builder_.getStringAttr(name));
  return attrs;
}

Value UpdateEmitter::state(const std::string& name, Type type, double first) {
  if (BlockArgument known = signature_.argument(name)) {
    // The graph's own may be the step count, which dropout reads too, and nothing else.
    const bool shared = name == kStepCountState && known.getType() == type && first == 0;
    if (made_.count(name) == 0 && !shared) {
      emitError(known.getLoc()) << "'" << name << "' is the name of a value that the optimizer keeps; give this one "
                                << "another";
      failed_ = true;
    }
    return known;
  }
  made_.insert(name);
  NamedAttrList init;
  init.set("distribution", builder_.getStringAttr("constant"));
  init.set("a", builder_.getF64FloatAttr(first));
  init.set("b", builder_.getF64FloatAttr(0.0));
  NamedAttrList attrs = named("state", name);
  attrs.set(kInitAttr, init.getDictionary(builder_.getContext()));
  return signature_.addArgument(type, attrs, step_.getLoc());
}

void UpdateEmitter::replace(Value argument, Value next) {
  if (failed_) {
    return;
  }
  auto replaced = cast<BlockArgument>(argument);
  NamedAttrList attrs = named("updated", signature_.nameOf(replaced));
  attrs.set(kUpdatesAttr, builder_.getI64IntegerAttr(replaced.getArgNumber()));
  signature_.addResult(next, attrs);
}

}  // namespace weft
