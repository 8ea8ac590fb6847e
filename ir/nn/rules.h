// Texts of factor rules (ir/layout/rule.h), one function per pattern of operators.
//
// Names of factors. d0 d1 ... are dimensions of the result of an elementwise operator, or of the operand of a
// reduction; m n k b0 b1 ... those of a matmul; f0 f1 ... the common parts of the two shapes of a reshape. A gradient
// operator gives the same name to the same iteration as its forward operator, so that layouts can be handed over by
// name.
#pragma once

#include <string>

#include "ir/nn/infer.h"
#include "ir/nn/operator_interface.h"
#include "llvm/ADT/ArrayRef.h"
#include "mlir/IR/BuiltinAttributes.h"

namespace weft::ir::rules {

// Broadcasting against result 0: "d0 d1, 1 d1 -> d0 d1".
std::string elementwise(mlir::Operation* op);
// "b0 m k+, k+ n -> b0 m n".
std::string matmul(mlir::Operation* op, bool transposeA, bool transposeB);
// The specification, with `+` on the letters that are summed over.
std::string contract(llvm::StringRef spec);
// Common refinement of operand and result shape: [6, 4] to [24] is "f0 f1 -> (f0 f1)". Dimensions that cannot be cut
// alike
// ([4, 6] to [6, 4]) are whole.
std::string reshape(mlir::Operation* op);
std::string reshape(const Shape& from, const Shape& to);
// Result dimension i is operand dimension permutation[i].
std::string transpose(llvm::ArrayRef<int64_t> permutation);
// Slice and pad: a dimension whose size changes is whole.
std::string sliceLike(mlir::Operation* op);
std::string concat(mlir::Operation* op, int64_t dim);
std::string reduce(mlir::Operation* op, llvm::ArrayRef<int64_t> dims, bool keepDims);
// All dimensions to a scalar.
std::string reduceAll(mlir::Operation* op);
// Elementwise but for `dims`, which are whole; a tensor of fewer dimensions than operand 0 lacks them.
std::string wholeDims(mlir::Operation* op, llvm::ArrayRef<int64_t> dims);
// "d0 s! -> d0 r!, d0 r!".
std::string sort(mlir::Operation* op);
// Elementwise but for the last dimension, which is whole.
std::string wholeLast(mlir::Operation* op);
std::string layerNorm(mlir::Operation* op);
std::string layerNormGrad(mlir::Operation* op);
std::string rmsNorm(mlir::Operation* op);
std::string rmsNormGrad(mlir::Operation* op);
// "n ci+ ho! w!!, co ci+ kh!! kw!! -> n co ho! wo!!"; in groups "n (g ci+) ..., (g co) ci+ ... -> n (g co) ...". A
// dimension of the image is (ho hs!!) where the window moves by more than one element. Where windows are patches
// (window_line.h) ho may be split; else the height may by an expansion if it comes in blocks with borders, and what
// does neither is whole: "h!!", and "ho!!" in the result.
std::string conv2d(mlir::Operation* op, const infer::WindowSteps& steps);
std::string conv2dInputGrad(mlir::Operation* op, const infer::WindowSteps& steps);
std::string conv2dWeightGrad(mlir::Operation* op, const infer::WindowSteps& steps);
// "n c h!! w!! -> n c ho!! wo!!", or patches as in a convolution.
std::string pool2d(mlir::Value x, mlir::Value y, llvm::ArrayRef<int64_t> window, const infer::WindowSteps& steps);
std::string maxPool2dGrad(mlir::Operation* op, llvm::ArrayRef<int64_t> window, const infer::WindowSteps& steps);
std::string avgPool2dGrad(mlir::Operation* op, llvm::ArrayRef<int64_t> window, const infer::WindowSteps& steps);
// x, y [n, c, ...]; statistics [micro-batches, c]: "d0+ d1 d2+, d1, d1 -> d0 d1 d2, p~ d1, p~ d1".
std::string batchNorm(mlir::Operation* op);
std::string batchNormGrad(mlir::Operation* op);
std::string channelSum(mlir::Operation* op);
std::string channelDot(mlir::Operation* op);
std::string channelAffine(mlir::Operation* op);
std::string embedding(mlir::Operation* op);
std::string embeddingGrad(mlir::Operation* op);
std::string crossEntropy(mlir::Operation* op);
std::string crossEntropyGrad(mlir::Operation* op);
std::string pick(mlir::Operation* op);
std::string pickGrad(mlir::Operation* op);
// Heads that share keys are two factors, "b (h g) t d!, b h s! d!, b h s! d! -> b (h g) t d, b (h g) t".
std::string attention(mlir::Operation* op);
std::string attentionGrad(mlir::Operation* op);
// "d0 d1 t d!, t e!, t e! -> d0 d1 t d".
std::string rotary(mlir::Operation* op);
// "d0 v+ d2, d0 k d2 -> d0 k d2" and "d0 k+ d2, d0 k d2 -> d0 v d2".
std::string gather(mlir::Operation* op, int64_t dim);
std::string scatterAdd(mlir::Operation* op, int64_t dim);
// A constant that is not a splat cannot be cut.
std::string constant(mlir::Operation* op, bool splat);

// What no element of x's type is below, as a pad; infinity, which is true as a bool, is the greatest of every type.
double leastElement(mlir::Value x);

// Linear sets from a list of lists of operand numbers.
LinearSets listedSets(mlir::ArrayAttr sets);
// What `nn.custom` lists of itself, in the forms that ir/nn/custom.td names; null: nothing is listed.
llvm::SmallVector<OriginRequest> listedOrigins(std::optional<llvm::ArrayRef<int64_t>> origins);
std::optional<double> listedPadFill(mlir::ArrayAttr fills, unsigned operand);
ReduceKind listedReduceKind(mlir::ArrayAttr kinds, unsigned result);
// None for another word than sum, max or min.
std::optional<ReduceKind> reduceKindNamed(llvm::StringRef name);
// All operands in one linear set.
LinearSets allTogether(mlir::Operation* op);

// Asks for the global offset of the local tensor in every dimension of operand or result `index`, whose value is
// `tensor`; or in dimension `dim`, negative from the end.
llvm::SmallVector<OriginRequest> originsOf(bool isResult, unsigned index, mlir::Value tensor);
llvm::SmallVector<OriginRequest> originOfDim(bool isResult, unsigned index, mlir::Value tensor, int64_t dim);

}  // namespace weft::ir::rules
