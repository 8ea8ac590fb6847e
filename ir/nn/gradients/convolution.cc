#include "ir/nn/gradients/gradients.h"

namespace weft::ir {
namespace {

using namespace nn;  // NOLINT: the operators this file is about

void conv2dGradient(Conv2dOp op, Emitter& emit, GradientContext& context) {
  mlir::Value dy = context.resultGradients[0];
  if (context.wanted[0]) {
    context.operandGradients[0] = emit.make<Conv2dInputGradOp>(plainType(op.getX()), dy, op.getWeight(),
                                                               op.getStrides(), op.getPaddings(), op.getDilations());
  }
  if (context.wanted[1]) {
    context.operandGradients[1] = emit.make<Conv2dWeightGradOp>(plainType(op.getWeight()), op.getX(), dy,
                                                                op.getStrides(), op.getPaddings(), op.getDilations());
  }
}

// A transposed convolution: its gradients are a convolution, and the weight's gradient with image and result exchanged.
void transposedGradient(Conv2dInputGradOp op, Emitter& emit, GradientContext& context) {
  mlir::Value dz = context.resultGradients[0];
  if (context.wanted[0]) {
    context.operandGradients[0] =
        emit.make<Conv2dOp>(dz, op.getWeight(), op.getStrides(), op.getPaddings(), op.getDilations());
  }
  if (context.wanted[1]) {
    context.operandGradients[1] = emit.make<Conv2dWeightGradOp>(plainType(op.getWeight()), dz, op.getDy(),
                                                                op.getStrides(), op.getPaddings(), op.getDilations());
  }
}

}  // namespace

void addConvolutionGradients(OperatorRegistry& registry) {
  addGradient<Conv2dOp>(registry, conv2dGradient);
  addGradient<Conv2dInputGradOp>(registry, transposedGradient);
  addGradient<MaxPool2dOp>(registry, [](MaxPool2dOp op, Emitter& emit, GradientContext& context) {
    context.operandGradients[0] = emit.make<MaxPool2dGradOp>(op.getX(), context.resultGradients[0], op.getWindow(),
                                                             op.getStrides(), op.getPaddings());
  });
  addGradient<AvgPool2dOp>(registry, [](AvgPool2dOp op, Emitter& emit, GradientContext& context) {
    context.operandGradients[0] = emit.make<AvgPool2dGradOp>(plainType(op.getX()), context.resultGradients[0],
                                                             op.getWindow(), op.getStrides(), op.getPaddings());
  });
}

}  // namespace weft::ir
