// What holds of every collective of a kind.
#pragma once

#include "runtime/plan/plan.pb.h"

namespace weft {

// May output i lie in the memory of input i? All others need the input while they write the output.
inline bool mayRunInPlace(plan::CollectiveKind kind) {
  return kind == plan::ALL_REDUCE;
}

}  // namespace weft
