// Reductions beyond sum, mean and max, and operators that work along a dimension. See weft/ops.h.
//
// Negative dimensions count from the end. Reductions without dims reduce all.
#pragma once

#include "weft/ops_base.h"

namespace weft {

Tensor min(const Tensor& x, const Shape& dims = {}, bool keepDims = false, SourceLine at = SourceLine::current());
// The dimensions are whole on every rank. Gradients are right where elements are 0.
Tensor prod(const Tensor& x, const Shape& dims = {}, bool keepDims = false, SourceLine at = SourceLine::current());
// Of bool: is any element true, are all?
Tensor any(const Tensor& x, const Shape& dims = {}, bool keepDims = false, SourceLine at = SourceLine::current());
Tensor all(const Tensor& x, const Shape& dims = {}, bool keepDims = false, SourceLine at = SourceLine::current());

struct VarianceOptions {
  bool unbiased = true;  // divides by the number of elements less one, as PyTorch; else by their number, as numpy
  bool keepDims = false;
};
// sum((x - mean(x))^2) / (n - 1), and its square root.
Tensor var(const Tensor& x, const Shape& dims = {}, const VarianceOptions& options = {},
           SourceLine at = SourceLine::current());
Tensor stddev(const Tensor& x, const Shape& dims = {}, const VarianceOptions& options = {},
              SourceLine at = SourceLine::current());
// log(sum(exp(x))), which does not overflow; -inf where all elements are.
Tensor logSumExp(const Tensor& x, const Shape& dims = {}, bool keepDims = false, SourceLine at = SourceLine::current());

// The index, of type kI32 or kI64, of the greatest (smallest) element along dimension `dim`: the first of equal ones,
// or of the NaNs. The dimension may be split.
struct ArgOptions {
  bool keepDims = false;
  Type type = kI32;
};
Tensor argmax(const Tensor& x, int64_t dim, const ArgOptions& options = {}, SourceLine at = SourceLine::current());
Tensor argmin(const Tensor& x, int64_t dim, const ArgOptions& options = {}, SourceLine at = SourceLine::current());

// y[i] = x[0] + ... + x[i] along dimension `dim`; with `reverse`, x[i] + ... + x[n-1]. The dimension is whole.
Tensor cumsum(const Tensor& x, int64_t dim, bool reverse = false, SourceLine at = SourceLine::current());

struct Sorted {
  Tensor values;
  Tensor indices;  // i32: where each value was
};
struct SortOptions {
  int64_t dim = -1;
  bool descending = false;
};
// In order along a dimension, which is whole. Equal elements stay as they were; a NaN is greater than all numbers. The
// gradient of the values goes back to where they were.
Sorted sort(const Tensor& x, const SortOptions& options = {}, SourceLine at = SourceLine::current());
struct TopKOptions {
  int64_t dim = -1;
  bool largest = true;  // else the smallest
};
// The first k of the sorted elements.
Sorted topK(const Tensor& x, int64_t k, const TopKOptions& options = {}, SourceLine at = SourceLine::current());

// x - log(sum(exp(x))) along a dimension, which may be split.
Tensor logSoftmax(const Tensor& x, int64_t dim = -1, SourceLine at = SourceLine::current());

}  // namespace weft
