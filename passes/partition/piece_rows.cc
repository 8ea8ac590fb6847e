#include "passes/partition/piece_rows.h"

#include <algorithm>

namespace weft {

Layout withoutTime(const Layout& layout) {
  Layout space = layout;
  for (size_t d = 0; d < layout.dimensions(); ++d) {
    std::vector<Axis> axes = layout.dim(d);
    std::erase_if(axes, isTime);
    space.setDim(d, axes);
    space.setPad(d, 0);
  }
  std::vector<Partial> partial = layout.partial();
  std::erase_if(partial, [](const Partial& p) { return isTime(p.axis); });
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

Shape pieceShape(const Shape& shape, const Layout& layout, int64_t pieces) {
  Shape piece = layout.storedShape(shape);
  if (const int dim = timeDim(layout); dim >= 0) {
    piece[dim] /= pieces;
  }
  return piece;
}

std::vector<int64_t> PieceRows::origins() const {
  std::vector<int64_t> origins;
  for (const int64_t row : first) {
    origins.push_back(row / part * (batch / segments) + row % part);
  }
  return origins;
}

std::vector<int64_t> PieceRows::firstSegments() const {
  std::vector<int64_t> numbers;
  for (const int64_t row : first) {
    numbers.push_back(row / part);
  }
  return numbers;
}

PieceRows pieceRows(const Shape& shape, const Placed& placed, int64_t segments) {
  const int dim = timeDim(placed.layout);
  PieceRows rows;
  rows.batch = placed.layout.storedShape(shape)[dim];
  rows.local = placed.layout.localShape(shape)[dim];
  // A dimension of one row for each piece (a statistic's) is no batch: that has a row in each segment for each piece.
  rows.segments = rows.batch == placed.mesh.pieces() ? 1 : segments;
  rows.part = rows.batch / (rows.segments * placed.mesh.pieces());
  for (int64_t rank = 0; rank < placed.mesh.ranks(); ++rank) {
    // Without time each rank has the rows of all its pieces.
    rows.first.push_back(placed.layout.slice(shape, placed.mesh, rank).offset[dim] / placed.mesh.pieces());
  }
  return rows;
}

Shape rowsSeenAs(Shape shape, int dim, int64_t major, int64_t minor) {
  shape[dim] = major;
  shape.insert(shape.begin() + dim + 1, minor);
  return shape;
}

std::vector<int64_t> flatParts(const std::vector<Part>& parts) {
  std::vector<int64_t> flat;
  for (const Part& part : parts) {
    flat.insert(flat.end(), {part.source, part.target});
    for (size_t d = 0; d < part.size.size(); ++d) {
      flat.insert(flat.end(), {part.sourceOffset[d], part.targetOffset[d], part.size[d]});
    }
  }
  return flat;
}

}  // namespace weft
