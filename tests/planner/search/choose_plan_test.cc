// How many sketches of a long program are predicted, and what is tried of the best of a short one.
#include "planner/search/choose_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "planner/search/pipeline_shape.h"
#include "planner/search/plan.h"
#include "tests/planner/search/chain_program.h"

namespace weft::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// More than 2000 operators, so a long one; and so many that six predictions are the rule.
constexpr int64_t kLayers = 500;

// What a prediction says: a plan that fits and takes so long.
Attempt attemptOf(const CompileOptions& closed, Picoseconds time) {
  Attempt made;
  made.time = time;
  made.peakBytes = 1'000'000;
  made.fits = true;
  made.decisions.mesh = *Mesh::parse(closed.mesh);
  return made;
}

absl::StatusOr<ClosedRequest> chosenBy(const Predict& predict, const ProgramGraph& graph,
                                       const CompileOptions& request) {
  PlanningMemo memo;
  SearchMemory memory;
  absl::StatusOr<ClosedRequest> chosen = choosePlan(graphForAll(graph), request, predict, {memo, memory});
  EXPECT_TRUE(chosen.ok()) << chosen.status();
  return chosen;
}

// Of all predictions the same: how often one is asked for.
struct Asked {
  int64_t usual = 0;
  int64_t beside = 0;  // with unlike meshes or axes in another order
  // Of plans that differ in their schedule only: the schedules.
  std::map<std::tuple<std::string, int64_t, int64_t, int>, std::set<std::string>> schedules;
};

Asked predictionsWhereAllTake(Picoseconds time, const std::string& machine = "", const std::string& schedule = "1f1b") {
  const ProgramGraph graph = chainProgram({.layers = kLayers, .rows = 64, .width = 64}).graph;
  CompileOptions request;
  request.mode = Mode::kAuto;
  request.devices = 8;
  request.machine = machine;
  request.schedule = schedule;
  Asked asked;
  const Predict predict = [&](const ProgramGraph& staged, const CompileOptions& closed, std::optional<double>,
                              Picoseconds) -> absl::StatusOr<Attempt> {
    ++(closed.mesh.rfind("dp", 0) == 0 ? asked.usual : asked.beside);
    asked.schedules[{closed.mesh, closed.microBatches(), closed.virtualStages, closed.zeroLevel()}].insert(
        closed.schedule);
    EXPECT_EQ(24000 / staged.operators.size(), 6U);
    return attemptOf(closed, time);
  };
  EXPECT_TRUE(chosenBy(predict, graph, request).ok());
  return asked;
}

TEST(ChoosePlan, WhatIsAsShortAsExpectedIsTaken) {
  EXPECT_EQ(predictionsWhereAllTake(1).usual, 1);
}

TEST(ChoosePlan, AsksMoreWhereNoneIsAsShortAsExpected) {
  EXPECT_EQ(predictionsWhereAllTake(1'000'000'000'000'000).usual, 18);
}

// On nodes of two most meshes may have their axes in either order.
TEST(ChoosePlan, OtherOrdersOfAxesTakeThePlaceOfNone) {
  const Asked asked = predictionsWhereAllTake(1'000'000'000'000'000,
                                              "devices_per_node = 2\nlink_bandwidth = 1e12\nlink_latency = 1e-7\n"
                                              "network_bandwidth = 1e10\nnetwork_latency = 1e-7");
  EXPECT_EQ(asked.usual, 18);
  EXPECT_EQ(asked.beside, 2);
}

// The first of all that take as long is taken; its schedule may hold more than another.
TEST(ChoosePlan, WhereTheBestTakesLongerThanExpectedAllItsSchedulesAreTried) {
  const Asked asked = predictionsWhereAllTake(1'000'000'000'000'000, "", "auto");
  const auto hasAll = [](const auto& entry) {
    const auto& [mesh, micro, virtualStages, zero] = entry.first;
    return virtualStages > 0 && entry.second.size() == kindsFor({}, virtualStages).size();
  };
  EXPECT_TRUE(std::any_of(asked.schedules.begin(), asked.schedules.end(), hasAll));
  EXPECT_EQ(predictionsWhereAllTake(1, "", "auto").usual, 1);
}

// Of a short program the one sketch that is predicted takes longer than with another number of micro-batches.
TEST(ChoosePlan, TheBestIsHeldAgainstItsNeighbors) {
  const ProgramGraph graph = chainProgram({.layers = 2, .rows = 64, .width = 64}).graph;
  CompileOptions request = {.mode = Mode::kAuto, .mesh = "dp=1,tp=4"};
  std::optional<int64_t> first;
  const Predict predict = [&](const ProgramGraph&, const CompileOptions& closed, std::optional<double>,
                              Picoseconds) -> absl::StatusOr<Attempt> {
    first = first.value_or(closed.microBatches());
    return attemptOf(closed, closed.microBatches() == 2 * *first ? 9 : 10);
  };
  const absl::StatusOr<ClosedRequest> chosen = chosenBy(predict, graph, request);
  ASSERT_TRUE(chosen.ok()) << chosen.status();
  EXPECT_EQ(chosen->request.microBatches(), 2 * *first);
}

// The best plan gathers in each call, and takes less time with that part of the memory for a bucket of them.
TEST(ChoosePlan, GathersInEachCallAreJoined) {
  const ProgramGraph graph = chainProgram({.layers = 2, .rows = 64, .width = 64}).graph;
  constexpr int64_t kLimit = int64_t{1} << 30;
  const auto chosenWhere = [&](int64_t shortest, GatherPolicy gather, CompileOptions request, int64_t& most) {
    const Predict predict = [&](const ProgramGraph&, const CompileOptions& closed, std::optional<double>,
                                Picoseconds) -> absl::StatusOr<Attempt> {
      most = std::max(most, closed.gatherBucket);
      Attempt made = attemptOf(closed, closed.gatherBucket == shortest ? 9 : 10);
      made.decisions.arguments.push_back({.name = "w0", .gather = gather});
      return made;
    };
    const absl::StatusOr<ClosedRequest> chosen = chosenBy(predict, graph, request);
    return chosen.ok() ? chosen->request.gatherBucket : -1;
  };
  const CompileOptions open = {.mode = Mode::kAuto, .mesh = "dp=4", .memoryLimit = kLimit};
  int64_t most = 0;
  EXPECT_EQ(chosenWhere(kLimit / 32, GatherPolicy::kEachCall, open, most), kLimit / 32);
  EXPECT_EQ(chosenWhere(kLimit / 128, GatherPolicy::kEachCall, open, most), kLimit / 128);
  EXPECT_EQ(chosenWhere(0, GatherPolicy::kEachCall, open, most), 0) << "no shorter";
  EXPECT_EQ(std::exchange(most, 0), kLimit / 32);
  EXPECT_EQ(chosenWhere(kLimit / 32, GatherPolicy::kOncePerStep, open, most), 0);
  CompileOptions unlimited = open;
  unlimited.memoryLimit = 0;
  EXPECT_EQ(chosenWhere(kLimit / 32, GatherPolicy::kEachCall, unlimited, most), 0);
  CompileOptions without = open;
  without.without = {Freedom::kGathers};
  EXPECT_EQ(chosenWhere(kLimit / 32, GatherPolicy::kEachCall, without, most), 0);
  EXPECT_EQ(most, 0) << "not asked for";
  CompileOptions pinned = open;
  pinned.gatherBucket = 4096;
  EXPECT_EQ(chosenWhere(kLimit / 32, GatherPolicy::kEachCall, pinned, most), 4096);
  EXPECT_EQ(most, 4096);
}

// A sketch of one stage and a neighbor of the best may be the same plan.
TEST(ChoosePlan, APlanOfOneStageIsPredictedOnce) {
  const ProgramGraph graph = chainProgram({.layers = 40, .rows = 64, .width = 64}).graph;
  ASSERT_GT(graph.operators.size(), kOperatorsOfTiny);
  const CompileOptions request = {.mode = Mode::kAuto, .devices = 8, .maxStages = 1};
  std::map<std::tuple<std::string, int64_t, int, bool, Freedoms>, int> asked;
  const Predict predict = [&](const ProgramGraph&, const CompileOptions& closed, std::optional<double>,
                              Picoseconds) -> absl::StatusOr<Attempt> {
    ++asked[{closed.mesh, closed.microBatches(), closed.zeroLevel(), closed.regather, closed.without}];
    return attemptOf(closed, 1'000'000'000'000 + (closed.microBatches() + 3 * closed.zeroLevel()) % 7);
  };
  ASSERT_TRUE(chosenBy(predict, graph, request).ok());
  EXPECT_GT(asked.size(), 5);
  for (const auto& [plan, times] : asked) {
    EXPECT_EQ(times, 1) << std::get<0>(plan) << ", micro " << std::get<1>(plan) << ", zero " << std::get<2>(plan);
  }
}

// All pipelines take as long; with splits that were decided under a price of memory they take less.
TEST(ChoosePlan, PipelinesAreTriedWithSplitsUnderAPriceOfMemory) {
  const ProgramGraph graph = chainProgram({.layers = 40, .rows = 64, .width = 64}).graph;
  for (const Freedoms& without : {Freedoms{}, Freedoms{Freedom::kMemoryPrices}}) {
    const CompileOptions request = {.mode = Mode::kAuto, .mesh = "dp=2", .devices = 4, .without = without};
    int priced = 0;
    const Predict predict = [&](const ProgramGraph&, const CompileOptions& closed, std::optional<double> bytePrice,
                                Picoseconds) -> absl::StatusOr<Attempt> {
      priced += bytePrice ? 1 : 0;
      return attemptOf(closed, bytePrice ? 800'000'000'000 : 1'000'000'000'000);
    };
    const absl::StatusOr<ClosedRequest> chosen = chosenBy(predict, graph, request);
    ASSERT_TRUE(chosen.ok()) << chosen.status();
    EXPECT_EQ(chosen->attempt.time, without.empty() ? 800'000'000'000 : 1'000'000'000'000);
    EXPECT_EQ(chosen->bytePrice.has_value(), without.empty());
    EXPECT_EQ(priced > 0, without.empty());
  }
}

// Each of what is tried of the best alone makes it shorter, and the record tells all of it.
TEST(ChoosePlan, WhatWasChangedAfterItWasFoundIsNoted) {
  const ProgramGraph graph = chainProgram({.layers = 2, .rows = 64, .width = 64}).graph;
  const CompileOptions request = {.mode = Mode::kAuto, .mesh = "dp=2,tp=2"};
  const Predict predict = [&](const ProgramGraph& staged, const CompileOptions& closed, std::optional<double>,
                              Picoseconds) -> absl::StatusOr<Attempt> {
    const auto isSearched = [](const GraphOperator& op) { return op.strategy && op.strategy->isSearched; };
    const auto changed = std::ranges::count_if(staged.operators, isSearched);
    Attempt made =
        attemptOf(closed, 1000 - (closed.may(Freedom::kBatchAxes) ? 100 : 0) - std::min<int64_t>(changed, 2));
    for (const GraphOperator& op : staged.operators) {
      made.decisions.operators.push_back({.id = op.id});
    }
    return made;
  };
  const absl::StatusOr<ClosedRequest> chosen = chosenBy(predict, graph, request);
  ASSERT_TRUE(chosen.ok()) << chosen.status();
  EXPECT_EQ(chosen->attempt.time, 898);
  EXPECT_THAT(chosen->attempt.decisions.notes,
              ElementsAre(HasSubstr("axes of the batch"), HasSubstr("splits of single operators: 2 changed"),
                          HasSubstr("mode auto: found ")));
}

// Where each prediction says how long a step may take to be of use. `fits`: does what it is asked for fit?
std::vector<Picoseconds> uselessWhere(const std::function<bool(Picoseconds useless)>& fits) {
  const ProgramGraph graph = chainProgram({.layers = kLayers, .rows = 64, .width = 64}).graph;
  const CompileOptions request = {.mode = Mode::kAuto, .devices = 8, .schedule = "1f1b"};
  std::vector<Picoseconds> all;
  const Predict predict = [&](const ProgramGraph&, const CompileOptions& closed, std::optional<double>,
                              Picoseconds useless) -> absl::StatusOr<Attempt> {
    all.push_back(useless);
    Attempt made = attemptOf(closed, 1'000'000'000'000'000);
    made.fits = fits(useless);
    return made;
  };
  const absl::StatusOr<ClosedRequest> chosen = chosenBy(predict, graph, request);
  EXPECT_TRUE(chosen.ok() && chosen->attempt.fits == fits(kAnyTime));
  return all;
}

TEST(ChoosePlan, WhatTakesAsLongAsAPlanThatFitsIsUseless) {
  std::vector<Picoseconds> useless = uselessWhere([](Picoseconds) { return true; });
  ASSERT_GT(useless.size(), 2);
  EXPECT_EQ(useless.front(), kAnyThatFits);
  EXPECT_EQ(std::set<Picoseconds>(useless.begin() + 1, useless.end()), std::set<Picoseconds>({1'000'000'000'000'000}));
}

// What was given up is predicted again until something fits.
TEST(ChoosePlan, WhereNothingFitsAllIsTried) {
  std::vector<Picoseconds> useless = uselessWhere([](Picoseconds useless) { return useless == kAnyTime; });
  EXPECT_EQ(std::count(useless.begin(), useless.end(), kAnyTime), 1);
  useless = uselessWhere([](Picoseconds) { return false; });
  EXPECT_EQ(std::count(useless.begin(), useless.end(), kAnyTime),
            std::count(useless.begin(), useless.end(), kAnyThatFits));
}

// Parameters that are gathered once do not fit beside what else a rank holds, or leave room for slower plans only. The
// level of ZeRO does not say when they are gathered.
TEST(ChoosePlan, ALevelThatIsGivenLeavesOpenWhenParametersAreGathered) {
  const GraphFor graphs = graphForAll(chainProgram({.layers = 12, .rows = 4096, .width = 4096}).graph);
  CompileOptions given = {
      .mode = Mode::kAuto, .devices = 8, .machine = "a100-80g", .zero = 3, .memoryLimit = 260 << 20};
  const absl::StatusOr<ClosedRequest> found = closeRequest(graphs, given, {});
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_TRUE(found->attempt.fits);
  EXPECT_TRUE(found->request.regather);
  given.without = {Freedom::kGathers};
  const absl::StatusOr<ClosedRequest> once = closeRequest(graphs, given, {});
  ASSERT_TRUE(once.ok()) << once.status();
  EXPECT_FALSE(once->request.regather);
  EXPECT_TRUE(isBetter(found->attempt, once->attempt));
}

}  // namespace
}  // namespace weft::testing
