// Products whose gradients are split with them, and what that makes them take together.
#include "planner/cost/product_families.h"

#include <gtest/gtest.h>

#include "planner/cost/least_work.h"
#include "tests/planner/cost/product_trio.h"

namespace weft::testing {
namespace {

// dw is read as well.
class Trio {
 public:
  Trio(int64_t rows, int64_t columns, int64_t sums) : trio_(rows, columns, sums) {
    trio_.b.returns(trio_.gradient(kRelu, {trio_.dw}, {sums, columns}, 3));
  }

  ProgramGraph& graph() { return trio_.b.graph; }

 private:
  ProductTrio trio_;
};

std::vector<ProductFamily> familiesOf(const ProgramGraph& graph) {
  const GraphView view(graph);
  const auto families = productFamilies(view, [&](int op) { return view.op(op).facts.kind == "matmul"; });
  EXPECT_TRUE(families.ok()) << families.status();
  return families.ok() ? *families : std::vector<ProductFamily>();
}

TEST(ProductFamilies, RolesAreThoseOfTheSameLoops) {
  const std::vector<ProductFamily> families = familiesOf(Trio(8, 6, 4).graph());
  ASSERT_EQ(families.size(), 1U);
  EXPECT_EQ(families[0].operators, (std::vector<int>{0, 3, 4}));
  EXPECT_EQ(families[0].roles[1], (std::array<int, kRoles>{kBatch, kRows, kSums, kColumns}));
  EXPECT_EQ(families[0].roles[2], (std::array<int, kRoles>{kBatch, kSums, kColumns, kRows}));
}

// Those that finish the gradient of a parameter have splits of their own; of other sizes they divide otherwise.
TEST(ProductFamilies, OthersAreAlone) {
  Trio finishes(8, 6, 4);
  finishes.graph().operators[4].gradientOf = "w";
  EXPECT_EQ(familiesOf(finishes.graph())[0].operators, (std::vector<int>{0, 3}));
  Trio whole(8, 6, 4);
  whole.graph().operators[3].facts.rule = "m n!, k n! -> m k";
  EXPECT_EQ(familiesOf(whole.graph())[0].operators, (std::vector<int>{0, 4}));
  Trio alone(8, 6, 4);
  alone.graph().operators[3].forward = alone.graph().operators[4].forward = std::nullopt;
  EXPECT_TRUE(familiesOf(alone.graph()).empty());
}

// Tiles of 16 x 16, one at a time.
LeastWork::Times timesOf(const ProgramGraph& graph, int64_t ranks, double linkBandwidth) {
  Machine machine;
  machine.flops = 2.0 * 4 * 256 * (1 << 20);
  machine.memoryBandwidth = 1e18;
  machine.linkBandwidth = linkBandwidth;
  machine.launchLatency = 0;
  machine.tile = {16, 16};
  machine.multiprocessors = 1;
  const GraphView view(graph);
  const absl::StatusOr<LeastWork> work = LeastWork::of(view, machine, {});
  EXPECT_TRUE(work.ok()) << work.status();
  return work->times({ranks, 1});
}

// Where links are slow, each product alone splits what it does not sum: x w its rows or columns, x^T dy its columns of
// x or those of dy. Here these are one tile each, and the rows many: split over the rows x^T dy adds them up, split
// over either of the others x w or dy w^T does.
TEST(ProductFamilies, NoSplitServesAll) {
  Trio trio(64, 32, 32);
  const double bandwidth = 1e9;
  const LeastWork::Times times = timesOf(trio.graph(), 2, bandwidth);
  ASSERT_EQ(times.ofFamily.size(), 1U);
  // Of the three values the gradient of the parameter is smallest; each is added up over two ranks.
  const double added = 32 * 32 * 4 / bandwidth * kPicosecondsPerSecond;
  EXPECT_NEAR(times.ofFamily[0], added, 1e-3 * added);
  // Where links are fast, all take least split over their sums or not: nothing is lost.
  EXPECT_NEAR(timesOf(trio.graph(), 2, 1e18).ofFamily[0], 0, 1);
}

// x w is one tile whatever its split. Where both ranks make all of it, each makes half of the tiles of its gradients.
TEST(ProductFamilies, GradientsMayBeSplitFurther) {
  EXPECT_NEAR(timesOf(Trio(16, 16, 64).graph(), 2, 1e6).ofFamily[0], 0, 1e3);  // half operations are rounded
}

}  // namespace
}  // namespace weft::testing
