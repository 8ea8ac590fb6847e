// What weights ask of the products that read them, on machines where kernels take all ranks together the same time
// however they are split, so that what moves between ranks can be counted.
#include "planner/cost/family_times.h"

#include <gtest/gtest.h>

#include <limits>

#include "planner/cost/bound.h"
#include "planner/cost/kept_values.h"
#include "planner/cost/least_work.h"
#include "tests/planner/cost/product_trio.h"

namespace weft::testing {
namespace {

// Of one rank: bytes and operations a second. To make something twice takes longer than to move it.
constexpr double kLink = 1e6, kNetwork = 1e5, kFlops = 1e6;

struct Sizes {
  int64_t rows = 0, columns = 0, sums = 0;

  double weight() const { return 4.0 * static_cast<double>(columns * sums); }  // bytes, of its gradient as well
};

// From dw w is updated.
class Step {
 public:
  explicit Step(const Sizes& sizes) : sizes_(sizes), trio_(sizes.rows, sizes.columns, sizes.sums) {}

  // Something else reads the weight as well.
  Step& withReader() {
    b_.returns(b_.add(productBy("m k+, k+ n -> m n"), {trio_.x, trio_.w}, {sizes_.rows, sizes_.columns}));
    return *this;
  }
  // The gradient has another part.
  Step& withSum() {
    trio_.dw = trio_.gradient(kAdd, {trio_.dw, b_.parameter("v", weightShape())}, weightShape(), 0);
    return *this;
  }

  // Beyond the kernels.
  FamilyTimes::Least least(const WorkGrid& grid, double bytePrice, int64_t devicesPerNode = 0,
                           FamilyTimes::Nodes nodes = FamilyTimes::Nodes::kInOrder) {
    finish();
    const GraphView view(b_.graph);
    const LeastWork work = *LeastWork::of(view, machine(devicesPerNode), {});
    FamilyTimes::OnGrid families(work.families(), grid, work.times(grid).ofOperator, {nodes});
    const FamilyTimes::Least least = families.least(bytePrice)[0];
    return {least.inBlocks - kernels(), least.withUpdates - kernels(), least.withReads - kernels()};
  }
  // Likewise, without what it updates and without a price.
  double alone(const WorkGrid& grid, int64_t devicesPerNode) {
    finish();
    const LeastWork work = *LeastWork::of(GraphView(b_.graph), machine(devicesPerNode), {});
    return work.families().least(grid, work.times(grid).ofOperator)[0] - kernels();
  }
  // Likewise, of all ranks of one submesh that have so much memory together.
  double within(double memory, const WorkGrid& grid) {
    finish();
    const GraphView view(b_.graph);
    const LeastWork work = *LeastWork::of(view, machine(0), {});
    const LeastWork::Times times = work.times(grid);
    FamilyTimes::OnGrid families(work.families(), grid, times.ofOperator, {FamilyTimes::Nodes::kInOrder});
    const auto ranks = static_cast<double>(grid.ranks);
    const KeptValues kept(view, work,
                          {.ranks = grid.ranks, .atWork = grid.ranks, .limit = static_cast<int64_t>(memory / ranks)});
    return kept.leastStep(grid, times, families, std::numeric_limits<double>::infinity()).time * ranks - kernels();
  }
  // Of plans with one such submesh and no limit, in seconds.
  double bound(int64_t ranks) {
    finish();
    return inSeconds(*leastTime(b_.graph, machine(0), {ranks, {ranks}})) * static_cast<double>(ranks) -
           kernels() / kPicosecondsPerSecond;
  }
  double weightBytes() {
    finish();
    return LeastWork::of(GraphView(b_.graph), machine(0), {})->families().weightBytes();
  }

 private:
  static Machine machine(int64_t devicesPerNode) { return linkedMachine(kFlops, kLink, kNetwork, devicesPerNode); }

  double kernels() const {
    return 3 * 2.0 * static_cast<double>(sizes_.rows * sizes_.columns * sizes_.sums) / kFlops * kPicosecondsPerSecond;
  }

  Shape weightShape() const { return {sizes_.sums, sizes_.columns}; }

  void finish() {
    const GraphValue whole = b_.add({"constrain", "a b -> a b"}, {trio_.dw}, weightShape());
    b_.last().gradientOf = "w";
    b_.updates(trio_.w, b_.add({"sgd", "a b, a b -> a b"}, {trio_.w, whole}, weightShape()));
    b_.last().phase = Phase::kUpdate;
  }

  Sizes sizes_;
  ProductTrio trio_;
  GraphBuilder& b_ = trio_.b;
};

// In picoseconds.
double onLinks(double bytes) {
  return bytes / kLink * kPicosecondsPerSecond;
}
double onNetwork(double bytes) {
  return bytes / kNetwork * kPicosecondsPerSecond;
}

void expectNear(double found, double expected) {
  EXPECT_NEAR(found, expected, 1e-2 * expected);  // half operations are rounded
}

// Many rows: they are split, and the gradient is added up.
constexpr Sizes kManyRows = {3 << 13, 32, 32};

TEST(FamilyTimes, WeightsAreReadByOneFamilyAlone) {
  EXPECT_EQ(Step(kManyRows).weightBytes(), kManyRows.weight());
  EXPECT_EQ(Step(kManyRows).withReader().weightBytes(), 0);
  EXPECT_EQ(Step(kManyRows).withSum().weightBytes(), 0);
}

// Over s ranks a value is received s - 1 times to be added up, and as often to be passed on.
TEST(FamilyTimes, UpdatesArePassedOn) {
  const double weight = kManyRows.weight();
  for (const int64_t ranks : {2, 8}) {
    const FamilyTimes::Least least = Step(kManyRows).least({ranks, 4}, 0);
    expectNear(least.inBlocks, onLinks(weight * static_cast<double>(ranks - 1)));
    expectNear(least.withUpdates, 2 * onLinks(weight * static_cast<double>(ranks - 1)));
  }
}

TEST(FamilyTimes, TheBoundCountsUpdatesWithoutALimit) {
  const double moved = kManyRows.weight() * 7 / kLink;
  EXPECT_NEAR(Step(kManyRows).bound(8), 2 * moved, 1e-2 * moved);
}

// On four ranks the weight and its gradient lie four times. Once, the ranks pass on the weight in the forward and the
// backward pass of each micro-batch, and add up the gradient in all but one more: it is added up in any case.
TEST(FamilyTimes, WhereBytesHaveAPriceWeightsAreShared) {
  const double weight = kManyRows.weight();
  const double moved = onLinks(3 * weight);
  const auto at = [&](double price) { return Step(kManyRows).least({4, 3}, price); };
  const double ofGradient = 2 * moved / (3 * weight);  // prices at which both are as good
  const double ofWeight = 6 * moved / (3 * weight);
  double price = 0.9 * ofGradient;
  expectNear(at(price).inBlocks, moved + price * 8 * weight);
  price = 1.1 * ofGradient;
  expectNear(at(price).inBlocks, moved + 2 * moved + price * 5 * weight);
  price = 1.1 * ofWeight;
  expectNear(at(price).inBlocks, moved + 2 * moved + 6 * moved + price * 2 * weight);
  expectNear(at(price).withUpdates, at(price).inBlocks);  // what lies once is not passed on
}

// z is kept for the backward pass: to make it again takes longer than to share the weight, and its gradient before
// that.
TEST(FamilyTimes, WithinAMemoryLimitWeightsAreShared) {
  const double weight = kManyRows.weight();
  const double moved = onLinks(3 * weight);
  const double kept = 4.0 * static_cast<double>(kManyRows.rows * kManyRows.columns) / 3;
  const auto within = [&](double weights) { return Step(kManyRows).within(kept + weights * weight, {4, 3}); };
  expectNear(within(9), 2 * moved);
  expectNear(within(6.5), 2 * moved + moved);
  expectNear(within(3), 4 * moved + 5 * moved * 2 / 3);
}

// Between these, pairs of ranks share a weight: on nodes of two they do so without the network.
TEST(FamilyTimes, SomeRanksMayShare) {
  const double weight = kManyRows.weight();
  const double price = 0.8 * onNetwork(1);
  expectNear(Step(kManyRows).least({4, 3}, price, 2).inBlocks,
             onNetwork(weight) + 2 * onLinks(2 * weight) + 6 * onLinks(2 * weight) + price * 4 * weight);
}

// Of one micro-batch nothing is accumulated, and what is gathered once lies once.
TEST(FamilyTimes, OneMicroBatchAccumulatesNothing) {
  const double weight = kManyRows.weight();
  const double price = onLinks(1e3);
  expectNear(Step(kManyRows).least({4, 1}, price).inBlocks, onLinks(3 * weight) + onLinks(3 * weight) + price * weight);
}

// With a price of bytes columns are split, too. On nodes of two ranks one of both splits has its sums on the network.
TEST(FamilyTimes, SplitsShareNodes) {
  const Sizes square = {64, 64, 64};
  const double value = square.weight();
  const auto least = [&](FamilyTimes::Nodes nodes) { return Step(square).least({4, 1}, 0, 2, nodes).inBlocks; };
  expectNear(least(FamilyTimes::Nodes::kAnywhere), onLinks(2 * value));
  expectNear(least(FamilyTimes::Nodes::kInOrder), onNetwork(value));
}

// Three ranks of a node of four may lie on two nodes.
TEST(FamilyTimes, OtherSizesMayLieAnywhere) {
  const Sizes square = {60, 60, 60};
  const auto least = [&](FamilyTimes::Nodes nodes) { return Step(square).least({6, 1}, 0, 2, nodes).inBlocks; };
  expectNear(least(FamilyTimes::Nodes::kInOrder), least(FamilyTimes::Nodes::kAnywhere));
}

// What is asked without a price of bytes is what a price of nothing comes to.
TEST(FamilyTimes, AloneTheyTakeAsLongAsWithoutAPrice) {
  for (const Sizes& sizes : {kManyRows, Sizes{64, 64, 64}, Sizes{60, 24, 96}}) {
    for (const WorkGrid grid : {WorkGrid{1, 1}, WorkGrid{2, 3}, WorkGrid{4, 1}, WorkGrid{6, 3}, WorkGrid{8, 1}}) {
      const double withPrice = Step(sizes).least(grid, 0, 2, FamilyTimes::Nodes::kAnywhere).inBlocks;
      EXPECT_NEAR(Step(sizes).alone(grid, 2), withPrice, 1);
    }
  }
}

}  // namespace
}  // namespace weft::testing
