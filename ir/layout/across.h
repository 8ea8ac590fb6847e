// Tensors and layouts between two meshes.
//
// A tensor that lies on the ranks of one mesh and is wanted on the ranks of another is cut along both layouts: every
// box that one rank has and the other wants is a *box*, sent once, straight to its place.
//
// Worked example. 6x4 as [{dp},{}] on dp=2 wanted as [{dp},{}] on dp=3: ranks have rows 0:3 and 3:6, and want 0:2, 2:4
// and 4:6. Rank 0 sends rows 0:2 to rank 0 and row 2 to rank 1, rank 1 sends row 3 to rank 1 and rows 4:6 to rank 2.
#pragma once

#include <cstdint>
#include <vector>

#include "ir/layout/layout.h"
#include "ir/layout/mesh.h"

namespace weft {

// A layout with the mesh on which it is read.
struct Placed {
  const Layout& layout;
  const Mesh& mesh;
};

// The box at `sourceOffset` of the local tensor of rank `source` belongs at `targetOffset` of that of rank `target`.
struct TransferBox {
  int64_t source = 0;
  int64_t target = 0;
  Shape sourceOffset;
  Shape targetOffset;
  Shape size;
  friend bool operator==(const TransferBox&, const TransferBox&) = default;
};

// The boxes that make every target rank's local tensor, by target, then by source; for each target they are disjoint
// and cover it. `shape`: the stored shape, of one micro-batch; the layouts split it evenly and have no partial sum, pad
// or time axis. Where several ranks have a box, the one that has sent least so far sends it, of equals the nearest by
// its place on its mesh.
std::vector<TransferBox> boxesAcross(const Shape& shape, const Placed& from, const Placed& to);

// The splits of `layout` on another mesh, by name: whole named axes and the whole line become those of the same name.
// From the first axis of a dimension that has none there, the rest of the dimension is left out. Partial sums and pads
// are left out.
Layout translated(const Layout& layout, const Mesh& from, const Mesh& to);

}  // namespace weft
