// Appends the update of a training step: gradient norm and clip, optimizer, learning rate and step count, all as
// operators on device state; and builds @init, which makes the first values of parameters and state.
//
// Each gradient passes through an nn.constrain marked nn.gradient_of: `decide` gives it the layout in which the
// gradient is accumulated and applied (the optimizer state's layout: ZeRO).
//
// Formula: clip coefficient min(1, max_norm / (norm + 1e-6)), norm over all parameters. The optimizers' stand in
// planner/optimizer.h.

#include <cmath>
#include <optional>

#include "ir/nn/nn.h"
#include "ir/program/program.h"
#include "llvm/ADT/MapVector.h"
#include "mlir/IR/Builders.h"
#include "mlir/Pass/Pass.h"
#include "passes/logical/optimizers.h"
#include "passes/logical/request_attributes.h"
#include "passes/logical/update_emitter.h"
#include "passes/logical/update_phase.h"

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
    emit_.emplace(step_);
    collectGradients();
    clip();
    if (trains() && failed(applyOptimizers())) {
      return failure();
    }
    emit_->signature().finish();
    if (request_.optimizer) {
      moveIntoUpdate(step_);
    }
    buildInit();
    assignIds(module_);
    return success(!emit_->failed());
  }

 private:
  struct Gradient {
    unsigned argument;
    std::string name;
    Value value;
    DictionaryAttr own;  // the user's optimizer for it; null: that of the request
  };

  bool trains() const {
    return request_.optimizer &&
           (request_.optimizer->isOwn() || (!gradients_.empty() && request_.optimizer->kind != "none"));
  }

  // Takes the gradients off the results and gives each its constrain op; with option gradient_outputs they come back as
  // outputs.
  void collectGradients() {
    Operation* terminator = step_.getBody().front().getTerminator();
    const bool asOutputs = request_.options.gradientOutputs;
    for (unsigned i = 0; i < step_.getNumResults(); ++i) {
      if (resultText(step_, i, kKindAttr) != "gradient") {
        continue;
      }
      const std::string parameter = parameterOfGradient(resultText(step_, i, kNameAttr));
      if (BlockArgument argument = emit_->signature().argument(parameter)) {
        gradients_.push_back({argument.getArgNumber(), parameter, terminator->getOperand(i),
                              step_.getResultAttrOfType<DictionaryAttr>(i, kOptimizerAttr)});
      }
    }
    llvm::BitVector taken(step_.getNumResults());
    for (unsigned i = 0; i < step_.getNumResults(); ++i) {
      taken[i] = resultText(step_, i, kKindAttr) == "gradient";
    }
    step_.eraseResults(taken);
    terminator->eraseOperands(taken);
    for (Gradient& gradient : gradients_) {
      // What the user made of a finished gradient is finished.
      if (!isMadeIn(gradient.value, "update")) {
        gradient.value = finishGradient(emit_->builder(), gradient.value, gradient.name);
      }
      if (asOutputs) {
        addNamedResult(gradient.value, "output", gradientName(gradient.name));
      }
    }
  }

  void addNamedResult(Value value, StringRef kind, const std::string& name) {
    for (unsigned i = 0; i < step_.getNumResults(); ++i) {
      if (resultText(step_, i, kKindAttr) == "output" && resultText(step_, i, kNameAttr) == name) {
        emitError(returned(step_, i).getLoc())
            << "output '" << name << "' has the name of a value that the update puts "
            << "out; give it another";
        emit_->fail();
      }
    }
    emit_->signature().addResult(value, emit_->named(kind, name));
  }

  // The gradients of the loss; the user clips his own.
  void clip() {
    const double maxNorm = request_.options.clipNorm;
    std::vector<Gradient*> clipped;
    for (Gradient& gradient : gradients_) {
      if (!gradient.own) {
        clipped.push_back(&gradient);
      }
    }
    if (maxNorm <= 0 || clipped.empty() || !trains()) {
      return;
    }
    const Location loc = module_.getLoc();
    Value total;
    for (const Gradient* gradient : clipped) {
      Value squares = emit_->value(gradient->value.getLoc(), "sum_squares", gradient->value);
      total = total ? emit_->value(loc, "add", {total, squares}) : squares;
    }
    Type element = UpdateEmitter::elementOf(clipped.front()->value);
    Value norm = emit_->value(loc, "sqrt", total);
    Value margin = emit_->value(loc, "add", {norm, emit_->scalar(element, 1e-6)});
    Value ratio = emit_->value(loc, "div", {emit_->scalar(element, maxNorm), margin});
    Value coefficient = emit_->value(loc, "minimum", {ratio, emit_->scalar(element, 1.0)});
    for (Gradient* gradient : clipped) {
      gradient->value = emit_->value(gradient->value.getLoc(), "mul", {gradient->value, coefficient});
    }
    if (!emit_->failed()) {
      addNamedResult(norm, "output", "grad_norm");
    }
  }

  // The request's optimizer, and those of gradients of the user's own.
  LogicalResult applyOptimizers() {
    llvm::MapVector<DictionaryAttr, Optimizer> optimizers;
    if (!request_.optimizer->isOwn()) {
      optimizers.insert({DictionaryAttr(), *request_.optimizer});
    }
    for (const Gradient& gradient : gradients_) {
      if (optimizers.count(gradient.own) > 0) {
        continue;
      }
      absl::StatusOr<Optimizer> own = optimizerOf(gradient.own);
      if (!own.ok()) {
        return emitError(gradient.value.getLoc()) << std::string(own.status().message());
      }
      optimizers.insert({gradient.own, *std::move(own)});
    }
    Type integer = builder_.getI32Type();
    StepState shared;
    if (!optimizers.empty()) {
      shared.first = optimizers.front().second.setting("lr");
      shared.lr = emit_->state("lr", RankedTensorType::get({}, builder_.getF32Type()), shared.first);
    }
    Value count = emit_->state(kStepCountState, RankedTensorType::get({}, integer), 0);
    shared.step = emit_->value(count.getLoc(), "add", {count, emit_->scalar(integer, 1)});
    for (const auto& [own, optimizer] : optimizers) {
      if (failed(applyOptimizer(own, optimizer, shared))) {
        return failure();
      }
    }
    emit_->replace(count, shared.step);
    return success(!emit_->failed());
  }

  LogicalResult applyOptimizer(DictionaryAttr own, const Optimizer& optimizer, const StepState& shared) {
    if (shared.first == 0 && optimizer.setting("lr") != 0) {
      return module_.emitError() << "the first optimizer of the program has the learning rate 0, another one "
                                 << optimizer.setting("lr")
                                 << ": rates are factors of the first; give that one another rate, or none an update";
    }
    OptimizerBuilder builder(*emit_, optimizer, shared);
    for (const Gradient& gradient : gradients_) {
      if (gradient.own != own) {
        continue;
      }
      Value parameter = step_.getBody().front().getArgument(gradient.argument);
      if (emit_->failed() || failed(builder.update(gradient.name, parameter, gradient.value))) {
        return failure();
      }
    }
    builder.finish();
    return success(!emit_->failed());
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
      signature.addResult(value, emit_->named(argument.kind, argument.name));
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
  std::optional<UpdateEmitter> emit_;
  std::vector<Gradient> gradients_;
};

class BuildUpdatePass : public impl::BuildUpdatePassBase<BuildUpdatePass> {
 public:
  void runOnOperation() override {
    dropGradientFunctions(getOperation());
    FailureOr<Request> request = readRequest(getOperation());
    if (failed(request) || failed(UpdateBuilder(getOperation(), *std::move(request)).run())) {
      signalPassFailure();
    }
  }
};

}  // namespace
}  // namespace weft
