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

}  // namespace

std::array<uint32_t, 4> philoxBlock(const RandomStream& stream, uint64_t block) {
  std::array<uint32_t, 4> counter = {static_cast<uint32_t>(block), static_cast<uint32_t>(block >> 32), stream.step,
                                     stream.key};
  uint32_t key0 = static_cast<uint32_t>(stream.seed);
  uint32_t key1 = static_cast<uint32_t>(stream.seed >> 32) ^ stream.key;
  for (int round = 0; round < kRounds; ++round) {
    const uint64_t product0 = uint64_t{kMultiplier0} * counter[0];
    const uint64_t product1 = uint64_t{kMultiplier1} * counter[2];
    counter = {static_cast<uint32_t>(product1 >> 32) ^ counter[1] ^ key0, static_cast<uint32_t>(product1),
               static_cast<uint32_t>(product0 >> 32) ^ counter[3] ^ key1, static_cast<uint32_t>(product0)};
    key0 += kWeyl0;
    key1 += kWeyl1;
  }
  return counter;
}

uint32_t randomBits(const RandomStream& stream, uint64_t index) {
  return philoxBlock(stream, index / 4)[index % 4];
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
