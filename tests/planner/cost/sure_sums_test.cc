// Whose sums are surely added before they are read.
#include "planner/cost/sure_sums.h"

#include <gtest/gtest.h>

#include "tests/planner/graph/graph_builder.h"

namespace weft::testing {
namespace {

constexpr int64_t kBytes = 8 * 6 * 4;

class SureSums : public ::testing::Test {
 protected:
  GraphValue product(int64_t columns = 6) {
    return b_.add(kMatmul, {x_, b_.parameter("w", {4, columns})}, {8, columns});
  }
  std::vector<int64_t> sums() {
    return sureSums(GraphView(b_.graph), [](const GraphView::Use&) { return true; });
  }

  GraphBuilder b_;
  const GraphValue x_ = b_.input("x", {8, 4});
};

TEST_F(SureSums, BeforeWhatIsNotLinear) {
  b_.returns(b_.add(kRelu, {product()}, {8, 6}));
  EXPECT_EQ(sums()[0], kBytes);
}

// A sum passes them on; what reads it does not.
TEST_F(SureSums, BehindASum) {
  const GraphValue left = product();
  const GraphValue right = product();
  b_.returns(b_.add(kRelu, {b_.add(kAdd, {left, right}, {8, 6})}, {8, 6}));
  EXPECT_EQ(sums(), (std::vector<int64_t>{kBytes, 0, 0, 0})) << "added up they are reduced once";
}

TEST_F(SureSums, BeforeTheUpdateOfAParameter) {
  const OperatorFacts constrain = {"constrain", "a b -> a b",         {{0}}, /*passesSums=*/true, false,
                                   false,       ViewKind::kAnnotation};
  b_.returns(b_.add(constrain, {product()}, {8, 6}));
  EXPECT_EQ(sums()[0], 0);
  b_.last().gradientOf = "w";
  EXPECT_EQ(sums()[0], kBytes);
}

TEST_F(SureSums, WhereTheWayIsNarrowest) {
  const OperatorFacts sumColumns = {"sum", "a b+ -> a", {{0}}, /*passesSums=*/true};
  const GraphValue narrow = b_.add(sumColumns, {product()}, {8});
  b_.returns(b_.add({"relu", "a -> a"}, {narrow}, {8}));
  EXPECT_EQ(sums()[0], 8 * 4);
}

TEST_F(SureSums, NotWhereNothingReadsThemAdded) {
  b_.returns(product());
  EXPECT_EQ(sums()[0], 0);
}

TEST_F(SureSums, NotWhereSomethingElseMayStandForTheReader) {
  b_.returns(b_.add(kRelu, {product()}, {8, 6}));
  b_.last().alternatives.emplace_back();
  EXPECT_EQ(sums()[0], 0);
}

// dx = dq wq^T + dk wk^T: dk may be passed on by its products where dx is reduced anyway.
TEST_F(SureSums, ProductsOfAGradientMayPassThem) {
  const GraphValue dk = product();
  const GraphValue dq = product();
  const auto times = [&](const GraphValue& gradient) {
    const GraphValue made = b_.add(kMatmul, {gradient, b_.parameter("w", {6, 4})}, {8, 4});
    b_.last().phase = Phase::kBackward;
    return made;
  };
  const GraphValue one = times(dk);
  const GraphValue other = times(dq);
  const GraphValue dx = b_.add(kAdd, {one, other}, {8, 4});
  b_.last().phase = Phase::kBackward;
  b_.returns(b_.add(kRelu, {dx}, {8, 4}));
  const std::vector<int64_t> found = sums();
  EXPECT_EQ(found[0], 0);
  EXPECT_EQ(found[1], 0);
  EXPECT_EQ(found[2], 8 * 4 * 4) << "one of the terms of dx";
  EXPECT_EQ(found[3], 0);
}

}  // namespace
}  // namespace weft::testing
