// Long programs with layers left out are the programs of fewer layers, written out.
#include "planner/graph/shorten.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "planner/graph/segments.h"
#include "tests/planner/search/chain_program.h"

namespace weft::testing {
namespace {

using ::testing::ElementsAre;

std::optional<Shortened> shortenedOf(const ProgramGraph& graph, const SaidAlike& said = {}) {
  const GraphView view(graph);
  return shortened(view, segmentsOf(view), said);
}

// The graph under the numbers and names that it would have had if it had been written so.
ProgramGraph renamed(ProgramGraph graph) {
  std::map<int64_t, int64_t> ids;
  std::map<std::string, std::string> names;
  for (GraphArgument& argument : graph.arguments) {
    names[argument.name] = "argument" + std::to_string(names.size());
    argument.name = names[argument.name];
    argument.line = {};
  }
  for (GraphOperator& op : graph.operators) {
    const auto next = static_cast<int64_t>(ids.size());
    op.id = ids[op.id] = next;
    op.name = "";
    op.line = {};
    op.gradientOf = op.gradientOf.empty() ? "" : names.at(op.gradientOf);
    op.forward = op.forward ? std::optional(ids.at(*op.forward)) : std::nullopt;
    for (GraphValue& operand : op.operands) {
      operand.producer = operand.isArgument() ? operand.producer : ids.at(operand.producer);
    }
  }
  for (GraphResult& result : graph.results) {
    result.value.producer = result.value.isArgument() ? result.value.producer : ids.at(result.value.producer);
  }
  graph.nextId = 0;
  return graph;
}

TEST(Shorten, AChainOfTenLayersIsOneOfThree) {
  const ProgramGraph ten = chainProgram({.layers = 10}).graph;
  const std::optional<Shortened> made = shortenedOf(ten);
  ASSERT_TRUE(made);
  EXPECT_EQ(renamed(made->graph), renamed(chainProgram({.layers = kLayersLeft}).graph));
  std::vector<int> expected = {0};
  expected.resize(9, 1);
  expected.push_back(9);
  expected.push_back(10);  // the sum behind the layers
  EXPECT_EQ(made->standsFor, expected);
}

TEST(Shorten, ShortChainsStay) {
  EXPECT_FALSE(shortenedOf(chainProgram({.layers = kLayersLeft}).graph));
  EXPECT_TRUE(shortenedOf(chainProgram({.layers = kLayersLeft + 1}).graph));
}

// The norm of all gradients has a term of each layer that is left.
TEST(Shorten, SumsOverLayersLoseTheirTerms) {
  const auto withNorm = [](int64_t layers) {
    GraphBuilder b = chainProgram({.layers = layers});
    const auto returned = b.graph.results;
    std::optional<GraphValue> norm;
    for (const GraphResult& result : returned) {
      if (result.updates) {
        const GraphValue square = b.add(kSumAll, {result.value}, {});
        b.last().phase = Phase::kUpdate;
        norm = norm ? b.add({"add", ", ->", {{0, 1}}, true, true}, {*norm, square}, {}) : square;
        b.last().phase = Phase::kUpdate;
      }
    }
    b.returns(*norm);
    return b.graph;
  };
  const std::optional<Shortened> made = shortenedOf(withNorm(8));
  ASSERT_TRUE(made);
  EXPECT_EQ(renamed(made->graph), renamed(withNorm(kLayersLeft)));
}

// The gradient of what all layers read (the encoder's result in a decoder) is a sum that begins with two terms of the
// last layer: that sum belongs to none.
TEST(Shorten, SumsOverLayersMayBeginInOne) {
  const auto withShared = [](int64_t layers) {
    GraphBuilder b = chainProgram({.layers = layers, .rows = 32, .width = 16});
    std::optional<GraphValue> sum;
    for (int64_t layer = layers - 1; layer >= 0; --layer) {
      for (int term = 0; term < 2; ++term) {
        const GraphValue mine = b.add(kRelu, {{2 * layer, 0}}, {32, 16});
        b.last().phase = Phase::kBackward;
        b.last().forward = 2 * layer;
        sum = sum ? b.add(kAdd, {*sum, mine}, {32, 16}) : mine;
        b.last().phase = Phase::kBackward;
      }
    }
    b.returns(*sum);
    return b.graph;
  };
  const std::optional<Shortened> made = shortenedOf(withShared(8));
  ASSERT_TRUE(made);
  EXPECT_EQ(renamed(made->graph), renamed(withShared(kLayersLeft)));
}

TEST(Shorten, WhatIsSaidOfOneLayerKeepsAll) {
  const ProgramGraph graph = chainProgram({.layers = 8}).graph;
  const auto except = [](int number) { return [number](int a, int b) { return (a == number) == (b == number); }; };
  EXPECT_FALSE(shortenedOf(graph, {.arguments = except(5)})) << "the weight of layer 4; argument 0 is x";
  EXPECT_FALSE(shortenedOf(graph, {.operators = except(8)}));
  EXPECT_TRUE(shortenedOf(graph, {.arguments = except(1)})) << "the first layer stays, whatever is said of it";
  EXPECT_TRUE(shortenedOf(graph, {.operators = except(14)})) << "so does the last";
  ProgramGraph pinned = graph;
  pinned.arguments[5].layout = "[{dp},{}]";
  EXPECT_FALSE(shortenedOf(pinned));
}

// A value of a layer in the middle that is read at the end.
TEST(Shorten, WhatIsReadFromAfarKeepsAll) {
  GraphBuilder b = chainProgram({.layers = 8});
  b.returns({7, 0});
  EXPECT_FALSE(shortenedOf(b.graph));
}

}  // namespace
}  // namespace weft::testing
