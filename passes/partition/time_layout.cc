#include "passes/partition/time_layout.h"

#include <algorithm>

namespace weft {

bool isTime(const Axis& axis) {
  return axis.kind == AxisKind::kTime;
}

Layout withoutTime(const Layout& layout) {
  Layout space = layout;
  for (size_t d = 0; d < layout.dimensions(); ++d) {
    std::vector<Axis> axes = layout.dim(d);
    axes.erase(std::remove_if(axes.begin(), axes.end(), isTime), axes.end());
    space.setDim(d, axes);
    space.setPad(d, 0);
  }
  std::vector<Partial> partial = layout.partial();
  partial.erase(std::remove_if(partial.begin(), partial.end(), [](const Partial& p) { return isTime(p.axis); }),
                partial.end());
  space.setPartial(partial);
  return space;
}

bool pendingOverTime(const Layout& layout) {
  return std::any_of(layout.partial().begin(), layout.partial().end(), [](const Partial& p) { return isTime(p.axis); });
}

int timeDim(const Layout& layout) {
  for (size_t d = 0; d < layout.dimensions(); ++d) {
    if (std::any_of(layout.dim(d).begin(), layout.dim(d).end(), isTime)) {
      return static_cast<int>(d);
    }
  }
  return -1;
}

Shape pieceShape(const Shape& shape, const Layout& layout, const Mesh& mesh) {
  Shape piece = layout.storedShape(shape);
  if (const int dim = timeDim(layout); dim >= 0) {
    piece[dim] /= mesh.pieces();
  }
  return piece;
}

}  // namespace weft
