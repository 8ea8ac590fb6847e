#include "ir/nn/gradients/gradients.h"

namespace weft::ir {
namespace {

llvm::ArrayRef<int64_t> shape(mlir::Value value) {
  return llvm::cast<mlir::RankedTensorType>(value.getType()).getShape();
}

// Shape of x with ones at `dims`.
llvm::SmallVector<int64_t> keptShape(mlir::Value x, llvm::ArrayRef<int64_t> dims) {
  llvm::SmallVector<int64_t> kept(shape(x));
  for (int64_t dim : dims) {
    kept[dim] = 1;
  }
  return kept;
}

}  // namespace

mlir::Value Emitter::number(double value, mlir::Value like) {
  return make<nn::FillOp>(withShape(like, {}), value);
}

mlir::Value Emitter::cast(mlir::Value x, mlir::Type element) {
  return make<nn::CastOp>(mlir::RankedTensorType::get(shape(x), element), x);
}

mlir::Value Emitter::reshape(mlir::Value x, llvm::ArrayRef<int64_t> to) {
  return shape(x) == to ? x : make<nn::ReshapeOp>(withShape(x, to), x);
}

mlir::Value Emitter::sumTo(mlir::Value dy, mlir::Value operand) {
  llvm::ArrayRef<int64_t> from = shape(dy);
  llvm::ArrayRef<int64_t> to = shape(operand);
  size_t added = from.size() - to.size();
  llvm::SmallVector<int64_t> dims;
  for (size_t d = 0; d < from.size(); ++d) {
    if (d < added || (to[d - added] == 1 && from[d] != 1)) {
      dims.push_back(d);
    }
  }
  if (dims.empty()) {
    return dy;
  }
  return reshape(make<nn::SumOp>(dy, dims, added == 0), to);
}

mlir::Value Emitter::expand(mlir::Value y, mlir::Value x, llvm::ArrayRef<int64_t> dims) {
  return make<nn::BroadcastOp>(plainType(x), reshape(y, keptShape(x, dims)));
}

}  // namespace weft::ir
