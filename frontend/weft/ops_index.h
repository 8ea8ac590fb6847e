// Functions that look up by integers, beyond embedding. See weft/ops.h.
//
// An index outside the dimension is an error of the data. The dimension that is looked up in may be split.
#pragma once

#include "weft/ops_base.h"

namespace weft {

// y[i, j, k] = x[i, index[i, j, k], k] for dim 1: index has x's sizes in all other dimensions (numpy.take_along_axis).
Tensor gather(const Tensor& x, int64_t dim, const Tensor& index, SourceLine at = SourceLine::current());
// x with y[i, index[i, j, k], k] += updates[i, j, k] for dim 1, in order of the indices.
Tensor scatterAdd(const Tensor& x, int64_t dim, const Tensor& index, const Tensor& updates,
                  SourceLine at = SourceLine::current());
// Whole slices of x at indices [...] in a dimension, in whose place the dimensions of the indices stand: x [4, 8, 5] at
// [2, 3] in dim 1 -> [4, 2, 3, 5] (numpy.take, torch.index_select).
Tensor take(const Tensor& x, const Tensor& indices, int64_t dim = 0, SourceLine at = SourceLine::current());
// ids [...] -> [..., classes]: 1 at the id, else 0; only 0 where the id is no class.
Tensor oneHot(const Tensor& ids, int64_t classes, Type type = kF32, SourceLine at = SourceLine::current());

}  // namespace weft
