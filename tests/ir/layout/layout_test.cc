#include "ir/layout/layout.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "tests/ir/layout/layouts_of.h"
#include "tests/ir/layout/reshard_interpreter.h"

namespace weft {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Mesh meshOf(const std::string& text) {
  return *Mesh::parse(text);
}

Layout layoutOf(const std::string& text, const Mesh& mesh) {
  absl::StatusOr<Layout> layout = Layout::parse(text, mesh);
  EXPECT_TRUE(layout.ok()) << layout.status();
  return layout.value_or(Layout());
}

std::string parseError(const std::string& text, const Mesh& mesh) {
  return std::string(Layout::parse(text, mesh).status().message());
}

std::string checkError(const std::string& text, const Shape& shape, const Mesh& mesh) {
  return std::string(layoutOf(text, mesh).check(shape, mesh).message());
}

TEST(LayoutTest, PrintsWhatItParses) {
  Mesh mesh = meshOf("dp=2,tp=4,micro=3");
  for (const char* text : {"[]", "[{}]", "[{dp},{tp}]", "[{dp,tp},{}]", "[{tp,dp},{}]", "[{dp,micro},{tp:(2)2}]",
                           "[{},{tp}] partial{dp:sum}", "[{}] partial{dp:max,tp:max}", "[{tp},{}] pad{0:64}",
                           "[{tp:(1)2},{}] partial{dp:sum,tp:(2)2:sum} pad{0:6,1:8}"}) {
    EXPECT_EQ(layoutOf(text, mesh).print(mesh), text);
  }
  EXPECT_EQ(layoutOf(" [ { dp , tp } , {} ]  partial{ } ", mesh).print(mesh), "[{dp,tp},{}]");
}

TEST(LayoutTest, PartialOverSeveralNamesReadsBack) {
  Mesh mesh = meshOf("dp=2,tp=4");
  Layout layout(AxisLists{{}}, {{{AxisKind::kSpace, 1, 4}, ReduceKind::kSum}});
  EXPECT_EQ(layout.print(mesh), "[{}] partial{dp:sum,tp:(1)2:sum}");
  EXPECT_EQ(layoutOf(layout.print(mesh), mesh).canonical(), layout);
}

TEST(LayoutTest, RandomLayoutsReadBackByMeaning) {
  for (const char* text : {"dp=2,tp=4", "a=3,b=2", "12", "x=2,y=2,z=2"}) {
    Mesh mesh = meshOf(text);
    std::vector<AxisList> cuts = mesh.ranks() % 3 == 0 ? std::vector<AxisList>{testing::cutLine({3, mesh.ranks() / 3}),
                                                                               testing::cutLine({mesh.ranks() / 3, 3})}
                                                       : std::vector<AxisList>{testing::cutLine({2, 2, 2})};
    for (const Layout& layout : testing::layoutsOf(mesh, {24, 24}, cuts, true)) {
      EXPECT_EQ(layoutOf(layout.print(mesh), mesh).canonical(), layout) << layout.print(mesh);
    }
  }
}

TEST(LayoutTest, ParseErrorsNameThePosition) {
  Mesh mesh = meshOf("dp=2,tp=4");
  EXPECT_THAT(parseError("{dp}", mesh), HasSubstr("position 0: expected '[', found '{'"));
  EXPECT_THAT(parseError("[{dp}", mesh), HasSubstr("position 5: expected ']', found the end"));
  EXPECT_THAT(parseError("[{pp}]", mesh), HasSubstr("unknown axis 'pp'"));
  EXPECT_THAT(parseError("[{dp},{dp}]", mesh), HasSubstr("axis dp is used twice"));
  EXPECT_THAT(parseError("[{dp},{all:(1)4}]", mesh), HasSubstr("used twice"));
  EXPECT_THAT(parseError("[{dp}] partial{dp:sum}", mesh), HasSubstr("used twice"));
  EXPECT_THAT(parseError("[{}] partial{dp}", mesh), HasSubstr("'dp' is not axis:sum"));
  EXPECT_THAT(parseError("[{}] partial{dp:avg}", mesh), HasSubstr("'dp:avg' is not axis:sum"));
  EXPECT_THAT(parseError("[{}] pad{1:4}", mesh), HasSubstr("pad of dimension 1, but the layout has 1"));
  EXPECT_THAT(parseError("[{}] pad{0:x}", mesh), HasSubstr("'0:x' is not dimension:size"));
  EXPECT_THAT(parseError("[{}] padding{0:4}", mesh), HasSubstr("expected partial"));
  EXPECT_THAT(parseError("[{}] pad{0:4} pad{0:4}", mesh), HasSubstr("'pad' stands twice"));
}

TEST(LayoutTest, WorkedExampleOfTheHeader) {
  Mesh mesh = meshOf("dp=2,tp=4");
  Layout layout = layoutOf("[{dp},{tp}]", mesh);
  EXPECT_THAT(layout.localShape({16, 32}), ElementsAre(8, 8));
  EXPECT_THAT(layout.slice({16, 32}, mesh, 5).offset, ElementsAre(8, 8));
}

TEST(LayoutTest, LeftAxisIsMajor) {
  Mesh mesh = meshOf("dp=2,tp=4");
  EXPECT_THAT(layoutOf("[{dp,tp}]", mesh).slice({8}, mesh, 5).offset, ElementsAre(5));
  // Rank 5 is dp=1, tp=1: with tp major it holds part 1 * 2 + 1.
  EXPECT_THAT(layoutOf("[{tp,dp}]", mesh).slice({8}, mesh, 5).offset, ElementsAre(3));
}

TEST(LayoutTest, MicroBatchesAreTheMinorPart) {
  Mesh mesh = meshOf("dp=2,micro=3");
  Layout layout = layoutOf("[{dp,micro},{}]", mesh);
  EXPECT_THAT(layout.localShape({12, 5}), ElementsAre(2, 5));
  EXPECT_THAT(layout.slice({12, 5}, mesh, 0, 2).offset, ElementsAre(4, 0));
  EXPECT_THAT(layout.slice({12, 5}, mesh, 1, 1).offset, ElementsAre(8, 0));
}

TEST(LayoutTest, PadCountsValidElements) {
  Mesh mesh = meshOf("tp=4");
  Layout layout = layoutOf("[{tp}] pad{0:132}", mesh);
  EXPECT_TRUE(layout.check({70}, mesh).ok());
  EXPECT_THAT(layout.localShape({70}), ElementsAre(33));
  EXPECT_THAT(layout.slice({70}, mesh, 1).valid, ElementsAre(33));
  EXPECT_THAT(layout.slice({70}, mesh, 2).valid, ElementsAre(4));
  EXPECT_THAT(layout.slice({70}, mesh, 3).valid, ElementsAre(0));
  layout.setPad(0, 0);
  EXPECT_EQ(layout, layoutOf("[{tp}]", mesh));
}

// Slices of a random layout on a random mesh cover every element once per replica and micro-batch.
TEST(LayoutTest, SlicesTileTheTensor) {
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    std::vector<int64_t> sizes;
    for (int i = 0; i < 3; ++i) {
      sizes.push_back(random() % 4 == 0 ? 1 : i == 1 ? 3 : 2);
    }
    Mesh mesh = *Mesh::parse("a=" + std::to_string(sizes[0]) + ",b=" + std::to_string(sizes[1]) +
                             ",c=" + std::to_string(sizes[2]) + ",micro=2");
    Layout layout(2);
    int64_t parts = 1;
    for (const char* name : {"a", "b", "c"}) {
      size_t where = random() % 3;
      if (where < 2) {
        AxisList axes = layout.dim(where);
        axes.insert(axes.begin() + static_cast<int64_t>(random() % (axes.size() + 1)), *mesh.resolve(name));
        layout.setDim(where, axes);
        parts *= mesh.resolve(name)->size;
      }
    }
    bool timed = random() % 2 == 0;
    if (timed) {
      AxisList axes = layout.dim(0);
      axes.push_back(*mesh.resolve("micro"));
      layout.setDim(0, axes);
    }
    Shape shape{24, 12};  // divides by every product of axes, dimension 0 by two micro-batches besides
    ASSERT_TRUE(layout.check(shape, mesh).ok()) << layout.check(shape, mesh);
    std::vector<int64_t> covered(testing::countOf(shape), 0);
    for (int64_t rank = 0; rank < mesh.ranks(); ++rank) {
      for (int64_t microBatch = 0; microBatch < mesh.microBatches(); ++microBatch) {
        Slice slice = layout.slice(shape, mesh, rank, microBatch);
        EXPECT_EQ(slice.size, slice.valid);
        testing::forEachIndex(slice.size, [&](Shape index) {
          ++covered[(slice.offset[0] + index[0]) * shape[1] + slice.offset[1] + index[1]];
        });
      }
    }
    int64_t times = mesh.ranks() / parts * (timed ? 1 : 2);
    for (int64_t count : covered) {
      ASSERT_EQ(count, times) << layout.print(mesh);
    }
    for (const std::vector<int64_t>& group : layout.replicaGroups(mesh)) {
      EXPECT_EQ(static_cast<int64_t>(group.size()), mesh.ranks() / parts);
      for (int64_t rank : group) {
        EXPECT_EQ(layout.slice(shape, mesh, rank), layout.slice(shape, mesh, group[0]));
      }
    }
  }
}

TEST(LayoutTest, CanonicalJoinsWhatContinues) {
  Mesh mesh = meshOf("a=3,b=2");
  Layout line = layoutOf("[{all:(1)6}]", mesh);
  EXPECT_EQ(layoutOf("[{a,b}]", mesh).canonical(), line.canonical());
  EXPECT_EQ(layoutOf("[{all:(1)2,all:(2)3}]", mesh).canonical(), line.canonical());
  EXPECT_NE(layoutOf("[{b,a}]", mesh).canonical(), line.canonical());
  Mesh small = meshOf("one=1,dp=2");
  EXPECT_EQ(layoutOf("[{one},{dp}] partial{}", small).canonical(), layoutOf("[{},{dp}]", small));
}

TEST(LayoutTest, CheckErrorsNameBothNumbers) {
  Mesh mesh = meshOf("dp=2,tp=4");
  EXPECT_THAT(checkError("[{dp}]", {4, 4}, mesh), HasSubstr("has 1 dimensions, the shape [4,4] has 2"));
  EXPECT_THAT(checkError("[{dp,tp}]", {20}, mesh),
              AllOf(HasSubstr("dimension 0 of size 20 does not divide into 8 parts (dp,tp)"),
                    HasSubstr("nearest sizes that do: 16 and 24")));
  EXPECT_THAT(checkError("[{dp}] pad{0:4}", {6}, mesh), HasSubstr("pad{0:4} is smaller than the size 6"));
  EXPECT_THAT(checkError("[{dp}] pad{0:7}", {6}, mesh), HasSubstr("size 7 does not divide into 2"));
  EXPECT_THAT(checkError("[{}] partial{dp:sum,tp:max}", {6}, mesh), HasSubstr("the order would matter"));
}

TEST(LayoutTest, CheckRefusesCutsThatDoNotNest) {
  Mesh mesh = meshOf("6");
  // rank / 3 and rank % 2 are no two digits of one number.
  EXPECT_THAT(checkError("[{all:(1)2},{all:(3)2}]", {4, 4}, mesh), HasSubstr("do not nest (2 against 3)"));
  Layout wrong(AxisLists{{{AxisKind::kSpace, 1, 4}}});
  EXPECT_THAT(std::string(wrong.check({4}, mesh).message()), HasSubstr("does not cut the 6 ranks"));
}

TEST(LayoutTest, CheckWantsTimeLast) {
  Mesh mesh = meshOf("dp=2,micro=2");
  EXPECT_THAT(checkError("[{micro,dp}]", {4}, mesh), HasSubstr("time axes come last"));
}

TEST(LayoutTest, FreeAxesAreTheGaps) {
  Mesh mesh = meshOf("a=2,b=2,c=2,d=2");
  EXPECT_THAT(freeAxes({*mesh.resolve("c")}, mesh),
              ElementsAre(Axis{AxisKind::kSpace, 1, 4}, Axis{AxisKind::kSpace, 8, 2}));
  EXPECT_TRUE(freeAxes({*mesh.resolve("all")}, mesh).empty());
  EXPECT_TRUE(layoutOf("[{a}]", mesh).uses(*mesh.resolve("all:(1)4")));
  EXPECT_FALSE(layoutOf("[{a}]", mesh).uses(*mesh.resolve("b")));
  EXPECT_TRUE(layoutOf("[{}]", mesh).isReplicated());
}

}  // namespace
}  // namespace weft
