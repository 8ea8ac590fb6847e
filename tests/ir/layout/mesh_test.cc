#include "ir/layout/mesh.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace weft {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Mesh meshOf(const std::string& text) {
  absl::StatusOr<Mesh> mesh = Mesh::parse(text);
  EXPECT_TRUE(mesh.ok()) << mesh.status();
  return mesh.value_or(Mesh());
}

std::string errorOf(const absl::Status& status) {
  return std::string(status.message());
}

TEST(MeshTest, ParsesAllSpellings) {
  EXPECT_EQ(meshOf("dp=2,tp=4"), meshOf("<dp=2, tp=4>"));
  EXPECT_EQ(meshOf("dp=2,tp=4").ranks(), 8);
  EXPECT_EQ(meshOf("8").ranks(), 8);
  EXPECT_EQ(meshOf("").ranks(), 1);
  EXPECT_EQ(meshOf("dp=2,micro=3,tp=2").ranks(), 4);
  EXPECT_EQ(meshOf("dp=2,micro=3,tp=2").microBatches(), 3);
  EXPECT_EQ(meshOf("8,micro=2").microBatches(), 2);
}

TEST(MeshTest, PrintsWhatItParses) {
  for (const char* text : {"dp=2,tp=4", "8", "1", "dp=2,micro=3,tp=2", "8,micro=2"}) {
    EXPECT_EQ(meshOf(text).print(), text);
  }
}

TEST(MeshTest, RefusesWithTheOffendingPart) {
  EXPECT_THAT(errorOf(Mesh::parse("dp=0").status()), HasSubstr("'0' in 'dp=0'"));
  EXPECT_THAT(errorOf(Mesh::parse("dp=2,dp=2").status()), HasSubstr("'dp' is named twice"));
  EXPECT_THAT(errorOf(Mesh::parse("all=2").status()), HasSubstr("reserved"));
  EXPECT_THAT(errorOf(Mesh::parse("dp=x").status()), HasSubstr("'x' in 'dp=x'"));
  EXPECT_THAT(errorOf(Mesh::parse("4,dp=2").status()), HasSubstr("not both"));
  EXPECT_THAT(errorOf(Mesh::parse("dp=2,").status()), HasSubstr("expected name=size"));
  EXPECT_THAT(errorOf(Mesh::parse("a=100000,b=100000,c=100000").status()), HasSubstr("more than"));
}

TEST(MeshTest, AxesAreDigitsOfTheLine) {
  Mesh mesh = meshOf("dp=2,tp=4");
  EXPECT_EQ(*mesh.resolve("dp"), (Axis{AxisKind::kSpace, 1, 2}));
  EXPECT_EQ(*mesh.resolve("tp"), (Axis{AxisKind::kSpace, 2, 4}));
  EXPECT_EQ(*mesh.resolve("tp:(1)2"), (Axis{AxisKind::kSpace, 2, 2}));
  EXPECT_EQ(*mesh.resolve("tp:(2)2"), (Axis{AxisKind::kSpace, 4, 2}));
  EXPECT_EQ(*mesh.resolve("all:(1)4"), (Axis{AxisKind::kSpace, 1, 4}));
  EXPECT_EQ(*mesh.resolve("all"), (Axis{AxisKind::kSpace, 1, 8}));
  EXPECT_EQ(mesh.coordinate(*mesh.resolve("tp"), 6), 2);
  EXPECT_EQ(mesh.coordinate(*mesh.resolve("dp"), 6), 1);
}

TEST(MeshTest, ResolveErrorsTeach) {
  Mesh mesh = meshOf("dp=2,tp=4");
  EXPECT_THAT(errorOf(mesh.resolve("pp").status()), HasSubstr("dp, tp, all"));
  EXPECT_THAT(errorOf(mesh.resolve("tp:(1)3").status()), HasSubstr("does not divide the size 4"));
  EXPECT_THAT(errorOf(mesh.resolve("tp:2").status()), HasSubstr("name:(pre)size"));
}

TEST(MeshTest, NamesAreTheInverseOfResolve) {
  Mesh mesh = meshOf("dp=2,tp=4,micro=6");
  for (const char* text : {"dp", "tp", "tp:(1)2", "tp:(2)2", "micro", "micro:(2)3"}) {
    EXPECT_EQ(mesh.name(*mesh.resolve(text)), text);
  }
  EXPECT_EQ(mesh.name(*mesh.resolve("all")), "dp,tp");
  EXPECT_EQ(mesh.name(*mesh.resolve("all:(1)4")), "dp,tp:(1)2");
  EXPECT_EQ(meshOf("a=3,b=2").name({AxisKind::kSpace, 1, 2}), "all:(1)2");
  EXPECT_EQ(meshOf("a=3,b=2").name({AxisKind::kSpace, 2, 3}), "all:(2)3");
  EXPECT_EQ(meshOf("8").name({AxisKind::kSpace, 1, 8}), "all");
  EXPECT_EQ(meshOf("8").name({AxisKind::kSpace, 2, 2}), "all:(2)2");
}

TEST(MeshTest, GroupsDifferOnlyInTheirAxes) {
  Mesh mesh = meshOf("dp=2,tp=4");
  EXPECT_THAT(mesh.groups({*mesh.resolve("tp")}), ElementsAre(ElementsAre(0, 1, 2, 3), ElementsAre(4, 5, 6, 7)));
  EXPECT_THAT(mesh.groups({*mesh.resolve("dp")}),
              ElementsAre(ElementsAre(0, 4), ElementsAre(1, 5), ElementsAre(2, 6), ElementsAre(3, 7)));
  // The first axis is major: tp's minor half, then dp.
  EXPECT_THAT(mesh.groups({*mesh.resolve("tp:(2)2"), *mesh.resolve("dp")}),
              ElementsAre(ElementsAre(0, 4, 1, 5), ElementsAre(2, 6, 3, 7)));
  EXPECT_EQ(mesh.groups({}).size(), 8u);
}

TEST(MeshTest, OverlapAndJoin) {
  Axis a{AxisKind::kSpace, 1, 2};
  Axis b{AxisKind::kSpace, 2, 4};
  EXPECT_FALSE(overlap(a, b));
  EXPECT_EQ(*join(a, b), (Axis{AxisKind::kSpace, 1, 8}));
  EXPECT_FALSE(join(b, a).has_value());
  EXPECT_TRUE(overlap({AxisKind::kSpace, 1, 3}, {AxisKind::kSpace, 2, 3}));
  EXPECT_FALSE(overlap({AxisKind::kTime, 1, 2}, a));
}

TEST(MeshTest, WithMicroReplaces) {
  EXPECT_EQ(meshOf("dp=2").withMicro(4), meshOf("dp=2,micro=4"));
  EXPECT_EQ(meshOf("dp=2,micro=3").withMicro(4), meshOf("dp=2,micro=4"));
}

}  // namespace
}  // namespace weft
