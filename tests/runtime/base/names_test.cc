#include "runtime/base/names.h"

#include <gtest/gtest.h>

namespace weft {
namespace {

TEST(GlobTest, StarsAndQuestionMarks) {
  EXPECT_TRUE(globMatches("h*.fc.weight", "h12.fc.weight"));
  EXPECT_TRUE(globMatches("*", ""));
  EXPECT_TRUE(globMatches("**", "abc"));
  EXPECT_TRUE(globMatches("a*b*c", "a-b-b-c"));
  EXPECT_TRUE(globMatches("h?", "h1"));
  EXPECT_TRUE(globMatches("", ""));
  EXPECT_FALSE(globMatches("h?", "h"));
  EXPECT_FALSE(globMatches("h?", "h12"));
  EXPECT_FALSE(globMatches("", "h"));
  EXPECT_FALSE(globMatches("a*b", "abc"));
  EXPECT_FALSE(globMatches("[ab]", "a"));
}

// Trying every length of every star would take longer than anyone waits.
TEST(GlobTest, ManyStars) {
  std::string pattern;
  for (int i = 0; i < 40; ++i) {
    pattern += "*a";
  }
  EXPECT_FALSE(globMatches(pattern + "b", std::string(2000, 'a')));
  EXPECT_TRUE(globMatches(pattern + "*", std::string(2000, 'a')));
}

}  // namespace
}  // namespace weft
