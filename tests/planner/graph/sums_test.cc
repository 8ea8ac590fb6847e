#include "planner/graph/sums.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/planner/graph/graph_builder.h"

namespace weft::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// ((a + r0) + r1) + r2, each r the relu of an input, made as late as possible: operators r0, +, r1, +, r2, +.
class Sums : public ::testing::Test {
 protected:
  Sums() {
    GraphValue sum = b_.input("a", {4, 6});
    for (const char* name : {"x", "y", "z"}) {
      const GraphValue term = b_.add(kRelu, {b_.input(name, {4, 6})}, {4, 6});
      sum = b_.add(kAdd, {sum, term}, {4, 6});
    }
    b_.returns(sum);
  }

  // "5=4+0": operator 5 adds what 4 makes and argument 0 (as a letter).
  std::string print() const {
    std::string text;
    for (const GraphOperator& op : b_.graph.operators) {
      text += (text.empty() ? "" : " ") + std::to_string(op.id);
      for (size_t i = 0; i < op.operands.size(); ++i) {
        const GraphValue& value = op.operands[i];
        text += (i == 0 ? "=" : "+") +
                (value.isArgument() ? b_.graph.arguments[value.index].name : std::to_string(value.producer));
      }
    }
    return text;
  }
  absl::Status regroup(const std::vector<std::vector<unsigned>>& groups, int64_t id = 5) {
    return regroupSum(b_.graph, {Rewrite::kRegroup, id, 0, groups});
  }

  GraphBuilder b_;
};

TEST_F(Sums, TakeInWhatIsMadeForThemAlone) {
  const GraphView view(b_.graph);
  const Sum sum = sumEndingIn(view, 5);
  EXPECT_THAT(sum.operators, ElementsAre(1, 3, 5));
  EXPECT_THAT(sum.terms, ElementsAre(0, view.resultOf(0, 0), view.resultOf(2, 0), view.resultOf(4, 0)));
  EXPECT_THAT(sumEndingIn(view, 3).operators, IsEmpty()) << "part of a larger one";
  EXPECT_THAT(sumEndingIn(view, 4).operators, IsEmpty()) << "no sum";
}

TEST_F(Sums, StopWhereOthersReadAndAtAnotherPhase) {
  b_.returns({3, 0});
  EXPECT_EQ(sumEndingIn(GraphView(b_.graph), 5).terms.size(), 2U);
  EXPECT_EQ(sumEndingIn(GraphView(b_.graph), 3).terms.size(), 3U);
  b_.graph.results.pop_back();
  b_.graph.operators[5].phase = Phase::kBackward;
  EXPECT_EQ(sumEndingIn(GraphView(b_.graph), 5).terms.size(), 2U);
}

TEST_F(Sums, AddGroupByGroupEachBehindItsTerms) {
  ASSERT_EQ(print(), "0=x 1=a+0 2=y 3=1+2 4=z 5=3+4");
  ASSERT_TRUE(regroup({{1, 3}, {0, 2}}).ok());
  EXPECT_EQ(print(), "0=x 2=y 3=a+2 4=z 1=0+4 5=1+3");
  const GraphView view(b_.graph);
  EXPECT_EQ(sumEndingIn(view, 5).terms.size(), 4U);
}

TEST_F(Sums, GroupsMustBeTheTerms) {
  EXPECT_THAT(std::string(regroup({{0, 1}, {2}}).message()), HasSubstr("operator 5 has 4 terms, its groups 3"));
  EXPECT_THAT(std::string(regroup({{0, 1}, {2, 4}}).message()),
              HasSubstr("terms 0 to 3, each to be added once; found 4"));
  EXPECT_THAT(std::string(regroup({{0, 1}, {2, 1}}).message()), HasSubstr("found 1 twice"));
  EXPECT_THAT(std::string(regroup({{0}}, 4).message()), HasSubstr("no sum ends in operator 4"));
  EXPECT_THAT(std::string(regroup({{0}}, 77).message()), HasSubstr("no sum ends in operator 77"));
  EXPECT_EQ(print(), "0=x 1=a+0 2=y 3=1+2 4=z 5=3+4") << "nothing was changed";
}

TEST_F(Sums, ASharedSumIsPassedOnOnlyTogether) {
  b_.graph.operators[2].facts.passesSums = true;
  EXPECT_TRUE(passesOn(GraphView(b_.graph), 2, {0}));
  EXPECT_TRUE(passesOn(GraphView(b_.graph), 3, {1}));
  b_.returns({2, 0});
  EXPECT_FALSE(passesOn(GraphView(b_.graph), 3, {1})) << "another reads it";
  EXPECT_TRUE(passesOn(GraphView(b_.graph), 3, {0, 1})) << "their sum is reduced";
  EXPECT_FALSE(passesOn(GraphView(b_.graph), 0, {0})) << "a relu of sums is not the sum of relus";
}

// dq and dk, gradients of two products of x, and what reads them: dx = dq wq + dk wk, dwk = x dk.
class ProductsOfGradients : public ::testing::Test {
 protected:
  ProductsOfGradients() {
    const GraphValue x = b_.input("x", {8, 4});
    const GraphValue dq = b_.input("dq", {8, 6});
    const GraphValue dx = product(dq, b_.parameter("wq", {6, 4}), {8, 4});
    dk_ = backward(kRelu, {b_.input("dk", {8, 2})}, {8, 2});
    const GraphValue other = product(dk_, b_.parameter("wk", {2, 4}), {8, 4});
    b_.returns(backward(kAdd, {dx, other}, {8, 4}));
    const GraphValue weight = backward({"contract", "k+ m, k+ n -> m n", {{0}, {1}}}, {x, dk_}, {4, 2});
    b_.returns(b_.add(kRelu, {weight}, {4, 2}));
    b_.last().gradientOf = "wk";
  }

  GraphValue backward(const OperatorFacts& facts, const std::vector<GraphValue>& operands, const Shape& result) {
    const GraphValue made = b_.add(facts, operands, result);
    b_.last().phase = Phase::kBackward;
    return made;
  }
  GraphValue product(const GraphValue& a, const GraphValue& b, const Shape& result) {
    return backward(kMatmul, {a, b}, result);
  }
  // Operator 0, dq wq, is split over these axes of what it adds up, no other is split.
  bool pass(const AxisList& axes, const Axis& sum) const {
    const GraphView view(b_.graph);
    return productsPass(view, view.valueOf(dk_), sum, [&](int op) { return op == 0 ? axes : AxisList(); });
  }

  GraphBuilder b_;
  GraphValue dk_;
};

constexpr Axis kAll = {AxisKind::kSpace, 1, 4};
constexpr Axis kMajor = {AxisKind::kSpace, 1, 2};
constexpr Axis kMinor = {AxisKind::kSpace, 2, 2};

TEST_F(ProductsOfGradients, PassWhatIsReducedAnyway) {
  EXPECT_TRUE(pass({kAll}, kMinor));
  EXPECT_TRUE(pass({kAll}, kAll));
  EXPECT_FALSE(pass({kMajor}, kMinor));
  EXPECT_FALSE(pass({kMajor}, kAll));
  EXPECT_FALSE(pass({}, kMinor)) << "the sum would be reduced where it is larger";
}

TEST_F(ProductsOfGradients, DoNotPassWhereOthersReadTheSum) {
  b_.returns(dk_);
  EXPECT_FALSE(pass({kAll}, kMinor));
}

TEST_F(ProductsOfGradients, DoNotPassToALargerGradientOfAWeight) {
  b_.graph.operators[4].results[0].shape = {100, 2};
  EXPECT_FALSE(pass({kAll}, kMinor)) << "8 x 2 and 8 x 4 are reduced instead of 100 x 2";
}

}  // namespace
}  // namespace weft::testing
