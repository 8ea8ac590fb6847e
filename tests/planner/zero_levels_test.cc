// Levels of ZeRO by parameter: as a text, by the first pattern that matches, as a record has them, and in words again.
#include "planner/zero_levels.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "planner/derive/zero_words.h"

namespace weft {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;

std::string errorOf(const std::string& text) {
  return std::string(parseZeroOf(text).status().message());
}

TEST(ZeroOf, ReadsWhatItPrints) {
  const ZeroPatterns patterns = {{"h*.fc.*", 3}, {"a=b", 0}, {"wte", 1}};
  EXPECT_EQ(printZeroOf(patterns), "h*.fc.*=3,a=b=0,wte=1");
  EXPECT_EQ(*parseZeroOf(printZeroOf(patterns)), patterns);
  EXPECT_THAT(*parseZeroOf(""), IsEmpty());
}

TEST(ZeroOf, RefusesWhatIsNoLevel) {
  for (const char* wrong : {"wte", "wte=", "wte=all", "wte=3,bias"}) {
    EXPECT_THAT(errorOf(wrong), AllOf(HasSubstr("is not PATTERN=LEVEL"), HasSubstr("write "))) << wrong;
  }
  EXPECT_THAT(errorOf("wte=3,bias"), HasSubstr("'bias'"));
}

TEST(ZeroOf, TheFirstPatternCounts) {
  const ZeroPatterns patterns = {{"h1.*", 2}, {"h*.fc.*", 3}};
  EXPECT_EQ(zeroLevelOf(patterns, "h1.fc.weight", 0), 2);
  EXPECT_EQ(zeroLevelOf(patterns, "h2.fc.weight", 0), 3);
  EXPECT_EQ(zeroLevelOf(patterns, "h2.qkv.weight", 1), 1);
}

// A record of two layers and an embedding with these levels of their own.
Decisions record(const std::map<std::string, int64_t>& levels) {
  Decisions record;
  record.zero = 1;
  for (const char* name : {"x", "wte", "h0.fc.weight", "h0.fc.bias", "h1.fc.weight", "h1.fc.bias"}) {
    const auto level = levels.find(name);
    record.arguments.push_back(
        {.name = name, .zero = level == levels.end() ? std::nullopt : std::optional(level->second)});
  }
  return record;
}

TEST(ZeroLevels, TheRecordsUnlessItsOwn) {
  const ZeroLevels levels(record({{"wte", 0}}));
  EXPECT_EQ(levels.of("wte"), 0);
  EXPECT_EQ(levels.of("h1.fc.bias"), 1);
}

TEST(ZeroWords, OneLevelForAll) {
  EXPECT_THAT(zeroWords(record({})), IsEmpty());
  EXPECT_EQ(zeroText(record({})), "1");
}

TEST(ZeroWords, OnePatternForLayersThatAreAlike) {
  const Decisions given = record({{"wte", 0}, {"h0.fc.weight", 3}, {"h1.fc.weight", 3}});
  EXPECT_THAT(zeroWords(given), ElementsAre(Pair("wte", 0), Pair("h*.fc.weight", 3)));
  EXPECT_EQ(zeroText(given), "1 (wte 0, h*.fc.weight 3)");
}

TEST(ZeroWords, NamesForLayersThatDiffer) {
  const Decisions given = record({{"h0.fc.weight", 3}, {"h1.fc.weight", 2}, {"h1.fc.bias", 0}});
  const ZeroPatterns patterns = zeroWords(given);
  EXPECT_THAT(patterns, ElementsAre(Pair("h0.fc.weight", 3), Pair("h1.fc.weight", 2), Pair("h1.fc.bias", 0)));
  for (const ArgumentDecision& argument : given.arguments) {
    EXPECT_EQ(zeroLevelOf(patterns, argument.name, given.zero), argument.zero.value_or(given.zero)) << argument.name;
  }
}

}  // namespace
}  // namespace weft
