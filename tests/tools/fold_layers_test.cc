// Which lines fold, and into which names.

#include "tools/analysis/fold_layers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace weft::tools {
namespace {

using ::testing::ElementsAre;

// The names of the folded lines, with how many each stands for: "h0..h1.proj 2".
std::vector<std::string> namesOf(const std::vector<FoldableLine>& lines) {
  std::vector<std::string> names;
  for (const FoldedLine& line : foldLayers(lines)) {
    names.push_back(line.name + " " + std::to_string(line.members.size()));
  }
  return names;
}

std::vector<FoldableLine> named(const std::vector<std::string>& names) {
  std::vector<FoldableLine> lines;
  for (const std::string& name : names) {
    lines.push_back({name, {}, ""});
  }
  return lines;
}

TEST(FoldLayersTest, NamesThatDifferInOneNumber) {
  EXPECT_THAT(namesOf(named({"h0.proj", "h0.out", "h1.proj", "h1.out", "head"})),
              ElementsAre("h0..h1.proj 2", "h0..h1.out 2", "head 1"));
  EXPECT_THAT(namesOf(named({"h11.fc.grad", "h10.fc.grad", "h9.fc.grad"})), ElementsAre("h9..h11.fc.grad 3"));
  EXPECT_THAT(namesOf(named({"h0.fc", "h2.fc", "h3.fc", "h7.fc"})), ElementsAre("h0,h2..h3,h7.fc 4"));
  EXPECT_THAT(namesOf(named({"grad.h0.fc", "grad.h1.fc"})), ElementsAre("grad.h0..h1.fc 2"));
  EXPECT_THAT(namesOf(named({"layers.0.fc", "layers.1.fc"})), ElementsAre("layers.0..1.fc 2"));
}

TEST(FoldLayersTest, OtherNamesStayApart) {
  EXPECT_THAT(namesOf(named({"h0.fc", "g1.fc"})), ElementsAre("h0.fc 1", "g1.fc 1"));
  EXPECT_THAT(namesOf(named({"0.fc", "1.fc", ".2", ".3"})), ElementsAre("0.fc 1", "1.fc 1", ".2 1", ".3 1"));
  EXPECT_THAT(namesOf(named({"h0.fc", "h99999999999999999999.fc"})),
              ElementsAre("h0.fc 1", "h99999999999999999999.fc 1"));
}

TEST(FoldLayersTest, AllElseMustBeEqual) {
  EXPECT_THAT(namesOf({{"h0.fc", {}, "8 bytes"}, {"h1.fc", {}, "8 bytes"}, {"h2.fc", {}, "4 bytes"}}),
              ElementsAre("h0..h1.fc 2", "h2.fc 1"));
}

// Of two numbers in a name the one counts in which more lines agree.
TEST(FoldLayersTest, TheNumberInWhichTheMostLinesAgree) {
  EXPECT_THAT(namesOf(named({"stage0.conv1", "stage0.conv2", "stage1.conv1", "stage1.conv2", "stage2.conv1"})),
              ElementsAre("stage0..stage2.conv1 3", "stage0..stage1.conv2 2"));
  EXPECT_THAT(namesOf(named({"stage0.conv1", "stage0.conv2", "stage0.conv3"})), ElementsAre("stage0.conv1..conv3 3"));
}

// A text may name operators of the same layer or of the next one; numbers of other kinds stay what they are.
TEST(FoldLayersTest, TextsFollowTheLayer) {
  const std::vector<FoldedLine> next = foldLayers({{"h0.out", {"h1.norm reads operand 0: [{h0}]"}, ""},
                                                   {"h1.out", {"h2.norm reads operand 0: [{h1}]"}, ""},
                                                   {"h2.out", {"h5.norm reads operand 0: [{h2}]"}, ""}});
  ASSERT_EQ(next.size(), 2U);
  EXPECT_EQ(next[0].name, "h0..h1.out");
  EXPECT_THAT(next[0].texts, ElementsAre("h1..h2.norm reads operand 0: [{h0..h1}]"));
  EXPECT_THAT(next[1].texts, ElementsAre("h5.norm reads operand 0: [{h2}]"));
  // "operand 0" of layer 0 and "operand 1" of layer 1 differ in what they read, not in the layer.
  EXPECT_EQ(foldLayers({{"h0.out", {"h0.add reads operand 0"}, ""}, {"h1.out", {"h1.add reads operand 1"}, ""}}).size(),
            2U);
}

TEST(FoldLayersTest, EqualLinesFoldWithoutANumber) {
  EXPECT_THAT(namesOf(named({"sum", "sum", "max"})), ElementsAre("sum 2", "max 1"));
}

TEST(FoldLayersTest, ControlCharactersInForeignNamesFoldNothingElse) {
  EXPECT_THAT(namesOf(named({"h\x01"
                             "0\x01.fc",
                             "h3.fc", "h4.fc"})),
              ElementsAre("h\x01"
                          "0\x01.fc 1",
                          "h3..h4.fc 2"));
}

}  // namespace
}  // namespace weft::tools
