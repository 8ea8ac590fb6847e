#include "runtime/base/random.h"

#include <cmath>
#include <vector>

#include "gtest/gtest.h"

namespace weft {
namespace {

using Words = std::array<uint32_t, 4>;

// Published vectors of Philox4x32-10 (kat_vectors of Random123). A stream's key word 1 is xored with its operator key,
// which is also counter word 3, so a seed exists for each vector.
TEST(Philox, KnownAnswers) {
  EXPECT_EQ(philoxBlock({0, 0, 0}, 0), (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  // Counter and key all ones: seed high word 0xffffffff xor 0xffffffff = 0.
  EXPECT_EQ(philoxBlock({0x00000000ffffffffU, 0xffffffff, 0xffffffff}, ~uint64_t{0}),
            (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  // The digits of pi: counter 243f6a88 85a308d3 13198a2e 03707344, key a4093822 299f31d0.
  const uint64_t seed = (uint64_t{0x299f31d0U ^ 0x03707344U} << 32) | 0xa4093822U;
  EXPECT_EQ(philoxBlock({seed, 0x03707344, 0x13198a2e}, 0x85a308d3243f6a88U),
            (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Random, BulkEqualsSingle) {
  const RandomStream stream{123456789012345, 77, 3};
  for (const uint64_t first : {uint64_t{0}, uint64_t{1}, uint64_t{6}, uint64_t{400}, (uint64_t{1} << 34) - 70}) {
    for (const int64_t count : {0, 1, 5, 63, 64, 67, 200}) {
      std::vector<uint32_t> bits(count + 1, 0xabcdabcd);
      randomBits(stream, first, count, bits.data());
      for (int64_t i = 0; i < count; ++i) {
        ASSERT_EQ(bits[i], randomBits(stream, first + i)) << first << " + " << i;
      }
      EXPECT_EQ(bits[count], 0xabcdabcd);
    }
  }
}

TEST(Random, UniformIsTheHighBits) {
  const RandomStream stream{1, 2, 3};
  for (uint64_t i = 0; i < 1000; ++i) {
    const float u = randomUniform(stream, i);
    EXPECT_EQ(u * 0x1p24F, static_cast<float>(randomBits(stream, i) >> 8));
    EXPECT_GE(u, 0.0F);
    EXPECT_LT(u, 1.0F);
  }
}

TEST(Random, NormalIsBoxMuller) {
  const RandomStream stream{9, 8, 7};
  for (const uint64_t index : {uint64_t{0}, uint64_t{5}, uint64_t{1} << 40}) {
    const Words words = philoxBlock(stream, (uint64_t{1} << 62) + index);
    const double u = (words[0] + 1.0) / 4294967296.0;
    const double v = words[1] / 4294967296.0;
    EXPECT_FLOAT_EQ(randomNormal(stream, index), std::sqrt(-2 * std::log(u)) * std::cos(2 * M_PI * v));
  }
}

TEST(Random, StreamsDiffer) {
  const RandomStream base{1, 2, 3};
  EXPECT_NE(philoxBlock(base, 0), philoxBlock({2, 2, 3}, 0));
  EXPECT_NE(philoxBlock(base, 0), philoxBlock({1, 3, 3}, 0));
  EXPECT_NE(philoxBlock(base, 0), philoxBlock({1, 2, 4}, 0));
  EXPECT_NE(philoxBlock(base, 0), philoxBlock(base, 1));
}

}  // namespace
}  // namespace weft
