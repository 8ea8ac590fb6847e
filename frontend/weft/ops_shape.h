// Functions that move elements, beyond reshape, transpose, slice, concat and broadcastTo; and masks. See weft/ops.h.
//
// Negative dimensions count from the end.
#pragma once

#include "weft/ops_base.h"

namespace weft {

// `low[d]` times `value` before x and `high[d]` times behind it, in each dimension.
Tensor pad(const Tensor& x, const Shape& low, const Shape& high, double value = 0.0,
           SourceLine at = SourceLine::current());

// --- several tensors ---
// Tensors of one shape along a new dimension: [4, 8], [4, 8] with dim 1 -> [4, 2, 8].
Tensor stack(const std::vector<Tensor>& xs, int64_t dim = 0, SourceLine at = SourceLine::current());
// Parts of these sizes, which fill the dimension, one after another.
std::vector<Tensor> split(const Tensor& x, const Shape& sizes, int64_t dim, SourceLine at = SourceLine::current());
// Parts of one size, rounded up, of which the last may be smaller; fewer than `parts` where they fill the dimension.
std::vector<Tensor> chunk(const Tensor& x, int64_t parts, int64_t dim, SourceLine at = SourceLine::current());
// `length` elements of a dimension from `start` on, x itself where these are all; a negative start counts from the end.
Tensor narrow(const Tensor& x, int64_t dim, int64_t start, int64_t length, SourceLine at = SourceLine::current());

// --- dimensions ---
// A new dimension of size 1 in place `dim` of the result.
Tensor unsqueeze(const Tensor& x, int64_t dim, SourceLine at = SourceLine::current());
// Without these dimensions of size 1; none: without all of them.
Tensor squeeze(const Tensor& x, const Shape& dims = {}, SourceLine at = SourceLine::current());
// Dimensions `first` to `last` as one.
Tensor flatten(const Tensor& x, int64_t first = 0, int64_t last = -1, SourceLine at = SourceLine::current());
// x stretched to a shape, aligned at the right; -1 keeps a size.
Tensor expand(const Tensor& x, const Shape& shape, SourceLine at = SourceLine::current());

// --- order and repetition ---
// The order of the elements turned round in these dimensions; none: in all.
Tensor flip(const Tensor& x, const Shape& dims = {}, SourceLine at = SourceLine::current());
// Element i goes to place i + shift; those behind the end come in at the front.
Tensor roll(const Tensor& x, int64_t shift, int64_t dim, SourceLine at = SourceLine::current());
// Each element of a dimension `times` times: [a, b] -> [a, a, b, b] (numpy.repeat).
Tensor repeat(const Tensor& x, int64_t times, int64_t dim, SourceLine at = SourceLine::current());
// Each dimension `times[d]` times as a whole: [a, b] -> [a, b, a, b]. The shorter one of shape and times gets ones at
// its front (numpy.tile).
Tensor tile(const Tensor& x, const Shape& times, SourceLine at = SourceLine::current());

// --- triangles and masks ---
// x [..., m, n] with 0 where j - i > diagonal (tril), or where j - i < diagonal (triu).
Tensor tril(const Tensor& x, int64_t diagonal = 0, SourceLine at = SourceLine::current());
Tensor triu(const Tensor& x, int64_t diagonal = 0, SourceLine at = SourceLine::current());
// lengths [...] -> bool [..., size]: is the place below the length?
Tensor lengthMask(const Tensor& lengths, int64_t size, SourceLine at = SourceLine::current());

}  // namespace weft
