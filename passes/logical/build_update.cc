// Appends the update of a training step: gradient norm and clip, optimizer, learning rate and step count, all as
// operators on device state; and builds @init, which makes the first values of parameters and state.
//
// Each gradient passes through an nn.constrain marked nn.gradient_of: `decide` gives it the layout in which the
// gradient is accumulated and applied (the optimizer state's layout: ZeRO).
//
// Formulas: clip coefficient min(1, max_norm / (norm + 1e-6)), norm over all parameters; see the kernels for SGD and
// Adam.

#include <cmath>
#include <optional>

#include "ir/nn/create.h"
#include "ir/nn/nn.h"
#include "ir/program/program.h"
#include "ir/program/signature.h"
#include "mlir/IR/Builders.h"
#include "mlir/Pass/Pass.h"
#include "passes/logical/request_attributes.h"

namespace weft {

#define GEN_PASS_DEF_BUILDUPDATEPASS
#include "passes/generated/passes.h.inc"

namespace {

using namespace mlir;  // NOLINT

// FNV-1a: a stable number for a parameter's random stream.
int64_t streamKey(const std::string& name) {
  uint32_t hash = 2166136261u;
  for (const char c : name) {
    hash = (hash ^ static_cast<uint8_t>(c)) * 16777619u;
  }
  return hash;
}

class UpdateBuilder {
 public:
  UpdateBuilder(ModuleOp module, Request request)
      : module_(module), step_(stepFunction(module)), builder_(module.getContext()), request_(std::move(request)) {}

  LogicalResult run() {
    if (!step_) {
      return module_.emitError("the module has no function @step");
    }
    builder_.setInsertionPoint(step_.getBody().front().getTerminator());
    signature_.emplace(step_);
    if (collectGradients() && request_.optimizer && request_.optimizer->kind != "none") {
      if (failed(clip()) || failed(applyOptimizer(*request_.optimizer))) {
        return failure();
      }
    }
    signature_->finish();
    buildInit();
    assignIds(module_);
    return success(!failed_);
  }

 private:
  struct Gradient {
    unsigned argument;
    std::string name;
    Value value;
  };

  Operation* create(Location loc, StringRef mnemonic, ValueRange operands, NamedAttrList attrs = {}) {
    FailureOr<Operation*> op = ir::createOperator(builder_, loc, mnemonic, operands, std::move(attrs));
    if (failed(op)) {
      failed_ = true;
      return nullptr;
    }
    (*op)->setAttr(kPhaseAttr, builder_.getStringAttr("update"));
    return *op;
  }

  Value createValue(Location loc, StringRef mnemonic, ValueRange operands, NamedAttrList attrs = {}) {
    Operation* op = create(loc, mnemonic, operands, std::move(attrs));
    return op ? op->getResult(0) : Value();
  }

  Value scalar(Location loc, Type element, double value) {
    OperationState state(loc, ir::nn::FillOp::getOperationName());
    state.addTypes(RankedTensorType::get({}, element));
    state.addAttribute("value", builder_.getF64FloatAttr(value));
    state.addAttribute(kPhaseAttr, builder_.getStringAttr("update"));
    return builder_.create(state)->getResult(0);
  }

  // Takes the gradients off the results and gives each its constrain op; with option gradient_outputs they come back as
  // outputs.
  bool collectGradients() {
    Operation* terminator = step_.getBody().front().getTerminator();
    const bool asOutputs = request_.options.gradientOutputs;
    for (unsigned i = 0; i < step_.getNumResults(); ++i) {
      if (resultText(step_, i, kKindAttr) != "gradient") {
        continue;
      }
      const std::string parameter = resultText(step_, i, kNameAttr).substr(5);  // "grad."
      if (BlockArgument argument = signature_->argument(parameter)) {
        gradients_.push_back({argument.getArgNumber(), parameter, terminator->getOperand(i)});
      }
    }
    llvm::BitVector taken(step_.getNumResults());
    for (unsigned i = 0; i < step_.getNumResults(); ++i) {
      taken[i] = resultText(step_, i, kKindAttr) == "gradient";
    }
    step_.eraseResults(taken);
    terminator->eraseOperands(taken);
    for (Gradient& gradient : gradients_) {
      NamedAttrList attrs;
      attrs.set("layout", builder_.getStringAttr(""));
      Operation* op = create(gradient.value.getLoc(), "constrain", gradient.value, attrs);
      if (op == nullptr) {
        return false;
      }
      op->setAttr(kGradientOfAttr, builder_.getStringAttr(gradient.name));
      op->setAttr(kNameAttr, builder_.getStringAttr("grad." + gradient.name));
      gradient.value = op->getResult(0);
      if (asOutputs) {
        addNamedResult(gradient.value, "output", "grad." + gradient.name);
      }
    }
    return !gradients_.empty();
  }

  NamedAttrList named(StringRef kind, const std::string& name) {
    NamedAttrList attrs;
    attrs.set(kKindAttr, builder_.getStringAttr(kind));
    attrs.set(kNameAttr, builder_.getStringAttr(name));
    return attrs;
  }

  void addNamedResult(Value value, StringRef kind, const std::string& name) {
    signature_->addResult(value, named(kind, name));
  }

  BlockArgument argumentOf(const Gradient& gradient) { return step_.getBody().front().getArgument(gradient.argument); }

  Type elementType(const Gradient& gradient) {
    return cast<RankedTensorType>(gradient.value.getType()).getElementType();
  }

  LogicalResult clip() {
    const double maxNorm = request_.options.clipNorm;
    if (maxNorm <= 0) {
      return success();
    }
    const Location loc = module_.getLoc();
    Value total;
    for (const Gradient& gradient : gradients_) {
      Value squares = createValue(gradient.value.getLoc(), "sum_squares", gradient.value);
      total = total ? createValue(loc, "add", {total, squares}) : squares;
    }
    if (failed_) {
      return failure();
    }
    Type element = elementType(gradients_.front());
    Value norm = createValue(loc, "sqrt", total);
    Value margin = createValue(loc, "add", {norm, scalar(loc, element, 1e-6)});
    Value ratio = createValue(loc, "div", {scalar(loc, element, maxNorm), margin});
    Value coefficient = createValue(loc, "minimum", {ratio, scalar(loc, element, 1.0)});
    for (Gradient& gradient : gradients_) {
      gradient.value = createValue(gradient.value.getLoc(), "mul", {gradient.value, coefficient});
    }
    addNamedResult(norm, "output", "grad_norm");
    return success(!failed_);
  }

  // The state argument `name`, made with a constant first value if the user's graph does not have it.
  Value stateArgument(const std::string& name, Type type, double first) {
    if (BlockArgument known = signature_->argument(name)) {
      return known;
    }
    NamedAttrList init;
    init.set("distribution", builder_.getStringAttr("constant"));
    init.set("a", builder_.getF64FloatAttr(first));
    init.set("b", builder_.getF64FloatAttr(0.0));
    NamedAttrList attrs = named("state", name);
    attrs.set(kInitAttr, init.getDictionary(builder_.getContext()));
    return signature_->addArgument(type, attrs, module_.getLoc());
  }

  void addUpdated(Value argument, Value value) {
    auto replaced = cast<BlockArgument>(argument);
    NamedAttrList attrs = named("updated", signature_->nameOf(replaced));
    attrs.set(kUpdatesAttr, builder_.getI64IntegerAttr(replaced.getArgNumber()));
    signature_->addResult(value, attrs);
  }

  LogicalResult applyOptimizer(const Optimizer& optimizer) {
    const Location loc = module_.getLoc();
    Value lr = stateArgument("lr", RankedTensorType::get({}, builder_.getF32Type()), optimizer.setting("lr"));
    Value count = stateArgument("step", RankedTensorType::get({}, builder_.getI32Type()), 0);
    OperationState one(loc, ir::nn::FillOp::getOperationName());
    one.addTypes(count.getType());
    one.addAttribute("value", builder_.getF64FloatAttr(1.0));
    one.addAttribute(kPhaseAttr, builder_.getStringAttr("update"));
    Value next = createValue(loc, "add", {count, builder_.create(one)->getResult(0)});
    for (Gradient& gradient : gradients_) {
      const LogicalResult done =
          optimizer.kind == "sgd" ? applySgd(optimizer, gradient, lr) : applyAdam(optimizer, gradient, lr, next);
      if (failed(done)) {
        return failure();
      }
    }
    addUpdated(count, next);
    return success(!failed_);
  }

  LogicalResult applySgd(const Optimizer& optimizer, const Gradient& gradient, Value lr) {
    Value parameter = argumentOf(gradient);
    Value momentum = stateArgument("momentum." + gradient.name, parameter.getType(), 0);
    NamedAttrList attrs;
    attrs.set("momentum", builder_.getF64FloatAttr(optimizer.setting("momentum")));
    attrs.set("weight_decay", builder_.getF64FloatAttr(optimizer.setting("weight_decay")));
    attrs.set("nesterov", builder_.getBoolAttr(optimizer.nesterov));
    Operation* op = create(parameter.getLoc(), "sgd", {parameter, gradient.value, momentum, lr}, attrs);
    return finishUpdate(op, gradient, {parameter, momentum});
  }

  LogicalResult applyAdam(const Optimizer& optimizer, const Gradient& gradient, Value lr, Value step) {
    Value parameter = argumentOf(gradient);
    Value first = stateArgument("adam.m." + gradient.name, parameter.getType(), 0);
    Value second = stateArgument("adam.v." + gradient.name, parameter.getType(), 0);
    NamedAttrList attrs;
    attrs.set("beta1", builder_.getF64FloatAttr(optimizer.setting("beta1")));
    attrs.set("beta2", builder_.getF64FloatAttr(optimizer.setting("beta2")));
    attrs.set("epsilon", builder_.getF64FloatAttr(optimizer.setting("epsilon")));
    attrs.set("weight_decay", builder_.getF64FloatAttr(optimizer.setting("weight_decay")));
    attrs.set("decoupled", builder_.getBoolAttr(optimizer.kind == "adamw"));
    Operation* op = create(parameter.getLoc(), "adam", {parameter, gradient.value, first, second, lr, step}, attrs);
    return finishUpdate(op, gradient, {parameter, first, second});
  }

  LogicalResult finishUpdate(Operation* op, const Gradient& gradient, ArrayRef<Value> arguments) {
    if (op == nullptr) {
      return failure();
    }
    op->setAttr(kNameAttr, builder_.getStringAttr("update." + gradient.name));
    for (auto [argument, result] : llvm::zip(arguments, op->getResults())) {
      addUpdated(argument, result);
    }
    return success();
  }

  // @init: one generator per parameter and state.
  void buildInit() {
    if (initFunction(module_)) {
      return;
    }
    OpBuilder::InsertionGuard guard(builder_);
    builder_.setInsertionPointToEnd(module_.getBody());
    auto init = builder_.create<func::FuncOp>(module_.getLoc(), "init", builder_.getFunctionType({}, {}));
    builder_.setInsertionPointToStart(init.addEntryBlock());
    auto terminator = builder_.create<func::ReturnOp>(module_.getLoc());
    builder_.setInsertionPoint(terminator);
    SignatureBuilder signature(init);
    for (const Argument& argument : argumentsOf(step_)) {
      auto spec = step_.getArgAttrOfType<DictionaryAttr>(argument.index, kInitAttr);
      if (argument.kind == "input" || !spec) {
        continue;
      }
      Value value = initialValue(step_.getArgument(argument.index), argument.name, spec);
      signature.addResult(value, named(argument.kind, argument.name));
    }
    signature.finish();
  }

  Value initialValue(BlockArgument argument, const std::string& name, DictionaryAttr spec) {
    const std::string distribution = spec.getAs<StringAttr>("distribution").getValue().str();
    auto number = [&](StringRef key) {
      auto attr = spec.getAs<FloatAttr>(key);
      return attr ? attr.getValueAsDouble() : 0.0;
    };
    const bool random = distribution == "normal" || distribution == "uniform";
    OperationState state(argument.getLoc(),
                         random ? ir::nn::RandomOp::getOperationName() : ir::nn::FillOp::getOperationName());
    state.addTypes(argument.getType());
    if (random) {
      state.addAttribute("distribution", builder_.getStringAttr(distribution));
      state.addAttribute("a", builder_.getF64FloatAttr(number("a")));
      state.addAttribute("b", builder_.getF64FloatAttr(number("b")));
      state.addAttribute("seed", builder_.getI64IntegerAttr(request_.options.seed));
      state.addAttribute("key", builder_.getI64IntegerAttr(streamKey(name)));
    } else {
      const double value = distribution == "ones" ? 1.0 : distribution == "zeros" ? 0.0 : number("a");
      state.addAttribute("value", builder_.getF64FloatAttr(value));
    }
    state.addAttribute(kNameAttr, builder_.getStringAttr("init." + name));
    return builder_.create(state)->getResult(0);
  }

  ModuleOp module_;
  func::FuncOp step_;
  OpBuilder builder_;
  Request request_;
  std::optional<SignatureBuilder> signature_;  // of @step
  std::vector<Gradient> gradients_;
  bool failed_ = false;
};

class BuildUpdatePass : public impl::BuildUpdatePassBase<BuildUpdatePass> {
 public:
  void runOnOperation() override {
    FailureOr<Request> request = readRequest(getOperation());
    if (failed(request) || failed(UpdateBuilder(getOperation(), *std::move(request)).run())) {
      signalPassFailure();
    }
  }
};

}  // namespace
}  // namespace weft
