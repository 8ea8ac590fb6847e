#include "runtime/base/random.h"

#include <cmath>
#include <numbers>

namespace weft {
namespace {

constexpr uint32_t kMultiplier0 = 0xD2511F53;
constexpr uint32_t kMultiplier1 = 0xCD9E8D57;
constexpr uint32_t kWeyl0 = 0x9E3779B9;
constexpr uint32_t kWeyl1 = 0xBB67AE85;
constexpr int kRounds = 10;
// Normal draws use blocks no uniform draw of the same stream reaches.
constexpr uint64_t kNormalBlocks = uint64_t{1} << 62;

// kWidth consecutive blocks side by side, in loops that become vectors; block b's word w is words[w][b].
template <size_t kWidth>
struct Blocks {
  std::array<std::array<uint32_t, kWidth>, 4> words;

  Blocks(const RandomStream& stream, uint64_t first) {
    for (size_t b = 0; b < kWidth; ++b) {
      words[0][b] = static_cast<uint32_t>(first + b);
      words[1][b] = static_cast<uint32_t>((first + b) >> 32);
      words[2][b] = stream.step;
      words[3][b] = stream.key;
    }
    uint32_t key0 = static_cast<uint32_t>(stream.seed);
    uint32_t key1 = static_cast<uint32_t>(stream.seed >> 32) ^ stream.key;
    for (int round = 0; round < kRounds; ++round) {
      for (size_t b = 0; b < kWidth; ++b) {
        const uint64_t product0 = uint64_t{kMultiplier0} * words[0][b];
        const uint64_t product1 = uint64_t{kMultiplier1} * words[2][b];
        words[0][b] = static_cast<uint32_t>(product1 >> 32) ^ words[1][b] ^ key0;
        words[1][b] = static_cast<uint32_t>(product1);
        words[2][b] = static_cast<uint32_t>(product0 >> 32) ^ words[3][b] ^ key1;
        words[3][b] = static_cast<uint32_t>(product0);
      }
      key0 += kWeyl0;
      key1 += kWeyl1;
    }
  }
};

}  // namespace

std::array<uint32_t, 4> philoxBlock(const RandomStream& stream, uint64_t block) {
  const Blocks<1> blocks(stream, block);
  return {blocks.words[0][0], blocks.words[1][0], blocks.words[2][0], blocks.words[3][0]};
}

uint32_t randomBits(const RandomStream& stream, uint64_t index) {
  return philoxBlock(stream, index / 4)[index % 4];
}

void randomBits(const RandomStream& stream, uint64_t first, int64_t count, uint32_t* bits) {
  constexpr size_t kWidth = 16;
  const auto isAligned = [&] { return first % 4 == 0; };
  for (; count > 0 && (!isAligned() || count < static_cast<int64_t>(4 * kWidth)); --count) {
    *bits++ = randomBits(stream, first++);
  }
  while (count >= static_cast<int64_t>(4 * kWidth)) {
    const Blocks<kWidth> blocks(stream, first / 4);
    for (size_t b = 0; b < kWidth; ++b) {
      for (size_t word = 0; word < 4; ++word) {
        *bits++ = blocks.words[word][b];
      }
    }
    first += 4 * kWidth;
    count -= 4 * kWidth;
  }
  for (; count > 0; --count) {
    *bits++ = randomBits(stream, first++);
  }
}

float randomUniform(const RandomStream& stream, uint64_t index) {
  return static_cast<float>(randomBits(stream, index) >> 8) * 0x1.0p-24F;
}

float randomNormal(const RandomStream& stream, uint64_t index) {
  const std::array<uint32_t, 4> words = philoxBlock(stream, kNormalBlocks + index);
  // (0, 1]: the logarithm stays finite.
  const double u = (static_cast<double>(words[0]) + 1.0) * 0x1.0p-32;
  const double v = static_cast<double>(words[1]) * 0x1.0p-32;
  return static_cast<float>(std::sqrt(-2.0 * std::log(u)) * std::cos(2.0 * std::numbers::pi * v));
}

}  // namespace weft
