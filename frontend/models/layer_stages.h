// Which pipeline stage a layer is on.
#pragma once

#include <cstdint>

namespace weft::models {

// Layers in blocks of equal size: the first on stage 0, the last on stage stages - 1.
inline int stageOf(int64_t layer, int64_t layers, int64_t stages) {
  return static_cast<int>(layer * stages / layers);
}

}  // namespace weft::models
