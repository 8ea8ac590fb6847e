// Which plans the bound of a request is for: all that it leaves open, and nothing that it gives.
#include "planner/search/bounded_plans.h"

#include <gtest/gtest.h>

#include "planner/search/plan_space.h"
#include "tests/planner/graph/graph_builder.h"

namespace weft::testing {
namespace {

using Counts = std::vector<int64_t>;

// Of a program whose batch has 6 rows, for which two submeshes of four ranks and three micro-batches were chosen.
BoundedPlans plansOf(const CompileOptions& request, bool fits = true, const Correction& correction = {}) {
  GraphBuilder b;
  b.returns(b.add(kRelu, {b.input("x", {6, 4})}, {6, 4}));
  ClosedRequest closed = {request, std::make_shared<const ProgramGraph>(b.graph), {}};
  closed.attempt.decisions.mesh = *Mesh::parse("dp=2,tp=2,micro=3");
  closed.attempt.decisions.schedule.submeshes = {0, 1};
  closed.attempt.fits = fits;
  closed.attempt.time = 100;
  const absl::StatusOr<BoundedPlans> plans = boundedPlans(closed.graph, request, closed, correction);
  EXPECT_TRUE(plans.ok()) << plans.status();
  return plans.ok() ? *plans : BoundedPlans();
}

// A program of three layers, each a product that is added to what it reads, behind a relu of the input; then a gradient
// of the second product, and an update of the third weight.
std::shared_ptr<ProgramGraph> layers() {
  GraphBuilder b;
  GraphValue value = b.add(kRelu, {b.input("x", {6, 4})}, {6, 4});
  for (const char* name : {"a", "b", "c"}) {
    value = b.add(kAdd, {b.add(kMatmul, {value, b.parameter(name, {4, 4})}, {6, 4}), value}, {6, 4});
  }
  b.returns(value);
  b.returns(b.add(kRelu, {value}, {6, 4}));
  b.last().phase = Phase::kBackward;
  b.last().forward = 3;
  b.updates({GraphValue::kArgument, 3}, b.add(kRelu, {{GraphValue::kArgument, 3}}, {4, 4}));
  b.last().phase = Phase::kUpdate;
  return std::make_shared<ProgramGraph>(b.graph);
}

TEST(BoundedPlans, HaveWhatIsLeftOpen) {
  const BoundedPlans plans = plansOf({.mode = Mode::kAuto, .devices = 8});
  EXPECT_EQ(plans.ranks, 8);
  EXPECT_EQ(plans.submeshRanks, (Counts{1, 2, 4, 8}));
  EXPECT_EQ(plans.microBatches, (Counts{1, 2, 3, 6}));
  EXPECT_TRUE(plans.areAlike);
  EXPECT_EQ(plans.mostTrading, kMostTrading);
  EXPECT_EQ(plans.mostVirtual, 2);
  EXPECT_FALSE(plans.hidesCollectives);
  EXPECT_EQ(plans.known, 100);
}

TEST(BoundedPlans, HaveWhatIsGiven) {
  CompileOptions request = {.mode = Mode::kAuto, .mesh = "dp=2,tp=2", .devices = 8};
  request.micro = 3;
  request.overlap = true;
  const BoundedPlans plans = plansOf(request);
  EXPECT_EQ(plans.submeshRanks, (Counts{4}));
  EXPECT_EQ(plans.microBatches, (Counts{3}));
  EXPECT_TRUE(plans.hidesCollectives);
  EXPECT_EQ(plans.mostTrading, 0);
  EXPECT_EQ(plansOf({.mode = Mode::kAuto, .devices = 8, .without = {Freedom::kStageMeshes}}).mostTrading, 0);
  EXPECT_EQ(plansOf({.mode = Mode::kAuto, .devices = 8, .maxStages = 2}).submeshRanks, (Counts{4, 8}));
  EXPECT_EQ(plansOf({.mode = Mode::kAuto, .devices = 8, .schedule = "interleaved"}).mostVirtual, 4);
}

// Of stages that lie on submeshes otherwise than in a loop or a V nothing is known.
TEST(BoundedPlans, HaveStagesInAnOrderOfTheLibrary) {
  const auto mostVirtual = [](const std::vector<int64_t>& submeshes) {
    CompileOptions request = {.mode = Mode::kAuto, .devices = 8, .schedule = "table"};
    ClosedRequest closed = {request, layers(), {}};
    closed.attempt.decisions.mesh = *Mesh::parse("dp=2,tp=2");
    closed.attempt.decisions.schedule.submeshes = submeshes;
    request.virtualStages = std::ssize(submeshes) / 2;
    const absl::StatusOr<BoundedPlans> plans = boundedPlans(closed.graph, request, closed, {});
    EXPECT_TRUE(plans.ok()) << plans.status();
    return plans.ok() ? plans->mostVirtual : -1;
  };
  EXPECT_EQ(mostVirtual({0, 1}), 1);
  EXPECT_EQ(mostVirtual({0, 1, 0, 1}), 2);
  EXPECT_EQ(mostVirtual({0, 1, 1, 0}), 2);
  EXPECT_EQ(mostVirtual({0, 0, 1, 1}), 0);
  EXPECT_EQ(mostVirtual({1, 0}), 0);
}

TEST(BoundedPlans, OutsideOfModeAutoHaveWhatWasChosen) {
  const BoundedPlans plans = plansOf({.mode = Mode::kLayouts, .mesh = "dp=?,tp=?", .devices = 4});
  EXPECT_EQ(plans.submeshRanks, (Counts{4}));
  EXPECT_EQ(plans.microBatches, (Counts{3}));
}

TEST(BoundedPlans, HaveTheMemoryInWhichOneWasFound) {
  const CompileOptions request = {.mode = Mode::kAuto, .devices = 8, .memoryLimit = 1000};
  EXPECT_EQ(plansOf(request).memoryLimit, 1000);
  EXPECT_TRUE(plansOf(request).isMemoryAlike);
  EXPECT_EQ(plansOf(request, false).memoryLimit, 0);
  EXPECT_EQ(plansOf(request, true, {{-16, 8}}).memoryLimit, 1016) << "the model counts 16 bytes too many";
}

std::vector<int> blocksOf(const std::shared_ptr<const ProgramGraph>& program,
                          const std::shared_ptr<const ProgramGraph>& chosen) {
  const CompileOptions request = {.mode = Mode::kAuto, .devices = 8};
  ClosedRequest closed = {request, chosen, {}};
  closed.attempt.decisions.mesh = *Mesh::parse("dp=8");
  const absl::StatusOr<BoundedPlans> plans = boundedPlans(program, request, closed, {});
  EXPECT_TRUE(plans.ok()) << plans.status();
  return plans.ok() ? plans->blockOf : std::vector<int>();
}

// Stages are cut before what reads a parameter, as the user says, or as a record says that the search began from.
TEST(BoundedPlans, HaveBlocksThatNoStageHasAPartOf) {
  const std::shared_ptr<ProgramGraph> program = layers();
  EXPECT_EQ(blocksOf(program, program), (std::vector<int>{-1, 0, 0, 1, 1, 2, 2, 1, 2}));
  const auto cutWithin = std::make_shared<ProgramGraph>(*program);
  for (size_t op = 0; op < cutWithin->operators.size(); ++op) {
    if (cutWithin->operators[op].phase == Phase::kForward) {
      cutWithin->operators[op].userStage = op < 4 ? 0 : 1;
    }
  }
  EXPECT_EQ(blocksOf(program, cutWithin), (std::vector<int>{-1, 0, 0, 1, 2, 3, 3, 1, 3}));
  EXPECT_EQ(blocksOf(cutWithin, cutWithin), (std::vector<int>{0, 0, 0, 0, 1, 1, 1, 0, 1}));
}

// What the ranks of one kind have no room for may lie on those of another.
TEST(BoundedPlans, HaveTheMemoryOfAllKindsTogether) {
  const std::string nodes = "network_bandwidth = 1e9\ndevices_per_node = 2\n";
  const CompileOptions request = {
      .mode = Mode::kAuto,
      .devices = 8,
      .machine = nodes + "[kind large]\nmemory = 1000\nnodes = 3\n[kind small]\nmemory = 201\nnodes = 1\n"};
  EXPECT_EQ(plansOf(request).memoryLimit, 801) << "the mean, rounded up";
  EXPECT_FALSE(plansOf(request).isMemoryAlike);
}

}  // namespace
}  // namespace weft::testing
