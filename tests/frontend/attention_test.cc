// Attention with dropout is made of several operators: where nothing is dropped it is the one operator, whatever mask,
// bias and shared heads; where something is, it is dropout of the softmax.
#include <gmock/gmock.h>

#include "tests/frontend/evaluate.h"

namespace weft::testing {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

// No random number of a test is as small: nothing is dropped.
constexpr double kDropsNothing = 1e-15;

struct Case {
  std::string name;
  int64_t groups = 4;  // heads of keys and values, for four of queries
  bool causal = false;
  bool mask = false;  // the second sample sees no key at all
  bool bias = false;
  std::optional<double> scale = {};

  friend void PrintTo(const Case& shown, std::ostream* out) { *out << shown.name; }
};

constexpr int64_t kElements = 2 * 4 * 3 * 2 + 2 * 2 * 4 * 3 * 2 + 12;

Tensor attentionOf(Graph& g, const Tensor& x, const Case& test, double rate) {
  int64_t used = 0;
  const auto operand = [&](const Shape& shape) {
    const int64_t count = std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
    const Tensor part = reshape(narrow(x, 0, used, count), shape);
    used += count;
    return part;
  };
  const Tensor q = operand({2, 4, 3, 2});
  const Tensor k = operand({2, test.groups, 3, 2});
  const Tensor v = operand({2, test.groups, 3, 2});
  AttentionOptions options = {.causal = test.causal, .scale = test.scale, .dropout = rate};
  if (test.bias) {
    options.bias = operand({1, 4, 1, 3});
  }
  if (test.mask) {
    options.mask = compare(g.constant({2, 1, 1, 3}, {1, 0, 1, 0, 0, 0}), 0, "gt");
  }
  return scaledDotProductAttention(q, k, v, options);
}

class AttentionInPartsTest : public ::testing::TestWithParam<Case> {};

TEST_P(AttentionInPartsTest, IsTheOneOperator) {
  const auto with = [&](double rate) {
    return [&, rate](Graph& g, const Tensor& x) { return attentionOf(g, x, GetParam(), rate); };
  };
  const Reals x = someValues(kElements);
  // A softmax over three keys: a few roundings of f64.
  expectValues(valuesOf({kElements}, x, with(kDropsNothing)), valuesOf({kElements}, x, with(0)), 1e-13);
}

TEST_P(AttentionInPartsTest, HasItsGradients) {
  expectGradient({kElements}, someValues(kElements),
                 [&](Graph& g, const Tensor& x) { return attentionOf(g, x, GetParam(), kDropsNothing); });
}

INSTANTIATE_TEST_SUITE_P(Forms, AttentionInPartsTest,
                         ::testing::Values(Case{"plain"}, Case{"causal", 4, true}, Case{"mask", 4, false, true},
                                           Case{"bias", 4, false, false, true}, Case{"all", 4, true, true, true, 0.7},
                                           Case{"shared", 2, true}, Case{"shared_all", 1, true, true, true, 1.0}),
                         [](const auto& info) { return info.param.name; });

// Keys are all alike, so that each of the four has a quarter; with values of 1 a query's answer counts the kept ones.
TEST(AttentionDropoutTest, DropsAndScales) {
  const Shape shape = {8, 16, 4, 4};
  const Reals answers = valuesOf(shape, Reals(8 * 16 * 4 * 4, 1.0), [](Graph&, const Tensor& x) {
    return scaledDotProductAttention(x, x, x, {.dropout = 0.5});
  });
  double total = 0;
  std::map<double, int> counts;
  for (size_t i = 0; i < answers.size(); ++i) {
    total += answers[i];
    counts[answers[i]] += 1;
    EXPECT_EQ(answers[i], answers[i - i % 4]) << "one mask for all of a value";
  }
  for (const double kept : {0.0, 0.5, 1.0, 1.5, 2.0}) {
    EXPECT_THAT(counts, Contains(::testing::Key(kept)));
  }
  EXPECT_EQ(counts.size(), 5u);
  // 2048 draws of deviation 1 / 2 each, averaged: 5 deviations.
  EXPECT_NEAR(total / static_cast<double>(answers.size()), 1, 5 * 0.5 / std::sqrt(2048));
}

TEST(AttentionDropoutTest, IsOfTheSoftmax) {
  const Shape shape = {2, 2, 3, 4};
  const Reals x = someValues(48);
  const Reals found = valuesOf(shape, x, [](Graph&, const Tensor& t) {
    return scaledDotProductAttention(t, t, t, {.dropout = 0.4, .seed = 3});
  });
  const Reals expected = valuesOf(shape, x, [](Graph&, const Tensor& t) {
    const Tensor weights = softmax(0.5 * einsum("bhtd,bhsd->bhts", t, t));
    return einsum("bhts,bhsd->bhtd", dropout(weights, 0.4, 3), t);
  });
  expectValues(found, expected, 1e-13);
}

TEST(AttentionDropoutTest, RateZeroIsOneOperator) {
  Graph g;
  const Tensor x = g.input("x", {2, 2, 3, 4});
  scaledDotProductAttention(x, x, x, {.causal = true});
  EXPECT_THAT(g.print(), HasSubstr("nn.attention"));
  EXPECT_THAT(g.print(), Not(HasSubstr("nn.softmax")));
  EXPECT_EQ(dropout(x, 0).id(), x.id());
}

TEST(AttentionDropoutTest, MistakesAreErrors) {
  Graph shapes;
  const Tensor x = shapes.input("x", {2, 3, 3, 4});
  scaledDotProductAttention(x, shapes.input("k", {2, 2, 3, 4}), x, {.dropout = 0.1});
  EXPECT_THAT(std::string(shapes.status().message()), HasSubstr("attention_test.cc"));
  EXPECT_THAT(std::string(shapes.status().message()), HasSubstr("scaledDotProductAttention: "));
  for (const double rate : {-0.1, 1.0, std::nan("")}) {
    Graph g;
    const Tensor y = g.input("x", {2, 3, 3, 4});
    scaledDotProductAttention(y, y, y, {.dropout = rate});
    EXPECT_THAT(std::string(g.status().message()), HasSubstr("it must lie in [0, 1)")) << rate;
  }
}

}  // namespace
}  // namespace weft::testing
