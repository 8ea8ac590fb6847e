#include "ir/layout/annotation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace weft {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class AnnotationTest : public ::testing::Test {
 protected:
  Annotation parse(const std::string& text) const {
    const absl::StatusOr<Annotation> annotation = parseAnnotation(text, mesh_);
    EXPECT_TRUE(annotation.ok()) << text << ": " << annotation.status();
    return annotation.value_or(Annotation());
  }
  std::string layoutOf(const std::string& text) const { return parse(text).layout.print(mesh_); }
  std::string errorOf(const std::string& text) const {
    return std::string(parseAnnotation(text, mesh_).status().message());
  }

  const Mesh mesh_ = *Mesh::parse("dp=2,sp=2,tp=2");
};

TEST_F(AnnotationTest, ALayoutIsClosed) {
  const Annotation annotation = parse("[{dp,tp},{}] pad{0:8}");
  EXPECT_EQ(annotation.layout.print(mesh_), "[{dp,tp},{}] pad{0:8}");
  EXPECT_THAT(annotation.open, ElementsAre(false, false));
  EXPECT_THAT(annotation.priorities, ElementsAre(std::nullopt, std::nullopt));
}

TEST_F(AnnotationTest, OpenDimensionsAndPriorities) {
  const Annotation annotation = parse("[{dp,?}, {?}p2, {tp} p1]");
  EXPECT_EQ(annotation.layout.print(mesh_), "[{dp},{},{tp}]");
  EXPECT_THAT(annotation.open, ElementsAre(true, true, false));
  EXPECT_THAT(annotation.priorities, ElementsAre(std::nullopt, 2, 1));
  EXPECT_EQ(annotation.priorityOf(0), 0);
}

TEST_F(AnnotationTest, TuplesOfMindSpore) {
  EXPECT_EQ(layoutOf("(dp, None)"), "[{dp},{}]");
  EXPECT_EQ(layoutOf("(\"dp\", (\"tp\", 'sp'), \"None\")"), "[{dp},{tp,sp},{}]");
  EXPECT_EQ(layoutOf("(,tp)"), "[{},{tp}]");
  EXPECT_EQ(layoutOf("(dp,)"), "[{dp}]");
  EXPECT_EQ(layoutOf("()"), "[]");
  EXPECT_EQ(layoutOf("((dp,tp),None) pad{1:4}"), "[{dp,tp},{}] pad{1:4}");
}

TEST_F(AnnotationTest, TextOfNames) {
  EXPECT_EQ(annotationText({"dp,tp", "", "None", "?"}), "[{dp,tp},{},{},{?}]");
  EXPECT_EQ(annotationText({}), "[]");
}

TEST_F(AnnotationTest, ErrorsNameThePosition) {
  EXPECT_THAT(errorOf("[{?,dp}]"), HasSubstr("position 6: '?' stands last in a dimension"));
  EXPECT_THAT(errorOf("[{dp}p]"), HasSubstr("position 5: expected ']', found 'p'"));
  EXPECT_THAT(errorOf("[{dp}p99999]"), HasSubstr("1000"));
  EXPECT_THAT(errorOf("[{dq}]"), HasSubstr("dq"));
  EXPECT_THAT(errorOf("(dp,dp)"), HasSubstr("axis dp is used twice"));
  EXPECT_THAT(errorOf("(dp"), HasSubstr("expected"));
  EXPECT_THAT(errorOf("((dp,tp"), HasSubstr("expected ')', found the end"));
  EXPECT_THAT(std::string(Layout::parse("[{?}]", mesh_).status().message()), HasSubstr("position 3"));
  EXPECT_THAT(std::string(Layout::parse("(dp)", mesh_).status().message()), HasSubstr("expected '['"));
}

}  // namespace
}  // namespace weft
