#include "runtime/base/numbers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace weft {
namespace {

std::string errorOf(const absl::Status& status) {
  return std::string(status.message());
}

TEST(NumbersTest, IntegersToTheLastBit) {
  EXPECT_EQ(*parseInteger("0"), 0);
  EXPECT_EQ(*parseInteger("-12"), -12);
  EXPECT_EQ(*parseInteger("9223372036854775807"), std::numeric_limits<int64_t>::max());
  EXPECT_EQ(*parseInteger("-9223372036854775808"), std::numeric_limits<int64_t>::min());
}

TEST(NumbersTest, NothingButAnInteger) {
  for (const char* text : {"", " 1", "1 ", "+1", "1x", "0x10", "1.0", "--1", "9223372036854775808",
                           "99999999999999999999", "-9223372036854775809", "eins"}) {
    EXPECT_EQ(errorOf(parseInteger(text).status()), std::string("'") + text + "' is not an integer of 64 bits");
  }
  EXPECT_FALSE(parseInteger(std::string("1\0", 2)).ok());
}

TEST(NumbersTest, Ranges) {
  EXPECT_EQ(*parseInteger("3", {1, 3}), 3);
  EXPECT_EQ(errorOf(parseInteger("4", {1, 3}).status()), "'4' is not an integer from 1 to 3");
  EXPECT_EQ(errorOf(parseInteger("0", {.least = 1}).status()), "'0' is not an integer >= 1");
  EXPECT_EQ(parseInteger("4", {1, 3}).status().code(), absl::StatusCode::kOutOfRange);
  EXPECT_EQ(parseInteger("99999999999999999999").status().code(), absl::StatusCode::kOutOfRange);
  EXPECT_EQ(parseInteger("4x", {1, 3}).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(NumbersTest, FiniteReals) {
  EXPECT_EQ(*parseReal("0.1"), 0.1);
  EXPECT_EQ(*parseReal("-2"), -2);
  EXPECT_EQ(*parseReal("1e-3"), 1e-3);
  for (const char* text : {"", "nan", "inf", "-infinity", "1e999", "1e", "0.1.2", " 1", "1,5", "+1"}) {
    EXPECT_EQ(errorOf(parseReal(text).status()), std::string("'") + text + "' is not a finite number");
  }
}

TEST(NumbersTest, Bytes) {
  EXPECT_EQ(*parseBytes("0"), 0);
  EXPECT_EQ(*parseBytes("12345"), 12345);
  EXPECT_EQ(*parseBytes("40g"), 40'000'000'000);
  EXPECT_EQ(*parseBytes("3k"), 3000);
  EXPECT_EQ(*parseBytes("512mi"), 512LL << 20);
  EXPECT_EQ(*parseBytes("2ti"), 2LL << 40);
  for (const char* text : {"", "g", "1.5g", "-1k", "4 g", "4G", "4gb"}) {
    EXPECT_EQ(errorOf(parseBytes(text).status()),
              std::string("'") + text + "' is not a number of bytes (\"40g\", \"512mi\")");
  }
  EXPECT_FALSE(parseBytes("9223373t").ok()) << "more than 64 bits";
}

}  // namespace
}  // namespace weft
