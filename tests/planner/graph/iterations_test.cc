#include "planner/graph/iterations.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "planner/derive/micro_batches.h"
#include "tests/planner/graph/graph_builder.h"

namespace weft::testing {
namespace {

using ::testing::ElementsAre;

// An operator of the gradient of operator `forward`.
GraphValue addBackward(GraphBuilder& b, int64_t forward, const OperatorFacts& facts,
                       const std::vector<GraphValue>& operands, const Shape& result) {
  const GraphValue made = b.add(facts, operands, result);
  b.last().phase = Phase::kBackward;
  b.last().forward = forward;
  return made;
}

// The loss's gradient: what a backward pass starts from.
GraphValue addSeed(GraphBuilder& b, const Shape& shape) {
  const GraphValue seed = b.add({.kind = "fill", .rule = shape.size() == 2 ? "-> a b" : "-> a"}, {}, shape);
  b.last().phase = Phase::kBackward;
  return seed;
}

// Of an operator, for each factor the name of the forward operator's factor, "?" none.
std::string factorsOf(const ProgramGraph& graph, int op) {
  const GraphView view(graph);
  std::vector<Rule> rules;
  for (int i = 0; i < view.operators(); ++i) {
    rules.push_back(*ruleOf(view, i));
  }
  const ForwardFactors factors = forwardFactors(view, [&](int i) -> const Rule& { return rules[i]; });
  std::string text;
  for (const int factor : factors[op]) {
    const std::optional<int> forward = view.find(*view.op(op).forward);
    text += factor == kNoFactor ? "?" : rules[*forward].factors()[factor].name;
  }
  return text;
}

// All sizes are equal and no factor has the forward operator's name.
TEST(Iterations, FollowValuesAndTheirGradientsNotNamesOrSizes) {
  GraphBuilder b;
  const GraphValue x = b.input("x", {8, 8});
  const GraphValue w = b.parameter("w", {8, 8});
  b.add(kMatmul, {x, w}, {8, 8});
  const GraphValue dy = addSeed(b, {8, 8});
  const GraphValue dx = addBackward(b, 0, {"contract", "p q+, r q+ -> p r"}, {dy, w}, {8, 8});
  const GraphValue dw = addBackward(b, 0, {"contract", "k+ m, k+ n -> m n"}, {x, dy}, {8, 8});
  b.returns(dx);
  b.returns(dw);
  EXPECT_EQ(factorsOf(b.graph, 2), "mnk");
  EXPECT_EQ(factorsOf(b.graph, 3), "mkn") << "its k is the rows";
}

TEST(Iterations, FollowWhatTheGradientMakesOnTheWay) {
  GraphBuilder b;
  const GraphValue x = b.input("x", {8, 8});
  b.add({"transpose", "a b -> b a"}, {x}, {8, 8});
  const GraphValue dy = addSeed(b, {8, 8});
  const GraphValue scaled = addBackward(b, 0, {"neg", "i j -> i j"}, {dy}, {8, 8});
  b.returns(addBackward(b, 0, {"transpose", "i j -> j i"}, {scaled}, {8, 8}));
  EXPECT_EQ(factorsOf(b.graph, 2), "ba");
  EXPECT_EQ(factorsOf(b.graph, 3), "ba");
}

// y = sum over b of x: b comes back in x's gradient alone.
TEST(Iterations, WhatOnlyTheResultHasIsThatOfTheOperand) {
  GraphBuilder b;
  const GraphValue x = b.input("x", {8, 6});
  b.add({"sum", "a b+ -> a"}, {x}, {8});
  const GraphValue dy = addSeed(b, {8});
  b.returns(addBackward(b, 0, {"broadcast", "i -> i j"}, {dy}, {8, 6}));
  EXPECT_EQ(factorsOf(b.graph, 2), "ab");
}

// The shape of the result does not say whether it is the gradient of x or of z, and of its rows they disagree.
TEST(Iterations, WhereOperandsDisagreeAFactorIsNone) {
  GraphBuilder b;
  const GraphValue x = b.input("x", {8, 8});
  const GraphValue z = b.parameter("z", {8, 8});
  b.add({"outer", "a b, c b -> a c b"}, {x, z}, {8, 8, 8});
  const GraphValue seed = b.add({.kind = "fill", .rule = "-> a"}, {}, {8});
  b.last().phase = Phase::kBackward;
  b.returns(addBackward(b, 0, {"broadcast", "i -> i j"}, {seed}, {8, 8}));
  EXPECT_EQ(factorsOf(b.graph, 2), "?b");
}

}  // namespace
}  // namespace weft::testing
