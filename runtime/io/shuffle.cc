#include "runtime/io/shuffle.h"

#include "runtime/base/random.h"

namespace weft {
namespace {

// The operator key of the shuffle: no operator of a model has it.
constexpr uint32_t kShuffleKey = 0xDA7A5E7u;
constexpr int kFeistelRounds = 4;

}  // namespace

// A Feistel network over the least even number of bits that holds count, walked until the value falls into the range
// (Black and Rogaway, "Ciphers with arbitrary finite domains", 2002). Needs no table, so any step's samples are found
// at once.
uint64_t shuffled(uint64_t index, uint64_t count, uint64_t seed, uint32_t round) {
  int half = 1;
  while ((uint64_t{1} << (2 * half)) < count) {
    ++half;
  }
  const uint64_t mask = (uint64_t{1} << half) - 1;
  do {
    uint64_t left = index >> half;
    uint64_t right = index & mask;
    for (int i = 0; i < kFeistelRounds; ++i) {
      const RandomStream stream = {seed, kShuffleKey + static_cast<uint32_t>(i), round};
      const uint64_t mixed = left ^ (randomBits(stream, right) & mask);
      left = right;
      right = mixed;
    }
    index = left << half | right;
  } while (index >= count);
  return index;
}

int64_t shuffledSample(int64_t index, int64_t count, uint64_t seed) {
  const uint64_t at = static_cast<uint64_t>(index);
  const uint64_t samples = static_cast<uint64_t>(count);
  return static_cast<int64_t>(shuffled(at % samples, samples, seed, static_cast<uint32_t>(at / samples)));
}

}  // namespace weft
