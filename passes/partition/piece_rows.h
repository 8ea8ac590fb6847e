// Layouts over the pieces of a step, and which rows of the batch a rank has in one piece.
//
// The batch is cut into segments of equal length, and each segment into the pieces: piece p is the p-th part of every
// segment. Its rows, numbered through the segments, are split evenly over the ranks of a mesh. Example: 24 rows, 2
// segments, 3 pieces: piece 1 is rows 4:8 and 16:20; on dp=2 each rank has one of the two parts, on dp=1 the rank has
// both. With as many segments as ranks split the batch (any program whose blocks have one mesh) a rank's rows of a
// piece are one run.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ir/layout/across.h"
#include "ir/layout/layout.h"

namespace weft {

inline bool isTime(const Axis& axis) {
  return axis.kind == AxisKind::kTime;
}

// The layout of one piece: time axes and pads left out.
Layout withoutTime(const Layout& layout);
bool pendingOverTime(const Layout& layout);
// The dimension that is split over time, -1 if there is none.
int timeDim(const Layout& layout);
// Stored global shape of one of `pieces` pieces of a value of this logical shape.
Shape pieceShape(const Shape& shape, const Layout& layout, int64_t pieces);

struct PieceRows {
  int64_t batch = 0;           // rows of the whole batch, stored
  int64_t local = 0;           // of one piece on one rank
  int64_t part = 0;            // of one piece in one segment
  int64_t segments = 0;        // of the batch
  std::vector<int64_t> first;  // number, within the piece, of a rank's first row; by rank

  // Whole parts of segments on each rank; 0 if they are not whole.
  int64_t localSegments() const { return part > 0 && local % part == 0 ? local / part : 0; }
  // Are a rank's rows of a piece one run of the batch?
  bool oneRun() const { return part > 0 && part % local == 0; }
  // Place in the batch of each rank's first row of piece 0.
  std::vector<int64_t> origins() const;
  // The segment of each rank's first row.
  std::vector<int64_t> firstSegments() const;
};

// `layout` splits a dimension of a tensor of `shape` over time.
PieceRows pieceRows(const Shape& shape, const Placed& placed, int64_t segments);

// `shape` with the rows of dimension `dim` seen as major x minor.
Shape rowsSeenAs(Shape shape, int dim, int64_t major, int64_t minor);

// For each part: source, target, then for each dimension offset at the source, offset at the target, size.
std::vector<int64_t> flatParts(const std::vector<Part>& parts);

}  // namespace weft
