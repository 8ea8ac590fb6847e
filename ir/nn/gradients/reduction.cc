#include "ir/nn/gradients/gradients.h"

namespace weft::ir {
namespace {

using namespace nn;  // NOLINT: the operators this file is about
using mlir::Value;

// The greatest elements share dy evenly: dx = [x = y] dy / count of [x = y].
Value maxGradient(MaxOp op, Emitter& emit, Value dy) {
  Value x = op.getX();
  mlir::Type element = plainType(x).getElementType();
  Value isGreatest = emit.cast(emit.make<CompareOp>(x, emit.expand(op.getY(), x, op.getDims()), "eq"), element);
  Value count = emit.make<SumOp>(isGreatest, op.getDims(), op.getKeepDims());
  return emit.make<MulOp>(isGreatest, emit.expand(emit.make<DivOp>(dy, count), x, op.getDims()));
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
  addGradient<MaxOp>(registry, [](MaxOp op, Emitter& emit, GradientContext& context) {
    context.operandGradients[0] = maxGradient(op, emit, context.resultGradients[0]);
  });
  // y = sum x^2: dx = 2 x dy.
  addGradient<SumSquaresOp>(registry, [](SumSquaresOp op, Emitter& emit, GradientContext& context) {
    Value dy = context.resultGradients[0];
    context.operandGradients[0] = emit.make<MulOp>(op.getX(), emit.make<MulOp>(dy, emit.number(2.0, dy)));
  });
}

}  // namespace weft::ir
