#include "ir/nn/gradients/gradients.h"

namespace weft::ir {
namespace {

using namespace nn;  // NOLINT: the operators this file is about

mlir::LogicalResult layerNormGradient(LayerNormOp op, Emitter& emit, GradientContext& context) {
  if (context.resultGradients[1] || context.resultGradients[2]) {
    return op.emitError(
        "the mean or rstd result of nn.layer_norm is part of the loss; it has no gradient: compute it "
        "with mean and rsqrt instead");
  }
  auto gradient =
      emit.op<LayerNormGradOp>(op.getX(), op.getGamma(), op.getMean(), op.getRstd(), context.resultGradients[0]);
  for (unsigned i = 0; i < 3; ++i) {
    context.operandGradients[i] = gradient->getResult(i);
  }
  return mlir::success();
}

mlir::LogicalResult rmsNormGradient(RmsNormOp op, Emitter& emit, GradientContext& context) {
  if (context.resultGradients[1]) {
    return op.emitError(
        "the rstd result of nn.rms_norm is part of the loss; it has no gradient: compute it with mean and rsqrt "
        "instead");
  }
  auto gradient = emit.op<RmsNormGradOp>(op.getX(), op.getGamma(), op.getRstd(), context.resultGradients[0]);
  context.operandGradients[0] = gradient.getDx();
  context.operandGradients[1] = gradient.getDgamma();
  return mlir::success();
}

mlir::LogicalResult batchNormGradient(BatchNormOp op, Emitter& emit, GradientContext& context) {
  for (size_t i = 1; i < context.resultGradients.size(); ++i) {
    if (context.resultGradients[i]) {
      return op.emitError("a statistic that nn.batch_norm returns is part of the loss; it has no gradient");
    }
  }
  auto gradient = emit.op<BatchNormGradOp>(op->getOperand(0), op->getOperand(1), op->getResult(1), op->getResult(2),
                                           op->getResult(3), context.resultGradients[0]);
  for (unsigned i = 0; i < 3; ++i) {
    context.operandGradients[i] = gradient->getResult(i);
  }
  return mlir::success();
}

}  // namespace

void addNormalizationGradients(OperatorRegistry& registry) {
  addGradient<SoftmaxOp>(registry, [](SoftmaxOp op, Emitter& emit, GradientContext& context) {
    context.operandGradients[0] = emit.make<SoftmaxGradOp>(op.getY(), context.resultGradients[0]);
  });
  addGradient<LayerNormOp>(registry, layerNormGradient);
  addGradient<RmsNormOp>(registry, rmsNormGradient);
  addGradient<BatchNormOp>(registry, batchNormGradient);
}

}  // namespace weft::ir
