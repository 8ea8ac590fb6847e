#include "ir/nn/gradients/gradients.h"

namespace weft::ir {
namespace {

using namespace nn;  // NOLINT: the operators this file is about

mlir::LogicalResult attentionGradient(AttentionOp op, Emitter& emit, GradientContext& context) {
  if (context.resultGradients[1]) {
    return op.emitError(
        "the lse result of nn.attention is part of the loss; it has no gradient: compute it with softmax and matmul "
        "instead");
  }
  const bool biasGradient = op.getBias() && context.wanted[3];
  auto gradient =
      emit.op<AttentionGradOp>(op.getQ(), op.getK(), op.getV(), op.getOut(), op.getLse(), context.resultGradients[0],
                               op.getBias(), op.getCausal(), op.getScale(), biasGradient);
  for (unsigned i = 0; i < gradient->getNumResults(); ++i) {
    context.operandGradients[i] = gradient->getResult(i);
  }
  return mlir::success();
}

// A rotation's gradient turns back.
mlir::LogicalResult rotaryGradient(RotaryOp op, Emitter& emit, GradientContext& context) {
  if (context.wanted[1] || context.wanted[2]) {
    return op.emitError(
        "the tables cos and sin of nn.rotary depend on a parameter; they have no gradient: make them of constants, or "
        "write the rotation with mul, sub and concat");
  }
  context.operandGradients[0] =
      emit.make<RotaryOp>(context.resultGradients[0], op.getCos(), op.getSin(), op.getInterleaved(), !op.getInverse());
  return mlir::success();
}

}  // namespace

void addAttentionGradients(OperatorRegistry& registry) {
  addGradient<AttentionOp>(registry, attentionGradient);
  addGradient<RotaryOp>(registry, rotaryGradient);
}

}  // namespace weft::ir
