#include "planner/graph/flops.h"

#include <gtest/gtest.h>

#include "tests/planner/step/step_case.h"

namespace weft::testing {
namespace {

double flops(double perPoint, const Rule& rule, const std::map<std::string, int64_t>& parts) {
  OperatorFacts facts;
  facts.flopsPerPoint = perPoint;
  FactorAxes axes(rule.factors().size());
  for (const auto& [factor, count] : parts) {
    axes[rule.factorIndex(factor)] = {{AxisKind::kSpace, 1, count}};
  }
  return flopsOf(facts, rule, axes);
}

TEST(Flops, EverySplitOfAContractionSharesTheWork) {
  const Rule rule = ruleOn("m k+, k+ n -> m n", {{8, 4}, {4, 6}}, {{8, 6}});
  EXPECT_EQ(flops(2, rule, {}), 2 * 8 * 4 * 6);
  EXPECT_EQ(flops(2, rule, {{"m", 4}, {"k", 2}, {"n", 3}}), 2 * 2 * 2 * 2);
}

TEST(Flops, FactorsOfResultsAloneSaveNothing) {
  const Rule scatter = ruleOn("i+, i c -> v c", {{8}, {8, 4}}, {{100, 4}});
  EXPECT_EQ(flops(1, scatter, {}), 8 * 4);
  EXPECT_EQ(flops(1, scatter, {{"v", 10}}), 8 * 4);
  EXPECT_EQ(flops(1, scatter, {{"c", 2}}), 8 * 2);
}

TEST(Flops, WithoutOperandsTheResultIsWhatIsMade) {
  const Rule random = ruleOn("-> a b", {}, {{8, 4}});
  EXPECT_EQ(flops(20, random, {}), 20 * 32);
  EXPECT_EQ(flops(20, random, {{"a", 2}}), 20 * 16);
}

TEST(Flops, MicroBatchesAreCountedByTheBatchAlone) {
  const Rule sum = ruleOn("n+ c -> p~ c", {{8, 4}}, {{2, 4}});
  EXPECT_EQ(flops(1, sum, {}), 32);
  const Rule affine = ruleOn("n c, p~ c -> n c", {{8, 4}, {2, 4}}, {{8, 4}});
  EXPECT_EQ(flops(2, affine, {}), 2 * 32);
  EXPECT_EQ(flops(2, affine, {{"n", 2}, {"p", 2}}), 2 * 16);
}

// 2 x 9 products for each of 15x15 places of a 17x17 image: 450 / 289 for each point that is read.
TEST(Flops, QuotientsAreRoundedToWholeNumbers) {
  const Rule convolution =
      ruleOn("n ci+ h! w!, co ci+ kh! kw! -> n co ho! wo!", {{3, 1, 17, 17}, {1, 1, 3, 3}}, {{3, 1, 15, 15}});
  const double whole = 2.0 * 3 * 15 * 15 * 9;
  const double perPoint = whole / pointsOf(convolution);
  ASSERT_NE(perPoint * (pointsOf(convolution) / 3), whole / 3) << "the case has an error to round off";
  EXPECT_EQ(flops(perPoint, convolution, {{"n", 3}}), whole / 3);
}

std::vector<int64_t> productSizes(const Rule& rule, double flops, const std::map<std::string, int64_t>& parts = {}) {
  FactorAxes axes(rule.factors().size());
  for (const auto& [factor, count] : parts) {
    axes[rule.factorIndex(factor)] = {{AxisKind::kSpace, 1, count}};
  }
  const std::optional<ProductShape> shape = productOf(rule, axes, flops);
  return shape ? std::vector<int64_t>{shape->batch, shape->m, shape->n, shape->k} : std::vector<int64_t>{};
}

TEST(Flops, ProductsAreKnownByTheirRules) {
  const Rule heads = ruleOn("b h t d+, b h s d+ -> b h t s", {{2, 3, 8, 4}, {2, 3, 16, 4}}, {{2, 3, 8, 16}});
  EXPECT_EQ(productSizes(heads, 2.0 * 2 * 3 * 8 * 16 * 4), (std::vector<int64_t>{6, 8, 16, 4}));
  EXPECT_EQ(productSizes(heads, 2.0 * 2 * 8 * 16 * 4, {{"h", 3}}), (std::vector<int64_t>{2, 8, 16, 4}));
  const Rule convolution =
      ruleOn("n ci+ h! w!, co ci+ kh! kw! -> n co ho! wo!", {{3, 5, 17, 17}, {7, 5, 3, 3}}, {{3, 7, 15, 15}});
  EXPECT_EQ(productSizes(convolution, 2.0 * 3 * 15 * 15 * 7 * 45), (std::vector<int64_t>{1, 3 * 15 * 15, 7, 45}));
  EXPECT_EQ(productSizes(ruleOn("a b, a b -> a b", {{2, 3}, {2, 3}}, {{2, 3}}), 6), std::vector<int64_t>{});
  EXPECT_EQ(productSizes(ruleOn("a b+ -> a", {{2, 3}}, {{2}}), 6), std::vector<int64_t>{});
  EXPECT_EQ(productSizes(ruleOn("v+ c, b -> b c", {{9, 4}, {2}}, {{2, 4}}), 0), std::vector<int64_t>{}) << "embedding";
  EXPECT_EQ(productSizes(ruleOn("b+, b+ c -> v c", {{2}, {2, 4}}, {{9, 4}}), 8), std::vector<int64_t>{})
      << "its gradient";
  EXPECT_EQ(productSizes(ruleOn("b k+, b k -> b v", {{2, 3}, {2, 3}}, {{2, 9}}), 6), std::vector<int64_t>{})
      << "scatter_add";
  EXPECT_EQ(productSizes(ruleOn("k+, k+ n -> n", {{2}, {2, 4}}, {{4}}), 16), (std::vector<int64_t>{1, 1, 4, 2}));
}

TEST(Flops, ArithmeticIsThatOfTheNarrowestOperand) {
  EXPECT_EQ(arithmeticType({DType::kF32, DType::kBF16}, DType::kF32), DType::kBF16);
  EXPECT_EQ(arithmeticType({DType::kI32, DType::kF64}, DType::kF64), DType::kF64);
  EXPECT_EQ(arithmeticType({DType::kI64}, DType::kF16), DType::kF16);
}

}  // namespace
}  // namespace weft::testing
