// Counter-based random numbers: a value depends on (seed, key, step, global index) and on nothing else, so a
// parameter or a dropout mask has the same bits whatever the layout.
//
// Generator: Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011).
// Key = (seed low 32 bits, seed high 32 bits xor operator key); counter = (index / 4 low, index / 4 high, step,
// operator key); element `index` is word index % 4 of the block.
#pragma once

#include <array>
#include <cstdint>

namespace weft {

struct RandomStream {
  uint64_t seed = 0;
  uint32_t key = 0;   // which operator
  uint32_t step = 0;  // which training step; 0 for initial values
};

// The four 32-bit words of one Philox block.
std::array<uint32_t, 4> philoxBlock(const RandomStream& stream, uint64_t block);

// 32 random bits for one element.
uint32_t randomBits(const RandomStream& stream, uint64_t index);

// The same for elements first ... first + count - 1.
void randomBits(const RandomStream& stream, uint64_t first, int64_t count, uint32_t* bits);

// Uniform in [0, 1), 24 random bits.
float randomUniform(const RandomStream& stream, uint64_t index);

// Standard normal by Box-Muller on words (0, 1) of the block 2^62 + index, computed in double.
float randomNormal(const RandomStream& stream, uint64_t index);

}  // namespace weft
