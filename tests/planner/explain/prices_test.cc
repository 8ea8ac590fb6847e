// Prices of a small program's plan: each is the plan that the planner makes when it is asked so.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "planner/check_request.h"
#include "planner/explain/frontier.h"
#include "planner/explain/prices_json.h"
#include "planner/explain/ways_to_fit.h"
#include "tests/planner/search/chain_program.h"

namespace weft::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

struct Priced {
  GraphFor graphs;
  CompileOptions request;
  ClosedRequest plan;
  PlanPrices prices;

  double seconds() const { return inSeconds(plan.attempt.time); }

  // The line about `what`; one of no time where there is none.
  static PricedPlan line(const std::vector<PricedPlan>& lines, const std::string& what) {
    const auto found =
        std::find_if(lines.begin(), lines.end(), [&](const PricedPlan& each) { return each.what.rfind(what, 0) == 0; });
    return found == lines.end() ? PricedPlan() : *found;
  }
};

Priced priced(const GraphBuilder& program, const CompileOptions& request) {
  Priced made{graphForAll(program.graph), request, {}, {}};
  absl::StatusOr<ClosedRequest> plan = closeRequest(made.graphs, request, {});
  EXPECT_TRUE(plan.ok()) << plan.status();
  made.plan = *std::move(plan);
  SearchMemory memory;
  absl::StatusOr<PlanPrices> prices = pricesOf(made.graphs, request, made.plan, memory);
  EXPECT_TRUE(prices.ok()) << prices.status();
  made.prices = *std::move(prices);
  return made;
}

GraphBuilder program() {
  return chainProgram({.layers = 2, .rows = 32, .width = 32});
}

CompileOptions autoOn(int64_t devices) {
  CompileOptions options;
  options.mode = Mode::kAuto;
  options.devices = devices;
  return options;
}

TEST(Prices, ARunnerUpIsThePlanWithOneDecisionChanged) {
  const Priced made = priced(program(), autoOn(2));
  for (const PricedPlan& line : made.prices.runnerUps) {
    EXPECT_NEAR(line.costSeconds, line.seconds - made.seconds(), 1e-15) << line.what;
    EXPECT_NE(line.chosen, line.other) << line.what;
  }
  const PricedPlan micro = Priced::line(made.prices.runnerUps, "micro-batches");
  CompileOptions changed = made.plan.request;
  changed.micro = std::stoll(micro.other);
  const absl::StatusOr<Attempt> other = predictProgram(*made.plan.graph, changed, {});
  ASSERT_TRUE(other.ok()) << other.status();
  EXPECT_DOUBLE_EQ(micro.seconds, inSeconds(other->time));
  EXPECT_EQ(micro.peakBytes, other->peakBytes);
  EXPECT_NE(Priced::line(made.prices.runnerUps, "ZeRO level").seconds, 0);
  EXPECT_THAT(made.prices.pins, IsEmpty());
}

// What a user insists on costs what the plan takes longer than the one without it.
TEST(Prices, APinCostsWhatThePlanTakesLonger) {
  CompileOptions request = autoOn(2);
  request.micro = 8;
  request.zero = 1;
  const Priced made = priced(program(), request);
  const PricedPlan micro = Priced::line(made.prices.pins, "micro-batches 8");
  CompileOptions open = request;
  open.micro.reset();
  const absl::StatusOr<ClosedRequest> without = closeRequest(made.graphs, open, {});
  ASSERT_TRUE(without.ok()) << without.status();
  EXPECT_DOUBLE_EQ(micro.seconds, inSeconds(without->attempt.time));
  EXPECT_LT(micro.costSeconds, 0) << "launches of eight micro-batches are not worth it";
  EXPECT_THAT(micro.other, HasSubstr("micro 1"));
  EXPECT_LE(Priced::line(made.prices.pins, "ZeRO level 1").costSeconds, 0);
}

TEST(Frontier, HasNoPointThatAnotherTakesLessThanWithLessMemory) {
  std::vector<FrontierPoint> points = {{0, 100, 2.0, "itself"}};
  addPoint({90, 85, 2.5, "a"}, points);
  addPoint({80, 75, 2.75, "b"}, points);
  addPoint({70, 65, 2.5, "c"}, points);
  addPoint({60, 55, 1.5, "d"}, points);
  addPoint({50, 45, 3.0, "e"}, points);
  std::vector<std::string> plans;
  for (const FrontierPoint& point : points) {
    plans.push_back(point.plan);
  }
  EXPECT_EQ(plans, (std::vector<std::string>{"itself", "d", "e"}));
}

TEST(OtherPlans, AsTextAndBack) {
  OtherPlans plans;
  plans.prices = {
      {{"mesh", "dp=2", "tp=2", 2.5, 100, false, 0.5}}, {}, {{"1 GB more", "", "dp=2", 1.5, 90, true, -0.5}}, 3};
  plans.freedoms = {{"zero", "", "dp=2", 3, 80, true, 0.5}};
  plans.departures = {
      {{"micro-batches 4", "", "dp=2", 2, 100, true, -0.5}}, {"micro-batches 4"}, 2, 5, "tp=2", 2.5, "", 16, false};
  plans.frontier = {{0, 100, 2.0, "dp=2"}, {60, 50, 3.0, "dp=2, ZeRO 3"}};
  const std::string text = otherPlansText(plans);
  OtherPlans again = parseOtherPlans(text);
  again.prices.asked = 1;
  EXPECT_EQ(otherPlansText(again), text);
  plans.departures->refusal = "they contradict each other";
  EXPECT_EQ(parseOtherPlans(otherPlansText(plans)).departures->refusal, "they contradict each other");
  EXPECT_EQ(otherPlansText({}), "");
  for (const char* wrong : {"", "3", "[]", "{\"pins\": 3}", "{\"pins\": [3, {\"what\": 3, \"fits\": 1}]}",
                            "{\"frontier\": {\"plan\": {}}}", "{\"departed\": {\"from\": [3, {}]}}"}) {
    EXPECT_EQ(parseOtherPlans(wrong).prices.runnerUps.size(), 0U) << wrong;
  }
}

TEST(Prices, AStrategyOfTheProgramIsAPin) {
  GraphBuilder pinned = program();
  UserStrategy strategy;
  strategy.byName = true;
  strategy.inNames = {{"", "tp"}, {"tp", ""}};
  strategy.line = {"model.cc", 7, 1};
  pinned.graph.operators[0].strategy = strategy;
  CompileOptions request = autoOn(2);
  request.mesh = "dp=1,tp=2";
  const Priced made = priced(pinned, request);
  const PricedPlan line = Priced::line(made.prices.pins, "shard of op0 (model.cc:7)");
  EXPECT_GT(line.seconds, 0);
  EXPECT_LE(line.costSeconds, 0);
  EXPECT_GT(Priced::line(made.prices.pins, "mesh dp=1,tp=2").seconds, 0);
  EXPECT_EQ(Priced::line(made.prices.runnerUps, "mesh").other, "dp=2,tp=1");
}

// The least that a plan of so many devices needs, as far as the search finds.
ClosedRequest leastOf(const GraphFor& graphs, CompileOptions request) {
  request.memoryLimit = 1;
  absl::StatusOr<ClosedRequest> least = closeRequest(graphs, request, {});
  EXPECT_TRUE(least.ok()) << least.status();
  return *std::move(least);
}

TEST(WaysToFit, WordsThatCouldBeDropped) {
  const GraphFor graphs = graphForAll(chainProgram({.layers = 1, .rows = 64, .width = 16}).graph);
  CompileOptions request = autoOn(2);
  request.maxStages = 1;
  request.micro = 1;
  request.recompute = "none";
  request.memoryLimit = leastOf(graphs, request).attempt.peakBytes - 1;
  const ClosedRequest tight = *closeRequest(graphs, request, {});
  ASSERT_FALSE(tight.attempt.fits);
  const std::vector<WayToFit> ways = waysToFit(graphs, request, tight);
  ASSERT_FALSE(ways.empty());
  EXPECT_EQ(ways[0].what, "without micro-batches 1");
  for (const WayToFit& way : ways) {
    EXPECT_LE(way.peakBytes, request.memoryLimit) << way.what;
  }
  const std::string text =
      doesNotFitText(*memoryLimitsOf(request), tight.attempt.decisions, tight.attempt.peakBytes, ways);
  EXPECT_THAT(text, HasSubstr(absl::StrCat("no plan fits in ", request.memoryLimit, " bytes")));
  EXPECT_THAT(text, HasSubstr(absl::StrCat("needs ", tight.attempt.peakBytes, " (")));
  EXPECT_THAT(text, HasSubstr(absl::StrCat("or plan without micro-batches 1: ", ways[0].peakBytes, " (")));
}

TEST(WaysToFit, MoreDevices) {
  const GraphFor graphs = graphForAll(chainProgram({.layers = 1, .rows = 8, .width = 64}).graph);
  CompileOptions request = autoOn(2);
  const int64_t onFour = leastOf(graphs, autoOn(4)).attempt.peakBytes;
  const ClosedRequest least = leastOf(graphs, request);
  ASSERT_LT(onFour, least.attempt.peakBytes);
  request.memoryLimit = onFour;
  const std::vector<WayToFit> ways = waysToFit(graphs, request, least);
  ASSERT_EQ(ways.size(), 1U);
  EXPECT_EQ(ways[0].what, "with 4 devices");
  EXPECT_LE(ways[0].peakBytes, onFour);
  request.mesh = "dp=2";
  EXPECT_THAT(waysToFit(graphs, request, least),
              ::testing::Each(::testing::Field(&WayToFit::what, HasSubstr("without mesh"))));
}

TEST(Prices, MarginsOfMemoryNetworkAndDevices) {
  const Priced open = priced(program(), autoOn(2));
  EXPECT_EQ(Priced::line(open.prices.margins, "1 GB more").seconds, 0) << "there is no limit";
  EXPECT_EQ(Priced::line(open.prices.margins, "twice the network").seconds, 0) << "there is no network";
  EXPECT_GT(Priced::line(open.prices.margins, "1 device more").seconds, 0);

  CompileOptions tight = autoOn(2);
  tight.memoryLimit = open.plan.attempt.peakBytes * 8 / 10;
  tight.machine = "devices_per_node = 1\nnetwork_bandwidth = 1e9\nnetwork_latency = 1e-6\n";
  const Priced made = priced(program(), tight);
  tight.memoryLimit = 0;
  const absl::StatusOr<ClosedRequest> roomy = closeRequest(made.graphs, tight, {});
  ASSERT_TRUE(roomy.ok()) << roomy.status();
  const PricedPlan memory = Priced::line(made.prices.margins, "1 GB more");
  EXPECT_DOUBLE_EQ(memory.seconds, inSeconds(roomy->attempt.time));
  EXPECT_LT(memory.costSeconds, 0);
  EXPECT_LT(Priced::line(made.prices.margins, "twice the network").costSeconds, 0);
}

}  // namespace
}  // namespace weft::testing
