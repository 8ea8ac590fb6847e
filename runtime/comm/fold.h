// Folding the members' values of a reduction, element by element and in group order.
#pragma once

#include <cstdint>

#include "runtime/base/dtype.h"
#include "runtime/comm/communicator.h"

namespace weft {

// Can tensors of this type be reduced between ranks?
bool isReducible(DType type);

// out[i] = a[i] op b[i]; out may be a or b. The type must be reducible. A bool is 0 or 1: sum and max are or, min is
// and.
void fold(DType type, void* out, const void* a, const void* b, int64_t count, Reduction reduction);

}  // namespace weft
