#include "ir/nn/gradients/gradients.h"

namespace weft::ir {
namespace {

using namespace nn;  // NOLINT: the operators this file is about
using llvm::SmallVector;
using mlir::Value;

SmallVector<int64_t> inverse(llvm::ArrayRef<int64_t> permutation) {
  SmallVector<int64_t> result(permutation.size());
  for (size_t i = 0; i < permutation.size(); ++i) {
    result[permutation[i]] = static_cast<int64_t>(i);
  }
  return result;
}

Value sliceGradient(SliceOp op, Emitter& emit, Value dy) {
  SmallVector<int64_t> high;
  for (auto [size, offset, dim] : llvm::zip(op.getSizes(), op.getOffsets(), op.getX().getType().getShape())) {
    high.push_back(dim - offset - size);
  }
  return emit.make<PadOp>(dy, op.getOffsets(), high, 0.0);
}

void concatGradient(ConcatOp op, Emitter& emit, GradientContext& context) {
  SmallVector<int64_t> offsets(op.getY().getType().getRank(), 0);
  for (auto [i, x] : llvm::enumerate(op.getXs())) {
    llvm::ArrayRef<int64_t> sizes = llvm::cast<mlir::RankedTensorType>(x.getType()).getShape();
    if (context.wanted[i]) {
      context.operandGradients[i] = emit.make<SliceOp>(context.resultGradients[0], offsets, sizes);
    }
    offsets[op.getDim()] += sizes[op.getDim()];
  }
}

}  // namespace

void addShapeGradients(OperatorRegistry& registry) {
  addGradient<ReshapeOp>(registry, [](ReshapeOp op, Emitter& emit, GradientContext& context) {
    context.operandGradients[0] = emit.make<ReshapeOp>(plainType(op.getX()), context.resultGradients[0]);
  });
  addGradient<TransposeOp>(registry, [](TransposeOp op, Emitter& emit, GradientContext& context) {
    context.operandGradients[0] = emit.make<TransposeOp>(context.resultGradients[0], inverse(op.getPermutation()));
  });
  addGradient<SliceOp>(registry, [](SliceOp op, Emitter& emit, GradientContext& context) {
    context.operandGradients[0] = sliceGradient(op, emit, context.resultGradients[0]);
  });
  addGradient<PadOp>(registry, [](PadOp op, Emitter& emit, GradientContext& context) {
    context.operandGradients[0] =
        emit.make<SliceOp>(context.resultGradients[0], op.getLow(), op.getX().getType().getShape());
  });
  addGradient<FlipOp>(registry, [](FlipOp op, Emitter& emit, GradientContext& context) {
    context.operandGradients[0] = emit.make<FlipOp>(context.resultGradients[0], op.getDims());
  });
  addGradient<ConcatOp>(registry, concatGradient);
  addGradient<BroadcastOp>(registry, [](BroadcastOp op, Emitter& emit, GradientContext& context) {
    context.operandGradients[0] = emit.sumTo(context.resultGradients[0], op.getX());
  });
}

}  // namespace weft::ir
