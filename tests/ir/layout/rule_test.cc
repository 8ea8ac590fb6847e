#include "ir/layout/rule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace weft {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Rule ruleOf(const std::string& text, const std::vector<Shape>& in, const std::vector<Shape>& out) {
  absl::StatusOr<Rule> rule = Rule::parse(text, in, out);
  EXPECT_TRUE(rule.ok()) << rule.status();
  return rule.value_or(Rule());
}

std::string ruleError(const std::string& text, const std::vector<Shape>& in, const std::vector<Shape>& out) {
  return std::string(Rule::parse(text, in, out).status().message());
}

Rule matmul() {
  return ruleOf("m k+, k+ n -> m n", {{8, 6}, {6, 12}}, {{8, 12}});
}

std::string nameOf(const Rule& rule) {
  std::string names;
  for (const Factor& factor : rule.factors()) {
    names += factor.name + "=" + std::to_string(factor.size) + " ";
  }
  return names;
}

class RuleOnMesh : public ::testing::Test {
 protected:
  Mesh mesh_ = *Mesh::parse("dp=2,tp=4,micro=2");
  Axis dp_ = *mesh_.resolve("dp");
  Axis tp_ = *mesh_.resolve("tp");
  Axis micro_ = *mesh_.resolve("micro");
};

TEST(RuleTest, FactorsInOrderOfFirstAppearance) {
  Rule rule = matmul();
  EXPECT_EQ(nameOf(rule), "m=8 k=6 n=12 ");
  EXPECT_TRUE(rule.factors()[1].reducible);
  EXPECT_TRUE(rule.splittable(1));
  EXPECT_TRUE(rule.reducedIn(1, 0));
  EXPECT_FALSE(rule.reducedIn(0, 0));
  EXPECT_EQ(rule.factorIndex("n"), 2);
  EXPECT_EQ(rule.factorIndex("q"), -1);
}

TEST(RuleTest, MarksCountOnAnyOccurrence) {
  Rule norm = ruleOf("b+ c!, c, b, b, b c -> b c, c, c", {{4, 3}, {3}, {4}, {4}, {4, 3}}, {{4, 3}, {3}, {3}});
  EXPECT_TRUE(norm.splittable(0));
  EXPECT_TRUE(norm.reducedIn(0, 1));
  EXPECT_FALSE(norm.reducedIn(0, 0));
  EXPECT_FALSE(norm.splittable(1));
}

TEST(RuleTest, WhatAnExpansionMaySplit) {
  const Rule rule = *Rule::parse("t s! d!!, s d -> t s d", {{2, 3, 4}, {3, 4}}, {{2, 3, 4}});
  EXPECT_FALSE(rule.factors()[0].mayExpand());
  EXPECT_TRUE(rule.factors()[1].mayExpand());
  EXPECT_FALSE(rule.factors()[2].mayExpand());
  EXPECT_FALSE(rule.splittable(1) || rule.splittable(2));
  const Rule twice = *Rule::parse("t s!, s! -> t", {{2, 3}, {3}}, {{2}});
  EXPECT_TRUE(twice.factors()[1].mayExpand()) << "marked once, twice";
}

TEST(RuleTest, AFactorThatAResultLacksStaysWhole) {
  Rule rule = ruleOf("a b -> a", {{4, 6}}, {{4}});
  EXPECT_TRUE(rule.splittable(0));
  EXPECT_FALSE(rule.splittable(1));
}

// A sum that is kept for each micro-batch of the step is not partial over time; over space it is.
TEST(RuleTest, MicroBatchesAreSplitOverTimeBesideTheBatch) {
  const Mesh mesh = Mesh::parse("dp=2")->withMicro(3);
  const Axis dp = mesh.axes()[0].axis;
  const Axis micro = {AxisKind::kTime, 1, 3};
  Rule rule = ruleOf("a+ b -> p~ b", {{12, 5}}, {{3, 5}});
  const int microBatches = rule.factorIndex("p");
  EXPECT_FALSE(rule.splittable(microBatches));
  EXPECT_TRUE(rule.splittable(rule.factorIndex("a")));
  const FactorAxes axes = {{dp, micro}, {}, {micro}};
  EXPECT_TRUE(rule.check(axes, mesh).ok()) << rule.check(axes, mesh);
  EXPECT_EQ(rule.resultLayout(0, axes).print(mesh), "[{micro},{}] partial{dp:sum}");
  EXPECT_EQ(std::string(rule.check({{}, {}, {dp}}, mesh).message()).substr(0, 37),
            "factor 'p' of size 3 must stay whole ");
}

TEST(RuleTest, ScalarsAndNoTensors) {
  Rule loss = ruleOf("a+ ->", {{5}}, {{}});
  ASSERT_EQ(loss.results().size(), 1u);
  EXPECT_TRUE(loss.results()[0].empty());
  EXPECT_TRUE(loss.reducedIn(0, 0));
  Rule iota = ruleOf("-> a b", {}, {{2, 3}});
  EXPECT_TRUE(iota.operands().empty());
  EXPECT_EQ(nameOf(iota), "a=2 b=3 ");
  Rule scale = ruleOf(", m -> m", {{}, {7}}, {{7}});
  ASSERT_EQ(scale.operands().size(), 2u);
  EXPECT_TRUE(scale.operands()[0].empty());
  Rule update = ruleOf("a, ->", {{3}, {}}, {});
  EXPECT_EQ(update.operands().size(), 2u);
  EXPECT_TRUE(update.results().empty());
  Rule scalar = ruleOf("->", {{}}, {{}});
  EXPECT_EQ(scalar.operands().size(), 1u);
}

TEST(RuleTest, CompoundDimensionsTakeSizesFromElsewhere) {
  EXPECT_EQ(nameOf(ruleOf("a b -> (a b)", {{6, 4}}, {{24}})), "a=6 b=4 ");
  EXPECT_EQ(nameOf(ruleOf("(a b) -> a b", {{24}}, {{6, 4}})), "a=6 b=4 ");
  EXPECT_EQ(nameOf(ruleOf("(a b), b -> a b", {{24}, {4}}, {{6, 4}})), "a=6 b=4 ");
}

TEST(RuleTest, SizeErrorsNameBothTensors) {
  EXPECT_THAT(ruleError("m k+, k+ n -> m n", {{8, 6}, {7, 12}}, {{8, 12}}),
              AllOf(HasSubstr("operand 1 dimension 0 (7)"), HasSubstr("'k' = 6 from operand 0 dimension 1 (6)")));
  EXPECT_THAT(ruleError("a b -> (a b)", {{6, 4}}, {{25}}), HasSubstr("result 0 dimension 0 (25) does not agree"));
  EXPECT_THAT(ruleError("a 1 -> a", {{6, 4}}, {{6}}), HasSubstr("the 1 of the rule"));
  EXPECT_THAT(ruleError("(a b) -> (a b)", {{6}}, {{6}}), HasSubstr("cannot be told apart"));
  EXPECT_THAT(ruleError("a, b -> a", {{6}}, {{6}}), HasSubstr("has 2 operands, the operator has 1"));
  EXPECT_THAT(ruleError("a b -> a", {{6}}, {{6}}), HasSubstr("operand 0 has 2 dimensions in the rule, 1 in its shape"));
}

TEST(RuleTest, SyntaxErrorsNameThePosition) {
  EXPECT_THAT(ruleError("a b", {{1, 2}}, {}), HasSubstr("position 3: expected '->'"));
  EXPECT_THAT(ruleError("a 2 -> a", {{1, 2}}, {{1}}), HasSubstr("position 2: expected a factor name"));
  EXPECT_THAT(ruleError("(a b -> a", {{1}}, {{1}}), HasSubstr("expected a factor name"));
  EXPECT_THAT(ruleError("a a -> a", {{1, 1}}, {{1}}), HasSubstr("'a' stands twice"));
  EXPECT_THAT(ruleError("a -> a -> a", {{1}}, {{1}}), HasSubstr("a second '->'"));
}

TEST_F(RuleOnMesh, LayoutsOfMatmul) {
  FactorAxes axes{{dp_}, {tp_}, {}};
  Rule rule = ruleOf("m k+, k+ n -> m n", {{8, 8}, {8, 12}}, {{8, 12}});
  EXPECT_EQ(rule.operandLayout(0, axes).print(mesh_), "[{dp},{tp}]");
  EXPECT_EQ(rule.operandLayout(1, axes).print(mesh_), "[{tp},{}]");
  EXPECT_EQ(rule.resultLayout(0, axes).print(mesh_), "[{dp},{}] partial{tp:sum}");
  EXPECT_EQ(rule.resultLayout(0, axes, ReduceKind::kMax).print(mesh_), "[{dp},{}] partial{tp:max}");
}

TEST_F(RuleOnMesh, CompoundLayoutsAreMajorFirst) {
  Rule rule = ruleOf("a b -> (a b)", {{2, 8}}, {{16}});
  FactorAxes axes{{dp_}, {tp_}};
  EXPECT_TRUE(rule.check(axes, mesh_).ok()) << rule.check(axes, mesh_);
  EXPECT_EQ(rule.resultLayout(0, axes).print(mesh_), "[{dp,tp}]");
}

TEST_F(RuleOnMesh, MinorFactorBehindAnOpenOneIsRefused) {
  Rule rule = ruleOf("a b -> (a b)", {{6, 8}}, {{48}});
  std::string error(rule.check({{}, {tp_}}, mesh_).message());
  EXPECT_THAT(error, AllOf(HasSubstr("factor 'b' of size 8 is split 4"), HasSubstr("'a' of size 6")));
  EXPECT_FALSE(rule.check({{dp_}, {tp_}}, mesh_).ok());
  EXPECT_TRUE(rule.check({{dp_}, {}}, mesh_).ok());
  // A major factor of size 1 is in nobody's way.
  EXPECT_TRUE(ruleOf("a b -> (a b)", {{1, 8}}, {{8}}).check({{}, {tp_}}, mesh_).ok());
}

TEST_F(RuleOnMesh, CheckErrors) {
  Rule rule = matmul();
  EXPECT_THAT(std::string(rule.check({{}, {tp_}, {}}, mesh_).message()),
              AllOf(HasSubstr("factor 'k' of size 6 does not divide into 4 parts (tp)"), HasSubstr("3 and 6")));
  EXPECT_TRUE(rule.check({{}, {tp_}, {}}, mesh_, {1}).ok());
  EXPECT_THAT(std::string(rule.check({{tp_}, {}, {tp_}}, mesh_).message()),
              HasSubstr("axis tp of factor 'n' is used by factor 'm'"));
  Rule softmax = ruleOf("a v! -> a v", {{4, 8}}, {{4, 8}});
  EXPECT_THAT(std::string(softmax.check({{}, {dp_}}, mesh_).message()),
              AllOf(HasSubstr("'v' of size 8 must stay whole"), HasSubstr("split 2 ways over dp")));
  EXPECT_THAT(std::string(rule.check({{}}, mesh_).message()), HasSubstr("has 3 factors"));
}

TEST_F(RuleOnMesh, ProjectionIsTheInverseOfLayouts) {
  Rule rule = ruleOf("m k+, k+ n -> m n", {{8, 8}, {8, 12}}, {{8, 12}});
  Layout layout = *Layout::parse("[{dp,micro},{tp}]", mesh_);
  Rule::Projection projection = rule.projectOperand(0, layout);
  EXPECT_EQ(rule.operandLayout(0, projection.axes), layout);
  EXPECT_TRUE(projection.overflow.empty());
  EXPECT_TRUE(projection.axes[2].empty());
}

TEST_F(RuleOnMesh, ProjectionSplitsAnAxisWhereAFactorEnds) {
  Rule rule = ruleOf("(a b) -> a b", {{16}}, {{2, 8}});
  Rule::Projection both = rule.projectOperand(0, *Layout::parse("[{all}]", mesh_));
  EXPECT_EQ(rule.resultLayout(0, both.axes).print(mesh_), "[{dp},{tp}]");
  Rule::Projection one = rule.projectOperand(0, *Layout::parse("[{tp}]", mesh_));
  EXPECT_EQ(rule.resultLayout(0, one.axes).print(mesh_), "[{tp:(1)2},{tp:(2)2}]");
}

TEST_F(RuleOnMesh, ProjectionReportsWhatDoesNotFit) {
  // a = 6 takes the dp of size 2; of the three elements left on a rank, tp = 4 cannot take a part.
  Rule rule = ruleOf("(a b) -> a b", {{48}}, {{6, 8}});
  Rule::Projection projection = rule.projectOperand(0, *Layout::parse("[{dp,tp}]", mesh_));
  EXPECT_THAT(projection.overflow, ElementsAre(tp_));
  // Nor does an axis of 4 alone: half of it fits, but then `a` does not end.
  projection = rule.projectOperand(0, *Layout::parse("[{tp}]", mesh_));
  EXPECT_THAT(projection.overflow, ElementsAre(tp_));
  EXPECT_TRUE(projection.axes[0].empty());
  // A dimension of size 1 takes nothing.
  Rule broadcast = ruleOf("a 1 -> a b", {{4, 1}}, {{4, 4}});
  EXPECT_THAT(broadcast.projectOperand(0, *Layout::parse("[{},{dp}]", mesh_)).overflow, ElementsAre(dp_));
}

TEST_F(RuleOnMesh, PaddedDimensionProjectsWhole) {
  Rule rule = ruleOf("v e -> v e", {{50257, 4}}, {{50257, 4}});
  Rule::Projection projection = rule.projectOperand(0, *Layout::parse("[{dp},{}] pad{0:50258}", mesh_));
  EXPECT_THAT(projection.axes[0], ElementsAre(dp_));
}

// resolveSplits.

class Splits : public ::testing::Test {
 protected:
  static std::string print(const absl::StatusOr<SplitStrategy>& strategy, const Rule& rule, const Mesh& mesh) {
    if (!strategy.ok()) {
      return std::string(strategy.status().message());
    }
    std::string text;
    for (size_t o = 0; o < rule.operands().size(); ++o) {
      text += rule.operandLayout(o, strategy->axes).print(mesh) + " ";
    }
    text += "->";
    for (const Layout& layout : strategy->results) {
      text += " " + layout.print(mesh);
    }
    return text + " x" + std::to_string(strategy->repeats);
  }

  std::string resolve(const Rule& rule, const std::vector<Shape>& in, const std::vector<Shape>& out = {}) const {
    return print(resolveSplits(rule, in, out, mesh_), rule, mesh_);
  }

  Mesh mesh_ = *Mesh::parse("8");
  Rule matmul_ = ruleOf("m k+, k+ n -> m n", {{16, 8}, {8, 12}}, {{16, 12}});
};

TEST_F(Splits, FactorsTakeTheLineInRuleOrder) {
  EXPECT_EQ(resolve(matmul_, {{2, 1}, {1, 4}}), "[{all:(1)2},{}] [{},{all:(2)4}] -> [{all:(1)2},{all:(2)4}] x1");
  EXPECT_EQ(resolve(matmul_, {{2, 2}, {2, 2}}),
            "[{all:(1)2},{all:(2)2}] [{all:(2)2},{all:(4)2}] -> [{all:(1)2},{all:(4)2}] x1");
}

TEST_F(Splits, WhatIsLeftRepeatsAsTheMinorPart) {
  EXPECT_EQ(resolve(matmul_, {{4, 1}, {1, 1}}), "[{all:(1)4},{}] [{},{}] -> [{all:(1)4},{}] x2");
  EXPECT_EQ(resolve(matmul_, {{1, 1}, {1, 1}}), "[{},{}] [{},{}] -> [{},{}] x8");
}

TEST_F(Splits, ResultSplitsAskForReduceScatter) {
  EXPECT_EQ(resolve(matmul_, {{2, 4}, {4, 1}}, {{2, 1}}),
            "[{all:(1)2},{all:(2)4}] [{all:(2)4},{}] -> [{all:(1)2},{}] x1");
  EXPECT_EQ(resolve(matmul_, {{2, 4}, {4, 1}}, {{8, 1}}),
            "[{all:(1)2},{all:(2)4}] [{all:(2)4},{}] -> [{all:(1)2,all:(2)4},{}] x1");
  EXPECT_EQ(resolve(matmul_, {{2, 4}, {4, 1}}, {{2, 4}}),
            "[{all:(1)2},{all:(2)4}] [{all:(2)4},{}] -> [{all:(1)2},{all:(2)4}] x1");
}

TEST_F(Splits, NamedAxesAreTheSameLine) {
  Mesh named = *Mesh::parse("dp=2,tp=4");
  EXPECT_EQ(print(resolveSplits(matmul_, {{2, 1}, {1, 4}}, {}, named), matmul_, named),
            "[{dp},{}] [{},{tp}] -> [{dp},{tp}] x1");
}

TEST_F(Splits, BroadcastResultsTakeTheirOwnSplits) {
  Rule iota = ruleOf("-> a b", {}, {{4, 6}});
  EXPECT_EQ(resolve(iota, {}, {{4, 2}}), "-> [{all:(1)4},{all:(4)2}] x1");
  EXPECT_EQ(resolve(iota, {}), "-> [{},{}] x8");
}

TEST_F(Splits, SomeOperandsSayTheRest) {
  EXPECT_EQ(resolve(matmul_, {{2, 4}}), "[{all:(1)2},{all:(2)4}] [{all:(2)4},{}] -> [{all:(1)2},{}] x1");
  EXPECT_EQ(resolve(matmul_, {{}, {4, 1}}), "[{},{all:(1)4}] [{all:(1)4},{}] -> [{},{}] x2");
  EXPECT_EQ(resolve(matmul_, {}, {{2, 4}}), "[{all:(1)2},{}] [{},{all:(2)4}] -> [{all:(1)2},{all:(2)4}] x1");
  EXPECT_EQ(resolveSplits(matmul_, {{2, 4}}, {}, mesh_)->said, (std::vector<bool>{true, true, false}));
  EXPECT_EQ(resolveSplits(matmul_, {{2, 4}, {4, 1}}, {}, mesh_)->said, (std::vector<bool>{true, true, true}));
}

TEST_F(Splits, CompoundDimensionsSplitMajorFirst) {
  Rule reshape = ruleOf("(a b) -> a b", {{24}}, {{2, 12}});
  EXPECT_EQ(resolve(reshape, {{4}}), "[{all:(1)2,all:(2)2}] -> [{all:(1)2},{all:(2)2}] x2");
  Rule odd = ruleOf("(a b) -> a b", {{24}}, {{6, 4}});
  EXPECT_EQ(resolve(odd, {{4}}),
            "operand 0 dimension 0 of size 24 = 6 x 4 does not divide into 4 parts; nearest legal splits: 3 and 6");
}

TEST_F(Splits, ErrorsNamePlaceNumbersAndRemedy) {
  EXPECT_EQ(resolve(matmul_, {{2, 1}, {1, 1}, {1}}),
            "splits are given for 3 operands, the operator has 2; give at most one list for each");
  EXPECT_EQ(resolve(matmul_, {{2}, {1, 1}}),
            "operand 0 has 2 dimensions, its splits {2} have 1; give one number for each dimension");
  EXPECT_EQ(resolve(matmul_, {{0, 1}, {1, 1}}),
            "operand 0 dimension 0: split 0 is less than 1; write 1 for a whole dimension");
  EXPECT_EQ(resolve(matmul_, {{1, 1}, {1, 8}}),
            "operand 1 dimension 1 of size 12 does not divide into 8 parts; nearest legal splits: 6 and 12");
  EXPECT_EQ(resolve(matmul_, {{1, 2}, {4, 1}}),
            "factor 'k' of size 8 has two splits: 2 from operand 0 dimension 1 and 4 from operand 1 dimension 0; write "
            "the same split in both");
  EXPECT_EQ(resolve(matmul_, {{16, 1}, {1, 1}}),
            "operand 0 dimension 0: 16 parts, but there are only 8 ranks; nearest legal number of parts: 8");
  EXPECT_EQ(resolve(matmul_, {{8, 1}, {1, 2}}),
            "splits m=8, n=2: 16 parts, but there are only 8 ranks; nearest legal number of parts: 8");
  EXPECT_EQ(resolve(matmul_, {{1, 1}, {1, 3}}),
            "splits n=3: the product 3 does not divide the 8 ranks; nearest products that do: 2 and 4");
  EXPECT_EQ(resolve(matmul_, {{2, 1}, {1, 1}}, {{4, 1}}),
            "result 0 dimension 0: split 4 is asked, the operand splits give 2; legal here: 2");
  EXPECT_EQ(resolve(matmul_, {{2, 2}, {2, 1}}, {{8, 1}}),
            "result 0 dimension 0: split 8 is asked, the operand splits give 2; legal here: 2 or 4 (with the reduced "
            "factors)");
  Rule softmax = ruleOf("a v! -> a v", {{4, 8}}, {{4, 8}});
  EXPECT_EQ(resolve(softmax, {{1, 2}}),
            "operand 0 dimension 1: factor 'v' of size 8 must stay whole in 'a v! -> a v', its split is 2; nearest "
            "legal split: 1");
  Rule broadcast = ruleOf("a b, 1 b -> a b", {{4, 8}, {1, 8}}, {{4, 8}});
  EXPECT_EQ(resolve(broadcast, {{2, 1}, {2, 1}}),
            "operand 1 dimension 0 has size 1, its split is 2; nearest legal split: 1");
}

}  // namespace
}  // namespace weft
