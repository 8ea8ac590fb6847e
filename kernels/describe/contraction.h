// What the compiler and the kernels both know of matmul, contract and contract_accumulate: which of their tensors the
// matrix product works on where they lie, which it packs first, and the scratch memory that takes.
//
// Each letter of a spec "b m k, k n -> b m n" belongs to one of four groups: batch (both operands and the result), m
// (first operand and result), n (second and result), k (both operands, summed). If in every tensor the letters of a
// group lie so that they can be walked with one stride, the whole is one strided batched matrix product; a tensor where
// they do not is packed first (or, for the result, unpacked).
#pragma once

#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/describe/kernel_spec.h"

namespace weft {

// Strides in elements: of the batch, of the row, of the column.
struct MatrixView {
  int64_t batch = 0;
  int64_t row = 0;
  int64_t column = 0;
};

// One strided, batched matrix product C[b] = A[b] B[b].
struct GemmShape {
  int64_t batch = 1;
  int64_t m = 1;
  int64_t n = 1;
  int64_t k = 1;
  MatrixView a;  // m x k
  MatrixView b;  // k x n
  MatrixView c;  // m x n
};

// The most scratch that a product of these sizes may take, in bytes; the kernels choose an implementation that keeps to
// it. A library copies pieces of its operands, one for each thread: the limit is a quarter of the operands, within
// bounds.
int64_t gemmScratchLimit(DType type, const GemmShape& shape);

// One tensor of a contraction.
struct ContractionSide {
  std::vector<int64_t> shape;    // sizes in the order batch, rows, columns (letters expanded)
  std::vector<int64_t> strides;  // of the tensor in that order
  bool packed = false;
  MatrixView view;  // of the packed copy, or of the tensor itself

  // Of the packed copy; 0 without one.
  int64_t packedBytes(DType type) const;
};

struct Contraction {
  ContractionSide a, b, c;
  GemmShape product;
  // Whether the product is the transposed one, C^T = B^T A^T: its first operand is b.
  bool swapped = false;
};

// Of a kernel matmul or contract with two inputs and one output, or of contract_accumulate, which has the sum so far
// before them. Errors: shapes or a spec that make no product.
absl::StatusOr<Contraction> contractionOf(const KernelSpec& kernel);

// The kernel contract_accumulate that makes a product and adds it to a sum over micro-batches: its inputs are the sum
// so far and those of `product`, its scalar is the micro-batch. It saves writing and reading what is added. Nothing
// where `product` is no contract, or makes its result by way of a packed copy, which has to be added by itself.
std::optional<KernelSpec> accumulatingKernel(const KernelSpec& product);

}  // namespace weft
