// Boxes between meshes: every element of every target comes once, from a rank that has it.

#include "ir/layout/across.h"

#include <gtest/gtest.h>

#include <numeric>
#include <random>

namespace weft {
namespace {

Mesh mesh(const std::string& text) {
  return *Mesh::parse(text);
}

int64_t elementsOf(const Shape& shape) {
  return std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
}

// Visits all indices of a box.
template <typename Visit>
void forEach(const Shape& size, const Visit& visit) {
  Shape index(size.size(), 0);
  for (int64_t i = 0; i < elementsOf(size); ++i) {
    visit(index);
    for (size_t d = size.size(); d-- > 0 && ++index[d] == size[d];) {
      index[d] = 0;
    }
  }
}

int64_t place(const Shape& shape, const Shape& offset, const Shape& index) {
  int64_t at = 0;
  for (size_t d = 0; d < shape.size(); ++d) {
    at = at * shape[d] + offset[d] + index[d];
  }
  return at;
}

// A rank's local tensor, each element the number of its place in the whole.
std::vector<int64_t> localNumbers(const Shape& shape, const Placed& placed, int64_t rank) {
  const Slice slice = placed.layout.slice(shape, placed.mesh, rank);
  std::vector<int64_t> numbers;
  forEach(slice.size, [&](const Shape& index) { numbers.push_back(place(shape, slice.offset, index)); });
  return numbers;
}

// Carries the boxes out; -1 where nothing arrives, -2 where something arrives twice.
std::vector<std::vector<int64_t>> assemble(const Shape& shape, const Placed& from, const Placed& to) {
  std::vector<std::vector<int64_t>> made(to.mesh.ranks(),
                                         std::vector<int64_t>(elementsOf(to.layout.localShape(shape)), -1));
  for (const TransferBox& box : boxesAcross(shape, from, to)) {
    const std::vector<int64_t> source = localNumbers(shape, from, box.source);
    forEach(box.size, [&](const Shape& index) {
      int64_t& target = made[box.target][place(to.layout.localShape(shape), box.targetOffset, index)];
      target = target == -1 ? source[place(from.layout.localShape(shape), box.sourceOffset, index)] : -2;
    });
  }
  return made;
}

// Some splits of two dimensions over the axes of a mesh.
Layout randomLayout(const Mesh& on, std::mt19937_64& generator) {
  AxisLists dims(2);
  for (const NamedAxis& named : on.axes()) {
    const uint64_t dim = generator() % 3;
    if (dim < 2 && named.axis.size > 1) {
      dims[dim].push_back(named.axis);
    }
  }
  return Layout(dims);
}

TEST(AcrossTest, EveryRankGetsItsTensor) {
  const std::vector<std::string> meshes = {"dp=1", "dp=2", "dp=3", "dp=4", "dp=2,tp=2", "dp=3,tp=2", "tp=2,dp=3"};
  std::mt19937_64 generator(7);
  const Shape shape = {12, 24};
  for (int trial = 0; trial < 300; ++trial) {
    const Mesh source = mesh(meshes[generator() % meshes.size()]);
    const Mesh target = mesh(meshes[generator() % meshes.size()]);
    const Layout from = randomLayout(source, generator);
    const Layout to = randomLayout(target, generator);
    SCOPED_TRACE(source.print() + " " + from.print(source) + " to " + target.print() + " " + to.print(target));
    const auto made = assemble(shape, {from, source}, {to, target});
    for (int64_t rank = 0; rank < target.ranks(); ++rank) {
      ASSERT_EQ(made[rank], localNumbers(shape, {to, target}, rank)) << "rank " << rank;
    }
  }
}

TEST(AcrossTest, ScalarsGoToEveryRank) {
  const Mesh one = mesh("dp=1");
  const Mesh three = mesh("dp=3");
  const Layout scalar;
  EXPECT_EQ(boxesAcross({}, {scalar, one}, {scalar, three}).size(), 3U);
}

// Ranks that hold the same share the work: each of four sends one of four quarters.
TEST(AcrossTest, ReplicasShareTheWork) {
  const Mesh source = mesh("dp=2,tp=2");
  const Mesh target = mesh("dp=4");
  const Layout from = *Layout::parse("[{dp},{}]", source);
  const Layout to = *Layout::parse("[{dp},{}]", target);
  const std::vector<TransferBox> boxes = boxesAcross({8, 4}, {from, source}, {to, target});
  ASSERT_EQ(boxes.size(), 4U);
  for (int64_t rank = 0; rank < 4; ++rank) {
    EXPECT_EQ(boxes[rank].source, rank);
    EXPECT_EQ(boxes[rank].target, rank);
    EXPECT_EQ(boxes[rank].sourceOffset, (Shape{rank % 2 * 2, 0}));
    EXPECT_EQ(boxes[rank].size, (Shape{2, 4}));
  }
}

TEST(AcrossTest, AxesAreTranslatedByName) {
  const Mesh from = mesh("dp=2,tp=2");
  const Mesh to = mesh("tp=3,dp=4");
  const auto text = [&](const std::string& layout) {
    return translated(*Layout::parse(layout, from), from, to).print(to);
  };
  EXPECT_EQ(text("[{dp},{tp}]"), "[{dp},{tp}]");
  EXPECT_EQ(text("[{dp,tp},{}] partial{}"), "[{dp,tp},{}]");
  EXPECT_EQ(text("[{all},{}]"), "[{tp,dp},{}]");
  // Half an axis has no namesake, and what follows it would stand elsewhere.
  const Mesh wide = mesh("dp=4,tp=2");
  EXPECT_EQ(translated(*Layout::parse("[{dp:(1)2,tp},{}]", wide), wide, to).print(to), "[{},{}]");
  // On an axis of size 1 nothing is split.
  const Mesh narrow = mesh("dp=1,tp=2");
  EXPECT_EQ(translated(*Layout::parse("[{dp},{tp}]", from), from, narrow).print(narrow), "[{},{tp}]");
}

}  // namespace
}  // namespace weft
