#include "planner/step/time_layouts.h"

#include <algorithm>
#include <iterator>

namespace weft {

Axis timeAxis(const Mesh& mesh) {
  return {AxisKind::kTime, 1, mesh.microBatches()};
}

Layout withoutTime(const Layout& layout) {
  Layout space = layout;
  for (size_t d = 0; d < layout.dimensions(); ++d) {
    space.setDim(d, withoutTime(layout.dim(d)));
    space.setPad(d, 0);
  }
  space.setPartial(withoutTime(layout.partial()));
  return space;
}

AxisList withoutTime(AxisList axes) {
  axes.erase(std::ranges::remove_if(axes, isTime).begin(), axes.end());
  return axes;
}

std::vector<Partial> withoutTime(std::vector<Partial> partial) {
  std::erase_if(partial, [](const Partial& p) { return isTime(p.axis); });
  return partial;
}

std::optional<ReduceKind> kindOverTime(const Layout& layout) {
  const auto partial =
      std::find_if(layout.partial().begin(), layout.partial().end(), [](const Partial& p) { return isTime(p.axis); });
  return partial == layout.partial().end() ? std::nullopt : std::optional<ReduceKind>(partial->kind);
}

int timeDim(const Layout& layout) {
  for (size_t d = 0; d < layout.dimensions(); ++d) {
    if (std::any_of(layout.dim(d).begin(), layout.dim(d).end(), isTime)) {
      return static_cast<int>(d);
    }
  }
  return -1;
}

bool splitOverTime(const Layout& layout) {
  return timeDim(layout) >= 0;
}

Shape microBatchShape(const Shape& shape, const Layout& layout, int64_t microBatches) {
  Shape microBatch = layout.storedShape(shape);
  if (const int dim = timeDim(layout); dim >= 0) {
    microBatch[dim] /= microBatches;
  }
  return microBatch;
}

Layout likeInTime(Layout layout, const Layout& other) {
  for (size_t d = 0; d < layout.dimensions(); ++d) {
    AxisList axes = withoutTime(layout.dim(d));
    std::copy_if(other.dim(d).begin(), other.dim(d).end(), std::back_inserter(axes), isTime);
    layout.setDim(d, axes);
  }
  layout.setPartial({});
  return layout;
}

std::optional<Layout> sliceTime(const Layout& current, const Layout& wanted, const Mesh& mesh) {
  if (splitOverTime(current) || !splitOverTime(wanted)) {
    return std::nullopt;
  }
  Layout sliced = current;
  for (size_t d = 0; d < wanted.dimensions(); ++d) {
    if (std::any_of(wanted.dim(d).begin(), wanted.dim(d).end(), isTime)) {
      AxisList axes = current.dim(d);
      axes.push_back(timeAxis(mesh));
      sliced.setDim(d, axes);
    }
  }
  return sliced;
}

}  // namespace weft
