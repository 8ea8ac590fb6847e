#include "ir/nn/gradients/gradients.h"

namespace weft::ir {
namespace {

using namespace nn;  // NOLINT: the operators this file is about
using mlir::Value;

// The greatest, or smallest, elements share dy evenly: dx = [x = y] dy / count of [x = y].
template <typename Op>
void addExtremum(OperatorRegistry& registry) {
  addGradient<Op>(registry, [](Op op, Emitter& emit, GradientContext& context) {
    Value dy = context.resultGradients[0];
    Value x = op.getX();
    mlir::Type element = plainType(x).getElementType();
    Value isExtreme = emit.cast(emit.make<CompareOp>(x, emit.expand(op.getY(), x, op.getDims()), "eq"), element);
    Value count = emit.make<SumOp>(isExtreme, op.getDims(), op.getKeepDims());
    context.operandGradients[0] =
        emit.make<MulOp>(isExtreme, emit.expand(emit.make<DivOp>(dy, count), x, op.getDims()));
  });
}

}  // namespace

void addReductionGradients(OperatorRegistry& registry) {
  addGradient<SumOp>(registry, [](SumOp op, Emitter& emit, GradientContext& context) {
    context.operandGradients[0] = emit.expand(context.resultGradients[0], op.getX(), op.getDims());
  });
  addGradient<MeanOp>(registry, [](MeanOp op, Emitter& emit, GradientContext& context) {
    Value dy = context.resultGradients[0];
    Value share = emit.make<MulOp>(dy, emit.number(1.0 / static_cast<double>(op.getCount()), dy));
    context.operandGradients[0] = emit.expand(share, op.getX(), op.getDims());
  });
  addExtremum<MaxOp>(registry);
  addExtremum<MinOp>(registry);
  // y = sum x^2: dx = 2 x dy.
  addGradient<SumSquaresOp>(registry, [](SumSquaresOp op, Emitter& emit, GradientContext& context) {
    Value dy = context.resultGradients[0];
    context.operandGradients[0] = emit.make<MulOp>(op.getX(), emit.make<MulOp>(dy, emit.number(2.0, dy)));
  });
}

}  // namespace weft::ir
