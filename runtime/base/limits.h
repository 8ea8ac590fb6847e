// The greatest sizes that a program may name. Whatever reads one refuses more, so that products of a few of them stay
// within 64 bits and tables with a row for each rank within memory.
#pragma once

#include <cstdint>

namespace weft {

inline constexpr int64_t kMaxRanks = int64_t{1} << 14;         // of a mesh
inline constexpr int64_t kMaxMicroBatches = int64_t{1} << 14;  // micro-batches of a step
inline constexpr int64_t kMaxBytes = int64_t{1} << 48;         // of one tensor, before it is cut

}  // namespace weft
