// Layouts of one piece of a step: what is left of a layout without its time axes.
#pragma once

#include "ir/layout/layout.h"

namespace weft {

bool isTime(const Axis& axis);
// The layout of one piece: time axes and pads left out.
Layout withoutTime(const Layout& layout);
// Is it a sum over the pieces, whole only after all of them?
bool pendingOverTime(const Layout& layout);
// The dimension that is split over the pieces, -1: none.
int timeDim(const Layout& layout);
// Stored global shape of one piece of a value of this logical shape.
Shape pieceShape(const Shape& shape, const Layout& layout, const Mesh& mesh);

}  // namespace weft
