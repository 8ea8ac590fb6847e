// Result types of the operators that work along one dimension, or look up in one.
#include <limits>

#include "ir/nn/infer.h"
#include "mlir/IR/Builders.h"

namespace weft::ir::infer {
namespace {

using llvm::SmallVector;
using mlir::failed;
using mlir::failure;
using mlir::LogicalResult;
using mlir::RankedTensorType;
using mlir::success;
using mlir::Value;

constexpr int64_t kMostIndices = std::numeric_limits<int32_t>::max();

SmallVector<int64_t> shapeOf(Value x) {
  return SmallVector<int64_t>(plainType(x).getShape());
}

LogicalResult hasDim(const InferSite& site, Value x, int64_t dim) {
  if (dim < 0 || dim >= plainType(x).getRank()) {
    return site.error(1, "dim " + llvm::Twine(dim) + " is not a dimension of " + printType(x));
  }
  return success();
}

LogicalResult indicesFit(const InferSite& site, int check, Value x, int64_t dim) {
  if (dimensionOf(x, dim) > kMostIndices) {
    return site.error(check, "dimension " + llvm::Twine(dim) + " of " + printType(x) + " has more than " +
                                 llvm::Twine(kMostIndices) + " elements, which an i32 index does not count");
  }
  return success();
}

RankedTensorType indexType(Value x, llvm::ArrayRef<int64_t> shape) {
  return RankedTensorType::get(shape, mlir::IntegerType::get(x.getContext(), 32));
}

SmallVector<int64_t> without(Value x, int64_t dim) {
  SmallVector<int64_t> shape = shapeOf(x);
  shape.erase(shape.begin() + dim);
  return shape;
}

}  // namespace

LogicalResult along(const InferSite& site, Value x, int64_t dim) {
  return failed(hasDim(site, x, dim)) ? failure() : site.give({plainType(x)});
}

LogicalResult prod(const InferSite& site, Value x, int64_t dim) {
  return failed(hasDim(site, x, dim)) ? failure() : site.give({withShape(x, without(x, dim))});
}

LogicalResult prodGrad(const InferSite& site, Value x, Value dy, int64_t dim) {
  if (failed(hasDim(site, x, dim))) {
    return failure();
  }
  if (plainType(dy) != withShape(x, without(x, dim))) {
    return site.error(
        2, "dy is " + printType(dy) + "; it must be " + printType(x) + " without dimension " + llvm::Twine(dim));
  }
  return site.give({plainType(x)});
}

LogicalResult argExtremum(const InferSite& site, Value x, int64_t dim) {
  if (failed(hasDim(site, x, dim)) || failed(indicesFit(site, 2, x, dim))) {
    return failure();
  }
  return site.give({indexType(x, without(x, dim))});
}

LogicalResult sort(const InferSite& site, Value x, int64_t count) {
  SmallVector<int64_t> shape = shapeOf(x);
  if (shape.empty()) {
    return site.error(1, printType(x) + " has no last dimension");
  }
  if (count < 1 || count > shape.back()) {
    return site.error(2, "count is " + llvm::Twine(count) + "; it must lie in [1, " + llvm::Twine(shape.back()) +
                             "] for " + printType(x));
  }
  if (failed(indicesFit(site, 3, x, -1))) {
    return failure();
  }
  shape.back() = count;
  return site.give({withShape(x, shape), indexType(x, shape)});
}

LogicalResult flip(const InferSite& site, Value x, llvm::ArrayRef<int64_t> dims) {
  return failed(reduce(site, x, dims, true)) ? failure() : site.give({plainType(x)});
}

LogicalResult gather(const InferSite& site, Value x, Value index, int64_t dim, int64_t rows) {
  if (failed(hasDim(site, x, dim))) {
    return failure();
  }
  const SmallVector<int64_t> shape = shapeOf(index);
  if (static_cast<int64_t>(shape.size()) != plainType(x).getRank() || without(x, dim) != without(index, dim)) {
    return site.error(2, "the index is " + printType(index) + "; it may differ from " + printType(x) +
                             " only in dimension " + llvm::Twine(dim));
  }
  if (rows < 1) {
    return site.error(3, "rows is " + llvm::Twine(rows) + "; it must be positive");
  }
  return site.give({withShape(x, shape)});
}

}  // namespace weft::ir::infer
