#include "ir/nn/gradients/gradients.h"

namespace weft::ir {

void addAttentionGradients(OperatorRegistry& registry) {
  addGradient<nn::AttentionOp>(registry, [](nn::AttentionOp op, Emitter& emit, GradientContext& context) {
    if (context.resultGradients[1]) {
      return mlir::LogicalResult(op.emitError(
          "the lse result of nn.attention is part of the loss; it has no gradient: compute it with softmax and matmul "
          "instead"));
    }
    auto gradient = emit.op<nn::AttentionGradOp>(op.getQ(), op.getK(), op.getV(), op.getOut(), op.getLse(),
                                                 context.resultGradients[0], op.getCausal(), op.getScale());
    for (unsigned i = 0; i < 3; ++i) {
      context.operandGradients[i] = gradient->getResult(i);
    }
    return mlir::success();
  });
}

}  // namespace weft::ir
