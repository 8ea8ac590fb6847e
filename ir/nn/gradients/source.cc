#include "ir/nn/gradients/gradients.h"

namespace weft::ir {

// Dropout is linear: the gradient drops the same elements, chosen by the same key.
void addSourceGradients(OperatorRegistry& registry) {
  addGradient<nn::DropoutOp>(registry, [](nn::DropoutOp op, Emitter& emit, GradientContext& context) {
    context.operandGradients[0] = emit.make<nn::DropoutOp>(context.resultGradients[0], op.getStep(), op.getRate(),
                                                           op.getSeed(), op.getKey(), op.getGlobalShapeAttr());
  });
}

}  // namespace weft::ir
