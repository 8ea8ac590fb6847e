// Layouts and the time axis, which enumerates the micro-batches of a step: a dimension split over it is computed one
// micro-batch after another, a sum partial over it has a term in each.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "ir/layout/layout.h"

namespace weft {

inline bool isTime(const Axis& axis) {
  return axis.kind == AxisKind::kTime;
}
Axis timeAxis(const Mesh& mesh);

// The layout of one micro-batch: time axes and pads left out.
Layout withoutTime(const Layout& layout);
// The splits over ranks alone.
AxisList withoutTime(AxisList axes);
// The sums over ranks alone.
std::vector<Partial> withoutTime(std::vector<Partial> partial);
// How the terms of the micro-batches are combined; none: there is no term in each.
std::optional<ReduceKind> kindOverTime(const Layout& layout);
inline bool partialOverTime(const Layout& layout) {
  return kindOverTime(layout).has_value();
}
// The dimension that is split over time, -1 if there is none.
int timeDim(const Layout& layout);
bool splitOverTime(const Layout& layout);
// Is the batch, which `current` cuts into micro-batches, whole in `wanted`?
inline bool isCollection(const Layout& current, const Layout& wanted) {
  return splitOverTime(current) && !splitOverTime(wanted);
}
// Stored global shape of one of `microBatches` micro-batches of a value of this logical shape.
Shape microBatchShape(const Shape& shape, const Layout& layout, int64_t microBatches);

// The splits of `layout` over ranks with those of `other` over time; no sum is partial.
Layout likeInTime(Layout layout, const Layout& other);
// `current` cut to one micro-batch, if `wanted` is and `current` is not.
std::optional<Layout> sliceTime(const Layout& current, const Layout& wanted, const Mesh& mesh);

}  // namespace weft
