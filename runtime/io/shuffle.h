// The order of training samples: a shuffle that needs no table.
#pragma once

#include <cstdint>

namespace weft {

// The place of `index` under a permutation of 0..count-1, a different one for each (seed, round). index < count.
uint64_t shuffled(uint64_t index, uint64_t count, uint64_t seed, uint32_t round);

// Sample number `index` of an endless order: one shuffled round of all `count` samples after another. What a step sees
// so depends on (seed, step) alone, and a run that goes on from a checkpoint sees what it would have seen.
int64_t shuffledSample(int64_t index, int64_t count, uint64_t seed);

}  // namespace weft
