#include "passes/gates/check_program.h"

#include <map>
#include <set>

#include "ir/bounded.h"
#include "ir/dist/dist.h"
#include "ir/nn/nn.h"
#include "ir/nn/types.h"
#include "ir/program/program.h"
#include "passes/gates/attribute_forms.h"

namespace weft {

using namespace mlir;  // NOLINT

namespace {

class NamesChecker {
 public:
  explicit NamesChecker(ModuleOp module) : module_(module), step_(stepFunction(module)), init_(initFunction(module)) {}

  LogicalResult run() {
    return success(succeeded(numbers()) && succeeded(arguments()) && succeeded(results()) && succeeded(gradients()) &&
                   (!init_ || succeeded(firstValues())));
  }

 private:
  LogicalResult arguments() {
    for (const Argument& argument : argumentsOf(step_)) {
      BlockArgument value = step_.getArgument(argument.index);
      const auto error = [&] { return emitError(value.getLoc()) << "argument " << argument.index << " of @step "; };
      if (argument.kind != "input" && argument.kind != "parameter" && argument.kind != "state") {
        return error() << "has kind '" << argument.kind << "'; it should be input, parameter or state";
      }
      if (argument.name.empty()) {
        return error() << "has no " << kNameAttr;
      }
      if (!arguments_.emplace(argument.name, value).second) {
        return error() << "is named '" << argument.name << "', as one before is; names are unique";
      }
      auto batch = step_.getArgAttrOfType<IntegerAttr>(argument.index, kBatchDimAttr);
      if (batch && batch.getInt() >= std::max<int64_t>(cast<RankedTensorType>(value.getType()).getRank(), 1)) {
        return error() << "('" << argument.name << "') carries the batch in dimension " << batch.getInt()
                       << ", but it is " << value.getType();
      }
    }
    return success();
  }

  // Where values have layouts, copies, for recomputation or for another mesh, keep the number of their original.
  LogicalResult numbers() {
    std::set<int64_t> seen;
    for (Operation& op : step_.getBody().front().without_terminator()) {
      const int64_t id = idOf(&op);
      const bool mayBeCopy = op.getNumResults() > 0 && ir::dist::hasLayout(op.getResult(0).getType());
      if (id >= 0 && !seen.insert(id).second && !mayBeCopy) {
        return op.emitError() << kIdAttr << " " << id << " is given twice; numbers are unique";
      }
    }
    return success();
  }

  LogicalResult results() {
    std::set<std::pair<int64_t, int64_t>> replaced;
    for (unsigned i = 0; i < step_.getNumResults(); ++i) {
      const std::string kind = resultText(step_, i, kKindAttr);
      const std::string name = resultText(step_, i, kNameAttr);
      const auto error = [&] {
        return emitError(returned(step_, i).getLoc()) << "result " << i << " of @step ('" << name << "') ";
      };
      if (kind != "loss" && kind != "output" && kind != "gradient" && kind != "updated") {
        return error() << "has kind '" << kind << "'; it should be loss, output, gradient or updated";
      }
      if (name.empty()) {
        return error() << "has no " << kNameAttr;
      }
      auto argument = step_.getResultAttrOfType<IntegerAttr>(i, kUpdatesAttr);
      if ((kind == "updated") != (argument != nullptr)) {
        return error() << "is of kind " << kind << (argument ? " and has " : " and lacks ") << kUpdatesAttr
                       << ", which is on updated results, and on them alone";
      }
      if (kind == "gradient" && arguments_.count(parameterOfGradient(name)) == 0) {
        return error() << "is no gradient of an argument; its name should be grad.<parameter>";
      }
      if (argument && failed(replaces(i, argument.getInt(), replaced))) {
        return failure();
      }
    }
    return success();
  }

  // Result i replaces an argument: once on each stage, by a tensor like it.
  LogicalResult replaces(unsigned i, int64_t argument, std::set<std::pair<int64_t, int64_t>>& replaced) {
    Value value = returned(step_, i);
    const auto error = [&] { return emitError(value.getLoc()) << "result " << i << " of @step "; };
    if (argument >= step_.getNumArguments()) {
      return error() << "replaces argument " << argument << ", but there are " << step_.getNumArguments();
    }
    auto stage = step_.getResultAttrOfType<IntegerAttr>(i, kStageAttr);
    if (!replaced.emplace(argument, stage ? stage.getInt() : -1).second) {
      return error() << "replaces argument " << argument << ", as a result before does";
    }
    BlockArgument before = step_.getArgument(argument);
    const Argument named = argumentAt(step_, argument);
    if (named.kind == "input" || ir::plainType(value) != ir::plainType(before)) {
      return error() << "is " << value.getType() << " and cannot replace " << named.kind << " '" << named.name
                     << "', which is " << before.getType();
    }
    return success();
  }

  // Marks that name arguments.
  LogicalResult gradients() {
    for (Operation& op : step_.getBody().front().without_terminator()) {
      auto parameter = op.getAttrOfType<StringAttr>(kGradientOfAttr);
      const auto known = parameter ? arguments_.find(parameter.getValue().str()) : arguments_.end();
      if (parameter && (!isa<ir::nn::ConstrainOp>(op) || known == arguments_.end() ||
                        ir::plainType(known->second).getShape() != ir::plainType(op.getResult(0)).getShape())) {
        return op.emitError() << kGradientOfAttr << " is '" << parameter.getValue() << "' on " << op.getName() << " of "
                              << op.getResultTypes() << "; it is on an nn.constrain like the parameter it names";
      }
    }
    return success();
  }

  LogicalResult firstValues() {
    llvm::DenseSet<Value> seen;
    if (init_.getNumArguments() > 0) {
      return init_.emitError() << "@init takes " << init_.getNumArguments()
                               << " arguments; first values depend on none";
    }
    for (unsigned i = 0; i < init_.getNumResults(); ++i) {
      Value value = returned(init_, i);
      const std::string name = resultText(init_, i, kNameAttr);
      const auto known = arguments_.find(name);
      if (known == arguments_.end()) {
        return emitError(value.getLoc()) << "result '" << name << "' of @init is no argument of @step";
      }
      const std::string kind = argumentAt(step_, known->second.getArgNumber()).kind;
      if (ir::plainType(value) != ir::plainType(known->second) || resultText(init_, i, kKindAttr) != kind) {
        return emitError(value.getLoc()) << "result '" << name << "' of @init is " << resultText(init_, i, kKindAttr)
                                         << " " << value.getType() << ", the argument of @step " << kind << " "
                                         << known->second.getType();
      }
      if (!seen.insert(value).second || value.getDefiningOp()->getNumOperands() > 0 ||
          value.getDefiningOp()->getNumResults() != 1) {
        return emitError(value.getLoc()) << "result '" << name
                                         << "' of @init should come from an operator without operands, one for each";
      }
    }
    return success();
  }

  ModuleOp module_;
  func::FuncOp step_;
  func::FuncOp init_;
  std::map<std::string, BlockArgument> arguments_;
};

}  // namespace

LogicalResult checkTensor(Location place, Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!tensor || !tensor.hasStaticShape() || !ir::dtypeOf(type) || !ir::isBounded(type)) {
    return emitError(place) << "a program has tensors of static shape, of f32, f64, bf16, f16, i32, i64 or i1, of at "
                               "least one element and at most 2^48 bytes; this is "
                            << type;
  }
  return success();
}

LogicalResult checkBody(func::FuncOp function) {
  if (function.isDeclaration() || !llvm::hasSingleElement(function.getBody())) {
    return function.emitError() << "@" << function.getName() << " should have a body of one block";
  }
  for (BlockArgument argument : function.getArguments()) {
    if (failed(checkTensor(argument.getLoc(), argument.getType()))) {
      return failure();
    }
  }
  for (Operation& op : function.getBody().front().without_terminator()) {
    if (!isa_and_nonnull<ir::dist::DistDialect, ir::nn::NnDialect>(op.getDialect())) {
      return op.emitError() << op.getName() << " has no place in a program; it holds operators of nn and dist";
    }
    for (Value result : op.getResults()) {
      if (failed(checkTensor(op.getLoc(), result.getType()))) {
        return failure();
      }
    }
  }
  return success();
}

LogicalResult checkForms(ModuleOp module) {
  if (failed(checkModuleAttributes(module))) {
    return failure();
  }
  for (Operation& op : *module.getBody()) {
    auto function = dyn_cast<func::FuncOp>(op);
    const bool isProgram = function && (function.getName() == "step" || function.getName() == "init");
    if (!function || (!isProgram && !function.isPrivate())) {
      return op.emitError() << op.getName()
                            << " has no place beside @step, @init and the private gradients of own operators";
    }
    if (failed(checkBody(function)) || failed(checkFunctionAttributes(function))) {
      return failure();
    }
    for (Operation& inner : function.getBody().front().without_terminator()) {
      if (failed(checkOperatorAttributes(&inner))) {
        return failure();
      }
    }
  }
  return success();
}

LogicalResult checkNames(ModuleOp module) {
  if (!stepFunction(module)) {
    return module.emitError("a program needs a function @step");
  }
  return NamesChecker(module).run();
}

}  // namespace weft
