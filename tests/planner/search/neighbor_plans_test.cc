// The plans one decision away from another.
#include "planner/search/neighbor_plans.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "planner/search/plan_space.h"
#include "tests/planner/search/chain_program.h"

namespace weft::testing {
namespace {

using ::testing::Contains;
using ::testing::IsEmpty;
using ::testing::Not;

CompileOptions onEight() {
  CompileOptions request;
  request.mode = Mode::kAuto;
  request.devices = 8;
  return request;
}

std::vector<std::string> neighbors(const CompileOptions& request, const std::string& mesh, int64_t micro) {
  const GraphBuilder program = chainProgram({.layers = 2, .rows = 16, .width = 16});
  const Sketch sketch = {firstRequest(request, mesh, micro, true), {1, 1, mesh}, {}, {}};
  std::vector<std::string> words;
  for (const Sketch& each : neighborsOf(sketch, program.graph, request)) {
    const CompileOptions& closed = each.request;
    EXPECT_EQ(closed.mesh, each.grid.mesh);
    words.push_back(absl::StrCat(closed.mesh, " micro ", closed.microBatches(), " zero ", closed.zeroLevel(),
                                 closed.regather ? " regather" : ""));
  }
  return words;
}

TEST(NeighborPlans, DifferInOneDecision) {
  const std::vector<std::string> found = neighbors(onEight(), "dp=2,tp=4", 2);
  for (const char* near : {"dp=4,tp=2 micro 2 zero 1", "dp=1,tp=8 micro 2 zero 0", "dp=2,tp=4 micro 1 zero 1",
                           "dp=2,tp=4 micro 4 zero 1", "dp=2,tp=4 micro 2 zero 0", "dp=2,tp=4 micro 2 zero 2",
                           "dp=2,tp=4 micro 2 zero 3", "dp=2,tp=4 micro 2 zero 3 regather"}) {
    EXPECT_THAT(found, Contains(near));
  }
  EXPECT_THAT(found, Not(Contains("dp=8,tp=1 micro 2 zero 1"))) << "four times as large";
  EXPECT_THAT(found, Not(Contains("dp=2,tp=4 micro 2 zero 1"))) << "itself";
}

TEST(NeighborPlans, HaveAsManyMicroBatchesAsThereAreRowsFor) {
  EXPECT_THAT(neighbors(onEight(), "dp=2,tp=4", 8), Contains("dp=4,tp=2 micro 4 zero 1"));
}

TEST(NeighborPlans, KeepWhatTheUserSays) {
  CompileOptions request = onEight();
  request.mesh = "dp=2,tp=4";
  request.micro = 2;
  request.zero = 1;
  EXPECT_THAT(neighbors(request, "dp=2,tp=4", 2), IsEmpty());
}

}  // namespace
}  // namespace weft::testing
