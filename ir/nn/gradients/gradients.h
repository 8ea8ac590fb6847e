// The gradients of the nn operators, one function per family, and the few tools they share.
//
// Notation in the comments: y = f(x), dy is the gradient of the loss with respect to y.
#pragma once

#include <optional>
#include <utility>

#include "ir/nn/nn.h"
#include "ir/registry.h"

namespace weft::ir {

void addElementwiseGradients(OperatorRegistry& registry);
void addContractionGradients(OperatorRegistry& registry);
void addConvolutionGradients(OperatorRegistry& registry);
void addShapeGradients(OperatorRegistry& registry);
void addReductionGradients(OperatorRegistry& registry);
void addAlongGradients(OperatorRegistry& registry);
void addNormalizationGradients(OperatorRegistry& registry);
void addIndexGradients(OperatorRegistry& registry);
void addAttentionGradients(OperatorRegistry& registry);
void addSourceGradients(OperatorRegistry& registry);
void addCustomGradients(OperatorRegistry& registry);
// softmax_cross_entropy over split classes.
void addCrossEntropyExpansion(OperatorRegistry& registry);
// argmax and argmin over a split dimension.
void addArgExtremumExpansions(OperatorRegistry& registry);
// softmax, log_softmax and their gradients over a split dimension.
void addSoftmaxExpansions(OperatorRegistry& registry);
// conv2d and its gradients over a split height.
void addConvolutionExpansions(OperatorRegistry& registry);
// attention and its gradient over split keys.
void addAttentionExpansions(OperatorRegistry& registry);
// batch_norm and its gradient, with statistics of each micro-batch.
void addBatchNormExpansions(OperatorRegistry& registry);

// Creates operators one after another at one place.
class Emitter {
 public:
  Emitter(mlir::OpBuilder& builder, mlir::Location location) : builder_(builder), location_(location) {}

  // emit.make<nn::AddOp>(a, b): the operator's only result.
  template <typename Op, typename... Arguments>
  mlir::Value make(Arguments&&... arguments) {
    return op<Op>(std::forward<Arguments>(arguments)...)->getResult(0);
  }
  template <typename Op, typename... Arguments>
  Op op(Arguments&&... arguments) {
    return builder_.create<Op>(location_, std::forward<Arguments>(arguments)...);
  }

  // A scalar of the element type of `like`, which broadcasts against anything.
  mlir::Value number(double value, mlir::Value like);
  mlir::Value cast(mlir::Value x, mlir::Type element);
  mlir::Value reshape(mlir::Value x, llvm::ArrayRef<int64_t> shape);
  // The gradient of a broadcast: dy summed over the dimensions in which `operand` was stretched.
  mlir::Value sumTo(mlir::Value dy, mlir::Value operand);
  // The gradient of a reduction: y's value for every element of x that it came from.
  mlir::Value expand(mlir::Value y, mlir::Value x, llvm::ArrayRef<int64_t> dims);

 private:
  mlir::OpBuilder& builder_;
  mlir::Location location_;
};

// What a gradient function of one operator class works with; `body(op, emit, context)` fills context.operandGradients.
template <typename Op, typename Body>
void addGradient(OperatorRegistry& registry, Body body) {
  registry.addGradient(Op::getOperationName().str(), [body](mlir::Operation* op, GradientContext& context) {
    Emitter emit(context.builder, op->getLoc());
    if constexpr (std::is_void_v<decltype(body(llvm::cast<Op>(op), emit, context))>) {
      body(llvm::cast<Op>(op), emit, context);
      return mlir::success();
    } else {
      return body(llvm::cast<Op>(op), emit, context);
    }
  });
}

}  // namespace weft::ir
