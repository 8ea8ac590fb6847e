// The functions of weft/ops_shape.h and weft/ops_index.h on small tensors, their gradients, and the same on two ranks.
#include <algorithm>

#include "tests/frontend/evaluate.h"

namespace weft::testing {
namespace {

// x holds 1, 2, 3, ... in this shape.
struct MoveCase {
  const char* name;
  Shape shape;
  std::function<Tensor(Graph& g, const Tensor& x)> build;
  Shape result;
  Reals expected;
  bool gradient = true;
};

void PrintTo(const MoveCase& test, std::ostream* out) {
  *out << test.name;
}

Tensor idsOf(Graph& g, const Shape& shape, const std::function<Tensor(const Tensor&)>& f) {
  int64_t count = 1;
  for (const int64_t size : shape) {
    count *= size;
  }
  return reshape(f(g.iota({count}, 0, kI32)), shape);
}

std::vector<MoveCase> shapeCases() {
  return {
      {"Pad",
       {2, 2},
       [](Graph&, const Tensor& x) { return pad(x, {1, 0}, {0, 1}, 9); },
       {3, 3},
       {9, 9, 9, 1, 2, 9, 3, 4, 9}},
      {"Stack",
       {2, 2},
       [](Graph&, const Tensor& x) { return stack({x, 10 * x}, 1); },
       {2, 2, 2},
       {1, 2, 10, 20, 3, 4, 30, 40}},
      {"StackLast", {2}, [](Graph&, const Tensor& x) { return stack({x, 10 * x}, -1); }, {2, 2}, {1, 10, 2, 20}},
      {"Split", {2, 3}, [](Graph&, const Tensor& x) { return split(x, {1, 2}, -1)[1]; }, {2, 2}, {2, 3, 5, 6}},
      {"Chunk", {5, 2}, [](Graph&, const Tensor& x) { return chunk(x, 3, 0)[2]; }, {1, 2}, {9, 10}},
      {"Narrow", {2, 4}, [](Graph&, const Tensor& x) { return narrow(x, 1, -3, 2); }, {2, 2}, {2, 3, 6, 7}},
      {"Unsqueeze", {2, 3}, [](Graph&, const Tensor& x) { return unsqueeze(x, -2); }, {2, 1, 3}, {1, 2, 3, 4, 5, 6}},
      {"Squeeze", {2, 1, 3, 1}, [](Graph&, const Tensor& x) { return squeeze(x); }, {2, 3}, {1, 2, 3, 4, 5, 6}},
      {"SqueezeOne", {1, 2, 1}, [](Graph&, const Tensor& x) { return squeeze(x, {-1}); }, {1, 2}, {1, 2}},
      {"Flatten", {2, 1, 3}, [](Graph&, const Tensor& x) { return flatten(x, 1); }, {2, 3}, {1, 2, 3, 4, 5, 6}},
      {"FlattenScalar", {}, [](Graph&, const Tensor& x) { return flatten(x); }, {1}, {1}},
      {"Expand",
       {2, 1},
       [](Graph&, const Tensor& x) { return expand(x, {2, -1, 2}); },
       {2, 2, 2},
       {1, 1, 2, 2, 1, 1, 2, 2}},
      {"Flip", {2, 3}, [](Graph&, const Tensor& x) { return flip(x, {-1}); }, {2, 3}, {3, 2, 1, 6, 5, 4}},
      {"FlipAll", {2, 3}, [](Graph&, const Tensor& x) { return flip(x); }, {2, 3}, {6, 5, 4, 3, 2, 1}},
      {"Roll", {2, 3}, [](Graph&, const Tensor& x) { return roll(x, 4, 1); }, {2, 3}, {3, 1, 2, 6, 4, 5}},
      {"RollBack", {3}, [](Graph&, const Tensor& x) { return roll(x, -1, 0); }, {3}, {2, 3, 1}},
      {"Repeat", {2, 2}, [](Graph&, const Tensor& x) { return repeat(x, 2, 1); }, {2, 4}, {1, 1, 2, 2, 3, 3, 4, 4}},
      {"Tile",
       {2, 2},
       [](Graph&, const Tensor& x) { return tile(x, {2, 2}); },
       {4, 4},
       {1, 2, 1, 2, 3, 4, 3, 4, 1, 2, 1, 2, 3, 4, 3, 4}},
      {"TileMore", {2}, [](Graph&, const Tensor& x) { return tile(x, {2, 1}); }, {2, 2}, {1, 2, 1, 2}},
      {"TileFewer", {2, 1}, [](Graph&, const Tensor& x) { return tile(x, {2}); }, {2, 2}, {1, 1, 2, 2}},
      {"Tril", {2, 3}, [](Graph&, const Tensor& x) { return tril(x); }, {2, 3}, {1, 0, 0, 4, 5, 0}},
      {"TrilAbove", {2, 3}, [](Graph&, const Tensor& x) { return tril(x, 1); }, {2, 3}, {1, 2, 0, 4, 5, 6}},
      {"Triu", {3, 2}, [](Graph&, const Tensor& x) { return triu(x); }, {3, 2}, {1, 2, 0, 4, 0, 0}},
      {"TriuBelow", {3, 2}, [](Graph&, const Tensor& x) { return triu(x, -1); }, {3, 2}, {1, 2, 3, 4, 0, 6}},
      {"LengthMask",
       {3},
       [](Graph&, const Tensor& x) { return lengthMask(cast(x, kI32), 3); },
       {3, 3},
       {1, 0, 0, 1, 1, 0, 1, 1, 1},
       false},
      {"TransposeFromTheEnd",
       {2, 3},
       [](Graph&, const Tensor& x) { return transpose(x, {-1, -2}); },
       {3, 2},
       {1, 4, 2, 5, 3, 6}},
      {"ConcatFromTheEnd", {2, 1}, [](Graph&, const Tensor& x) { return concat({x, x}, -1); }, {2, 2}, {1, 1, 2, 2}},
      {"SumInAnyOrder", {2, 2, 2}, [](Graph&, const Tensor& x) { return sum(x, {-1, 0}); }, {2}, {14, 22}},
  };
}

std::vector<MoveCase> indexCases() {
  return {
      {"Gather",
       {2, 3},
       [](Graph& g, const Tensor& x) {
         return gather(x, 1, idsOf(g, {2, 2}, [](const Tensor& i) { return 2 - minimum(i, 2); }));
       },
       {2, 2},
       {3, 2, 4, 4}},
      {"GatherRows",
       {3, 2},
       [](Graph& g, const Tensor& x) { return gather(x, -2, idsOf(g, {1, 2}, [](const Tensor& i) { return i + 1; })); },
       {1, 2},
       {3, 6}},
      {"ScatterAdd",
       {2, 3},
       [](Graph& g, const Tensor& x) {
         const Tensor ids = idsOf(g, {2, 2}, [](const Tensor& i) { return minimum(i, 2); });
         return scatterAdd(x, 1, ids, 10 * narrow(x, 1, 0, 2));
       },
       {2, 3},
       {11, 22, 3, 4, 5, 6 + 40 + 50}},
      {"TakeRows",
       {3, 2},
       [](Graph& g, const Tensor& x) { return take(x, 2 - g.iota({2}, 0, kI32)); },
       {2, 2},
       {5, 6, 3, 4}},
      {"TakeOfAVector",
       {3},
       [](Graph& g, const Tensor& x) { return take(x, idsOf(g, {2, 1}, [](const Tensor& i) { return 2 - i; })); },
       {2, 1},
       {3, 2}},
      {"TakeInTheMiddle",
       {2, 3, 2},
       [](Graph& g, const Tensor& x) { return take(x, 2 - g.iota({2}, 0, kI64), 1); },
       {2, 2, 2},
       {5, 6, 3, 4, 11, 12, 9, 10}},
      {"TakeMatrix",
       {2, 3},
       [](Graph& g, const Tensor& x) { return take(x, g.iota({1, 2}, 1, kI32), -1); },
       {2, 1, 2},
       {1, 2, 4, 5}},
      {"OneHot",
       {3},
       [](Graph&, const Tensor& x) { return oneHot(cast(x, kI32), 3, kF64); },
       {3, 3},
       {0, 1, 0, 0, 0, 1, 0, 0, 0},
       false},
  };
}

std::vector<MoveCase> moveCases() {
  std::vector<MoveCase> cases = shapeCases();
  for (MoveCase& more : indexCases()) {
    cases.push_back(std::move(more));
  }
  return cases;
}

class MoveTest : public ::testing::TestWithParam<MoveCase> {};

TEST_P(MoveTest, PutsElementsWhereTheyBelong) {
  const MoveCase& test = GetParam();
  const Reals x = counted(test.shape.empty() ? 1 : [&] {
    size_t count = 1;
    for (const int64_t size : test.shape) {
      count *= static_cast<size_t>(size);
    }
    return count;
  }());
  Shape made;
  const Build build = [&](Graph& g, const Tensor& input) {
    const Tensor y = test.build(g, input);
    made = y.shape();
    return y;
  };
  EXPECT_EQ(valuesOf(test.shape, x, build), test.expected);
  EXPECT_EQ(made, test.result);
  if (!test.shape.empty() && test.shape[0] % 2 == 0) {
    EXPECT_EQ(valuesOf(test.shape, x, build, 2), test.expected);
  }
  if (test.gradient) {
    expectGradient(test.shape, x, build);
  }
}

INSTANTIATE_TEST_SUITE_P(Moves, MoveTest, ::testing::ValuesIn(moveCases()),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(Chunk, GivesAsManyPartsAsFillTheDimension) {
  Graph g;
  EXPECT_EQ(chunk(g.input("x", {5, 2}), 4, 0).size(), 3U);
  EXPECT_EQ(chunk(g.input("y", {6, 2}), 3, 0).size(), 3U);
  EXPECT_TRUE(g.status().ok()) << g.status();
}

}  // namespace
}  // namespace weft::testing
