// What products read of one another, and what of that has to be received.
#include "planner/cost/product_reads.h"

#include <gtest/gtest.h>

#include <vector>

#include "planner/cost/bound.h"
#include "planner/cost/least_work.h"
#include "tests/planner/cost/product_trio.h"

namespace weft::testing {
namespace {

class ProductReads : public ::testing::Test {
 protected:
  static bool isProduct(const GraphView& view, int op) { return view.op(op).facts.kind == "matmul"; }

  // Everything else hangs on what it reads.
  std::vector<ProductRead> reads() const {
    const GraphView view(b_.graph);
    const auto product = [&](int op) { return isProduct(view, op); };
    const ValueTrees trees = valueTrees(
        view, [&](int op) { return product(op) ? InTree::kAsRoot : InTree::kHangs; }, [](int) { return true; });
    return productReads(view, trees, product);
  }
  GraphValue product(const GraphValue& of, int64_t sums, int64_t columns) {
    return b_.add(productBy("m k+, k+ n -> m n"), {of, b_.parameter("w", {sums, columns})}, {8, columns});
  }

  GraphBuilder b_;
  const GraphValue x_ = b_.input("x", {8, 4});
};

TEST_F(ProductReads, OfTheSmallestValueOnTheWay) {
  const GraphValue made = product(x_, 4, 6);                                   // 0
  const GraphValue narrow = b_.add({"slice", "a b! -> a b"}, {made}, {8, 2});  // 1
  const GraphValue wide = b_.add({"pad", "a b! -> a b"}, {narrow}, {8, 5});    // 2
  b_.returns(product(wide, 5, 6));                                             // 3
  const std::vector<ProductRead> found = reads();
  ASSERT_EQ(found.size(), 1);
  EXPECT_EQ(found[0].maker, 0);
  EXPECT_EQ(found[0].reader, 3);
  EXPECT_EQ(found[0].operand, 0);
  EXPECT_EQ(found[0].bytes, 8 * 2 * 4);
}

// Of a stream of residuals.
TEST_F(ProductReads, WhatWasAddedLast) {
  const GraphValue stream = product(x_, 4, 4);                              // 0
  const GraphValue added = product(b_.add(kRelu, {stream}, {8, 4}), 4, 4);  // 1, 2
  b_.returns(product(b_.add(kAdd, {added, stream}, {8, 4}), 4, 4));         // 3, 4
  const std::vector<ProductRead> found = reads();
  ASSERT_EQ(found.size(), 2);
  EXPECT_EQ(found[0].maker, 0);
  EXPECT_EQ(found[1].maker, 2);
  EXPECT_EQ(found[1].reader, 4);
}

// Of one rank: bytes and operations a second.
constexpr double kLink = 1e6, kNetwork = kLink / 5, kFlops = 1e6;
constexpr int64_t kMicroBatches = 2;  // of one row each, which is not split

// In picoseconds.
double kernel(int64_t sums, int64_t columns) {
  return 2.0 * static_cast<double>(kMicroBatches * sums * columns) / kFlops * kPicosecondsPerSecond;
}
double onLinks(double bytes) {
  return bytes / kLink * kPicosecondsPerSecond;
}
double onNetwork(double bytes) {
  return bytes / kNetwork * kPicosecondsPerSecond;
}

constexpr int64_t kWidth = 32;
constexpr double kValue = 4.0 * kMicroBatches * kWidth;  // bytes of what is between the layers

struct Widths {
  int64_t inputs = kWidth, between = kWidth, outputs = kWidth;
};

// z = relu(x v), then relu(z w) for each of some layers, which are added; and their gradients. The first layer is a
// block, with its gradients, the others are one.
class Layers {
 public:
  explicit Layers(const Widths& widths, int64_t readers = 1) {
    const Shape between = {kMicroBatches, widths.between};
    Layer first = forward(b_.input("x", {kMicroBatches, widths.inputs}), widths.inputs, widths.between);
    std::vector<Layer> others = {forward(first.z, widths.between, widths.outputs)};
    GraphValue all = others[0].z;
    for (int64_t i = 1; i < readers; ++i) {
      others.push_back(forward(first.z, widths.between, widths.outputs));
      all = b_.add(kAdd, {all, others.back().z}, {kMicroBatches, widths.outputs});
    }
    GraphValue dz = backward(others[0], all);
    for (int64_t i = 1; i < readers; ++i) {
      dz = addGradient(b_, kAdd, {dz, backward(others[i], all)}, between, others[i].product);
    }
    b_.returns(addGradient(b_, kRelu, {backward(first, dz)}, {kMicroBatches, widths.inputs}, first.product + 1));
  }

  Layers& inOneBlock() {
    isOneBlock_ = true;
    return *this;
  }

  Layers& withLinks(double bandwidth) {
    link_ = bandwidth;
    return *this;
  }

  // Beyond kernels that take all ranks together as long as one.
  double ofStep(int64_t ranks, int64_t borders, int64_t devicesPerNode = 0) {
    return ask(ranks, borders, devicesPerNode).ofRanks - kernels_;
  }
  double ofFamily(size_t family, int64_t ranks) { return ask(ranks, 0, 0).ofFamily[family]; }
  // Of plans of one submesh of two ranks that has so many stages, likewise.
  double bound(int64_t stages) const {
    BoundedPlans plans = {2, {2}, {kMicroBatches}};
    plans.mostVirtual = stages;
    plans.blockOf = blocks();
    const Machine machine = linkedMachine(kFlops, link_, kNetwork, 0);
    return 2 * static_cast<double>(*leastTime(b_.graph, machine, plans)) - kernels_;
  }

 private:
  struct Layer {
    int64_t product = 0;
    Shape weight;
    GraphValue x, w, z;
  };

  Layer forward(const GraphValue& x, int64_t sums, int64_t columns) {
    Layer layer = {b_.graph.nextId, {sums, columns}, x, b_.parameter("w", {sums, columns}), {}};
    const GraphValue y = b_.add(productBy("m k+, k+ n -> m n"), {x, layer.w}, {kMicroBatches, columns});
    layer.z = b_.add(kRelu, {y}, {kMicroBatches, columns});
    kernels_ += 3 * kernel(sums, columns);
    return layer;
  }
  // dx.
  GraphValue backward(const Layer& layer, const GraphValue& dz) {
    const int64_t mine = layer.product;
    const int64_t sums = layer.weight[0];
    const int64_t columns = layer.weight[1];
    const OperatorFacts multiply = {"multiply", "a b, a b -> a b"};
    const GraphValue dy = addGradient(b_, multiply, {dz, layer.z}, {kMicroBatches, columns}, mine + 1);
    const GraphValue dw = addGradient(b_, productBy("m+ k, m+ n -> k n"), {layer.x, dy}, layer.weight, mine);
    const GraphValue dx = addGradient(b_, productBy("m n+, k n+ -> m k"), {dy, layer.w}, {kMicroBatches, sums}, mine);
    const GraphValue whole = b_.add({"constrain", "a b -> a b"}, {dw}, layer.weight);
    b_.last().gradientOf = b_.graph.arguments[layer.w.index].name;
    b_.last().phase = Phase::kBackward;
    b_.returns(whole);
    return dx;
  }

  std::vector<int> blocks() const {
    std::vector<int> blocks;
    for (const GraphOperator& op : b_.graph.operators) {
      blocks.push_back(isOneBlock_ || op.forward.value_or(op.id) < 2 ? 0 : 1);
    }
    return blocks;
  }

  LeastWork::Priced ask(int64_t ranks, int64_t borders, int64_t devicesPerNode) const {
    const Machine machine = linkedMachine(kFlops, link_, kNetwork, devicesPerNode);
    const LeastWork work = *LeastWork::of(GraphView(b_.graph), machine, {true, false, blocks()});
    const WorkGrid grid = {ranks, kMicroBatches};
    const LeastWork::Times times = work.times(grid);
    FamilyTimes::OnGrid families(work.families(), grid, times.ofOperator, {FamilyTimes::Nodes::kInOrder, borders});
    return work.priced(times, families, 0);
  }

  GraphBuilder b_;
  double kernels_ = 0;
  bool isOneBlock_ = false;
  double link_ = kLink;
};

void expectNear(double found, double expected) {
  EXPECT_NEAR(found, expected, 0.1 * onLinks(kValue));  // half operations are rounded
}

// On two ranks. The first layer splits its columns and adds up dx. The second one receives z and adds up dz, or adds up
// y and receives dy.
TEST(FamilyReads, OneOfTwoRanksReceivesWhatTheOtherOneMade) {
  expectNear(Layers({}).ofStep(2, 0), onLinks(3 * kValue));
}

// On four ranks with two on a node what both layers add up and receive goes over the network: all nodes but one have to
// have it.
TEST(FamilyReads, OverTheNetwork) {
  expectNear(Layers({}).ofStep(4, 0, 2), onNetwork(3 * kValue));
}

// A stage receives what the one before sends.
TEST(FamilyReads, WhatStagesReadIsSent) {
  expectNear(Layers({}).ofStep(2, 1), onLinks(2 * kValue));
  expectNear(Layers({}).inOneBlock().ofStep(2, 1), onLinks(3 * kValue));
}

TEST(FamilyReads, TheBoundKnowsHowManyStagesThereAre) {
  expectNear(Layers({}).bound(1), onLinks(3 * kValue));
  expectNear(Layers({}).bound(2), onLinks(2 * kValue));
  expectNear(Layers({}).bound(0), onLinks(2 * kValue));
}

TEST(FamilyReads, WhatIsReadOfTheSameBlockIsOnItsStage) {
  expectNear(Layers({}).ofFamily(1, 2), onLinks(kValue));
  expectNear(Layers({}).inOneBlock().ofFamily(1, 2), onLinks(2 * kValue));
}

// z has one column and takes 1.204 ms to make and 0.8 ms to send, as does dz. Both ranks may make z, or each half of
// its 301 terms, rounded up; dx and dw are split in halves in either case.
TEST(FamilyReads, OrItIsMadeByAllThatReadIt) {
  constexpr double kLinkOfSlow = 1e4;
  const auto layers = [] { return Layers({301, 1, 3200}).withLinks(kLinkOfSlow); };
  const double send = 4.0 * kMicroBatches / kLinkOfSlow * kPicosecondsPerSecond;
  const double made = kernel(301, 1);
  const double half = 2 * kernel(151, 1);  // of both ranks
  const double ofFirst = (2 * made - send) + (half + send) + half;
  const double ofSecond = 2 * send;  // beyond its kernels: z, and dz to be added up
  expectNear(layers().ofStep(2, 0), ofFirst - 3 * made + ofSecond);
  const double ofOperators = (half + send) + half + half;
  expectNear(layers().inOneBlock().ofFamily(0, 2), ofFirst - ofOperators);
}

// To make z again takes less than to send it: no plan has to.
TEST(FamilyReads, WhatIsCheapToMakeIsNotCounted) {
  expectNear(Layers({.inputs = 1}).ofStep(2, 0), onLinks(kValue + 4.0 * kMicroBatches));
}

// Of two layers one adds up what both make for dz, and z is received for both.
TEST(FamilyReads, WhatTwoReadIsReceivedOnce) {
  expectNear(Layers({}, 2).ofStep(2, 0), onLinks(3 * kValue));
}

}  // namespace
}  // namespace weft::testing
