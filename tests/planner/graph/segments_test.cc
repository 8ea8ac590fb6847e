// Repeated parts of a program, found by their structure.

#include "planner/graph/segments.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/planner/graph/graph_builder.h"

namespace weft {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using testing::GraphBuilder;
using testing::kAdd;
using testing::kMatmul;
using testing::kRelu;

// x + relu(x w) of a width, as three operators.
GraphValue block(GraphBuilder& b, GraphValue x, int64_t width, const std::string& name) {
  const GraphValue w = b.parameter(name, {width, width});
  const GraphValue y = b.add(kRelu, {b.add(kMatmul, {x, w}, {8, width})}, {8, width});
  return b.add(kAdd, {x, y}, {8, width});
}

TEST(Segments, LayersAreOneClassWhatIsAroundThemIsAlone) {
  GraphBuilder b;
  GraphValue x = b.add({"embedding", "a -> a n"}, {b.input("ids", {8})}, {8, 4});
  for (int layer = 0; layer < 3; ++layer) {
    x = block(b, x, 4, "w" + std::to_string(layer));
    b.last().facts.attributes["seed"] = int64_t{layer};  // numbers of random draws are no structure
  }
  b.returns(b.add({"sum", "a+ b+ ->"}, {x}, {}));
  const Segments segments = segmentsOf(GraphView(b.graph));
  EXPECT_THAT(segments.of, ElementsAreArray({0, 1, 1, 1, 2, 2, 2, 3, 3, 3, 4}));
  EXPECT_THAT(segments.classOf, ElementsAre(0, 1, 1, 1, 2));
}

// Stages of a network of two widths: each is found, whatever stands between.
TEST(Segments, SeveralStretchesRepeat) {
  GraphBuilder b;
  GraphValue x = b.input("x", {8, 4});
  for (int i = 0; i < 4; ++i) {
    x = block(b, x, 4, "narrow" + std::to_string(i));
  }
  x = b.add({"widen", "a b -> a c"}, {x}, {8, 16});
  for (int i = 0; i < 2; ++i) {
    x = block(b, x, 16, "wide" + std::to_string(i));
  }
  b.returns(x);
  const Segments segments = segmentsOf(GraphView(b.graph));
  EXPECT_THAT(segments.of, ElementsAreArray({0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3, 4, 5, 5, 5, 6, 6, 6}));
  EXPECT_THAT(segments.classOf, ElementsAre(0, 0, 0, 0, 1, 2, 2));
}

// A wide value inside of a block: the border is where the narrow one passes, though the first repeat could begin
// earlier.
TEST(Segments, BordersAreWhereLeastPasses) {
  GraphBuilder b;
  const GraphValue up = b.parameter("up", {4, 64}), down = b.parameter("down", {64, 4});
  GraphValue x = b.add(kRelu, {b.input("x", {8, 64})}, {8, 64});
  x = b.add(kMatmul, {x, down}, {8, 4});
  for (int layer = 0; layer < 3; ++layer) {
    x = b.add(kRelu, {b.add(kMatmul, {x, up}, {8, 64})}, {8, 64});
    x = b.add(kMatmul, {x, down}, {8, 4});
  }
  b.returns(x);
  const Segments segments = segmentsOf(GraphView(b.graph));
  EXPECT_THAT(segments.of, ElementsAreArray({0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3}));
}

TEST(Segments, JoinedOtherwiseIsAnotherClass) {
  GraphBuilder b;
  GraphValue x = b.input("x", {8, 4});
  for (int i = 0; i < 3; ++i) {
    const GraphValue y = b.add(kRelu, {x}, {8, 4});
    x = b.add(kAdd, {i == 1 ? x : y, y}, {8, 4});
  }
  b.returns(x);
  const Segments segments = segmentsOf(GraphView(b.graph));
  EXPECT_THAT(segments.of, ElementsAreArray({0, 0, 1, 1, 2, 2}));
  EXPECT_THAT(segments.classOf, ElementsAre(0, 1, 0));
}

TEST(Segments, WordsForLayoutsTellLayersApartUnlessIgnored) {
  GraphBuilder b;
  GraphValue x = b.input("x", {8, 4});
  for (int layer = 0; layer < 3; ++layer) {
    x = block(b, x, 4, "w" + std::to_string(layer));
  }
  b.returns(x);
  b.graph.operators[3].strategy = UserStrategy{.inSplits = {{2, 1}, {1, 1}}};
  b.graph.operators[4].constraint = "a b -> a b";
  EXPECT_THAT(segmentsOf(GraphView(b.graph)).classOf, ElementsAre(0));
  EXPECT_THAT(segmentsOf(GraphView(b.graph), LayoutWords::kIgnored).classOf, ElementsAre(0, 0, 0));
}

TEST(Segments, OnlyTheForwardPassIsCut) {
  GraphBuilder b;
  GraphValue x = block(b, b.input("x", {8, 4}), 4, "w");
  x = b.add(kRelu, {x}, {8, 4});
  b.last().phase = Phase::kBackward;
  b.returns(x);
  const Segments segments = segmentsOf(GraphView(b.graph));
  EXPECT_THAT(segments.of, ElementsAreArray({0, 0, 0, Segments::kNone}));
  EXPECT_THAT(segmentsOf(GraphView(ProgramGraph())).of, ElementsAre());
}

// Of seven layers the three in the middle, every second one alike; of six layers none is alike to another.
TEST(Segments, LayersBetweenOthersAreAlikeByTurns) {
  const auto alikeOf = [](int layers) {
    GraphBuilder b;
    GraphValue x = b.add({"embedding", "a -> a n"}, {b.input("ids", {8})}, {8, 4});
    for (int layer = 0; layer < layers; ++layer) {
      x = block(b, x, 4, "w" + std::to_string(layer));
    }
    b.returns(b.add({"sum", "a+ b+ ->"}, {x}, {}));
    markAlike(b.graph);
    std::vector<int64_t> alike;
    for (const GraphOperator& op : b.graph.operators) {
      alike.push_back(op.alike.value_or(-1));
    }
    return alike;
  };
  EXPECT_THAT(alikeOf(7),
              ElementsAreArray({-1, -1, -1, -1, -1, -1, -1, 7, 8, 9, 10, 11, 12, 7, 8, 9, -1, -1, -1, -1, -1, -1, -1}));
  EXPECT_THAT(alikeOf(4), ElementsAreArray(std::vector<int64_t>(14, -1)));
}

}  // namespace
}  // namespace weft
