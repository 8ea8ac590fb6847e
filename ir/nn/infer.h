// Result types from operands and attributes, with the checks that make them meaningful. Every check has a number; its
// message names the operator, the number, and both values.
#pragma once

#include <optional>

#include "ir/bounded.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/TypeRange.h"
#include "mlir/IR/ValueRange.h"

namespace weft::ir {

// Equal number, shapes and element types; encodings (layouts) do not matter.
bool sameShapesAndElements(mlir::TypeRange a, mlir::TypeRange b);

// Tensor type without encoding.
mlir::RankedTensorType plainType(mlir::Type type);
mlir::RankedTensorType plainType(mlir::Value value);
// The same element type with another shape, without encoding.
mlir::RankedTensorType withShape(mlir::Value value, llvm::ArrayRef<int64_t> shape);

// "2x4xf32".
std::string printType(mlir::Value value);

// Size of a dimension, negative from the end.
int64_t dimensionOf(mlir::Value value, int64_t dim);
// Product of the sizes of `dims`.
int64_t reducedCount(mlir::Value value, llvm::ArrayRef<int64_t> dims);

// Where inferred types go and where errors are reported.
struct InferSite {
  std::optional<mlir::Location> location;
  llvm::StringRef op;
  llvm::SmallVectorImpl<mlir::Type>& types;

  mlir::LogicalResult error(int check, const llvm::Twine& text) const;
  // An error if a tensor would be larger than any can be, or empty.
  mlir::LogicalResult give(llvm::ArrayRef<mlir::Type> inferred) const;
};

namespace infer {

mlir::LogicalResult same(const InferSite& site, mlir::Value x);
// (1) All operands have the type of the first.
mlir::LogicalResult sameOperands(const InferSite& site, mlir::ValueRange operands);
// (1) approximate is "tanh" or "none".
mlir::LogicalResult gelu(const InferSite& site, mlir::Value x, llvm::StringRef approximate);
mlir::LogicalResult geluGrad(const InferSite& site, mlir::ValueRange operands, llvm::StringRef approximate);
// (1) Same element type. (2) Shapes broadcast.
mlir::LogicalResult binary(const InferSite& site, mlir::Value a, mlir::Value b);
// As binary, and (3) a known predicate.
mlir::LogicalResult compare(const InferSite& site, mlir::Value a, mlir::Value b, llvm::StringRef predicate);
// (1) a and b have the same element type. (2) All three broadcast.
mlir::LogicalResult select(const InferSite& site, mlir::Value condition, mlir::Value a, mlir::Value b);

// (1) Same element type. (2) Ranks: a >= 2, b 2 or that of a. (3) k agrees. (4) Batch dimensions agree.
mlir::LogicalResult matmul(const InferSite& site, mlir::Value a, mlir::Value b, bool transposeA, bool transposeB);
// (1) Same element type. (2) The specification is well formed. (3) Its letters are as many as dimensions. (4) A letter
// has one size.
mlir::LogicalResult contract(const InferSite& site, mlir::Value a, mlir::Value b, llvm::StringRef spec);

// How a window moves over an image: [vertical, horizontal] each.
struct WindowSteps {
  llvm::ArrayRef<int64_t> strides;
  llvm::ArrayRef<int64_t> paddings;
  llvm::ArrayRef<int64_t> dilations = {};  // none: 1
};
// (1) Same element type. (2) A weight of four dimensions, an image of four or more. (3) The weight's input channels
// divide those of the image, and the groups that makes its output channels. (4) Two strides, at least 1. (5) Two
// paddings, not negative. (6) The window is not larger than the padded image. (9) Two dilations, at least 1.
mlir::LogicalResult conv2d(const InferSite& site, mlir::Value x, mlir::Value weight, const WindowSteps& steps);
// (2) Four dimensions. (3) Two window sizes, at least 1. (4) to (6) as conv2d. (7) Paddings are smaller than the
// window.
mlir::LogicalResult pool2d(const InferSite& site, mlir::Value x, llvm::ArrayRef<int64_t> window,
                           const WindowSteps& steps);
// As pool2d, and (8) dy has the type of the pooled x.
mlir::LogicalResult poolGrad(const InferSite& site, mlir::ValueRange operands, llvm::ArrayRef<int64_t> window,
                             const WindowSteps& steps);

// (1) A permutation of all dimensions.
mlir::LogicalResult transpose(const InferSite& site, mlir::Value x, llvm::ArrayRef<int64_t> permutation);
// (1) One offset and size per dimension. (2) Inside x.
mlir::LogicalResult slice(const InferSite& site, mlir::Value x, llvm::ArrayRef<int64_t> offsets,
                          llvm::ArrayRef<int64_t> sizes);
// (1) One low and high per dimension. (2) None negative. (3) None beyond all tensors.
mlir::LogicalResult pad(const InferSite& site, mlir::Value x, llvm::ArrayRef<int64_t> low,
                        llvm::ArrayRef<int64_t> high);
// (1) At least one operand. (2) dim exists. (3) Same element type and same sizes elsewhere.
mlir::LogicalResult concat(const InferSite& site, mlir::ValueRange xs, int64_t dim);

// (1) dims exist and increase.
mlir::LogicalResult reduce(const InferSite& site, mlir::Value x, llvm::ArrayRef<int64_t> dims, bool keepDims);
// As reduce, and (2) count is positive.
mlir::LogicalResult mean(const InferSite& site, mlir::Value x, llvm::ArrayRef<int64_t> dims, bool keepDims,
                         int64_t count);
mlir::LogicalResult scalarOf(const InferSite& site, mlir::Value x);
mlir::LogicalResult boolScalar(const InferSite& site, mlir::Value x);

// (1) dim exists.
mlir::LogicalResult along(const InferSite& site, mlir::Value x, int64_t dim);
// As along; the result lacks the dimension.
mlir::LogicalResult prod(const InferSite& site, mlir::Value x, int64_t dim);
// As along, and (2) dy is what prod makes of x.
mlir::LogicalResult prodGrad(const InferSite& site, mlir::Value x, mlir::Value dy, int64_t dim);
// As prod, and (2) every index is an i32.
mlir::LogicalResult argExtremum(const InferSite& site, mlir::Value x, int64_t dim);
// (1) At least one dimension. (2) 1 <= count <= the last one's size. (3) Every index is an i32.
mlir::LogicalResult sort(const InferSite& site, mlir::Value x, int64_t count);
// (1) dims exist and increase.
mlir::LogicalResult flip(const InferSite& site, mlir::Value x, llvm::ArrayRef<int64_t> dims);
// (1) dim exists. (2) index has x's sizes in all other dimensions. (3) rows is positive.
mlir::LogicalResult gather(const InferSite& site, mlir::Value x, mlir::Value index, int64_t dim, int64_t rows);

// (1) At least one dimension.
mlir::LogicalResult rowwise(const InferSite& site, mlir::Value x);
// (1) x has a last dimension. (2) gamma and beta have its size and x's element type.
mlir::LogicalResult layerNorm(const InferSite& site, mlir::Value x, mlir::Value gamma, mlir::Value beta);
// (1) as layerNorm. (2) gamma. (3) dy has x's type. (4) mean and rstd have x's leading dimensions.
mlir::LogicalResult layerNormGrad(const InferSite& site, mlir::ValueRange operands);

// As layerNorm.
mlir::LogicalResult rmsNorm(const InferSite& site, mlir::Value x, mlir::Value gamma);
// As layerNormGrad, without mean.
mlir::LogicalResult rmsNormGrad(const InferSite& site, mlir::ValueRange operands);

// (1) x has a batch and a channel dimension. (2) All others are [c] of x's element type. (3) Three operands, or five.
mlir::LogicalResult batchNorm(const InferSite& site, mlir::ValueRange operands);
// (1) and (2) as batchNorm. (3) dy has x's type. (4) mean and rstd are [micro-batches, c].
mlir::LogicalResult batchNormGrad(const InferSite& site, mlir::ValueRange operands);
// (1) z has x's type. (2) center is [micro-batches, c].
mlir::LogicalResult channelDot(const InferSite& site, mlir::Value x, mlir::Value z, mlir::Value center);
// (1) An odd number of operands, at least 3. (2) All x have one type. (3) Factors and offset are [micro-batches, c].
mlir::LogicalResult channelAffine(const InferSite& site, mlir::ValueRange operands);

// (1) The table has two dimensions. (2) rows is positive.
mlir::LogicalResult embedding(const InferSite& site, mlir::Value table, mlir::Value ids, int64_t rows);
// (1) labels have the leading dimensions of x.
mlir::LogicalResult crossEntropy(const InferSite& site, mlir::Value logits, mlir::Value labels);
mlir::LogicalResult crossEntropyGrad(const InferSite& site, mlir::ValueRange operands);
mlir::LogicalResult pick(const InferSite& site, mlir::Value x, mlir::Value labels);

// Operands q, k, v and optionally bias. (1) Four dimensions each. (2) B and D of q and k agree, and the heads of k
// divide those of q. (3) k and v have the same type. (5) bias has q's element type and broadcasts against the scores.
mlir::LogicalResult attention(const InferSite& site, mlir::ValueRange operands);
// As attention, and (4) out and dout have q's type, lse its leading dimensions. (6) A gradient of bias needs one.
mlir::LogicalResult attentionGrad(const InferSite& site, mlir::ValueRange operands, bool biasGradient);
// (1) x has two dimensions at least, the last of an even size. (2) cos and sin are [T, D / 2] of x's element type.
mlir::LogicalResult rotary(const InferSite& site, mlir::Value x, mlir::Value cos, mlir::Value sin);

// (1) step is a scalar. (2) 0 <= rate < 1.
mlir::LogicalResult dropout(const InferSite& site, mlir::Value x, mlir::Value step, double rate);
// (1) The first `tensors` operands have one type. (2) All others are scalars. `results` results of that type.
mlir::LogicalResult update(const InferSite& site, mlir::ValueRange operands, unsigned tensors, unsigned results);

}  // namespace infer
}  // namespace weft::ir
