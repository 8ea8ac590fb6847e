// Each freedom taken from mode auto: the planner keeps to it, and what that costs is what it says.
#include "planner/explain/freedom_prices.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "planner/schedule/generate.h"
#include "planner/search/plan_space.h"
#include "planner/stage_table.h"
#include "tests/planner/search/chain_program.h"

namespace weft::testing {
namespace {

using ::testing::IsEmpty;

GraphBuilder program() {
  return chainProgram({.layers = 6, .rows = 64, .width = 64});
}

CompileOptions onFour() {
  CompileOptions options;
  options.mode = Mode::kAuto;
  options.devices = 4;
  return options;
}

ClosedRequest closed(const CompileOptions& request) {
  absl::StatusOr<ClosedRequest> made = closeRequest(graphForAll(program().graph), request, {});
  EXPECT_TRUE(made.ok()) << made.status();
  return *std::move(made);
}

Decisions without(Freedom freedom, CompileOptions request = onFour()) {
  request.without = {freedom};
  return closed(request).attempt.decisions;
}

// Asks for two submeshes, so that there is a schedule.
CompileOptions staged() {
  CompileOptions request = onFour();
  request.mesh = "dp=2";
  request.micro = 4;
  return request;
}

TEST(Freedoms, PinsThatSayTheSame) {
  CompileOptions request = onFour();
  request.without = {Freedom::kRecompute, Freedom::kZero, Freedom::kPipeline, Freedom::kVirtualStages,
                     Freedom::kOffload};
  request.offload = Offload::kAuto;
  const CompileOptions pinned = withFreedomsPinned(request);
  EXPECT_EQ(pinned.recompute, "none");
  EXPECT_EQ(pinned.zeroLevel(), 0);
  EXPECT_EQ(pinned.maxStages, 1);
  EXPECT_EQ(pinned.virtualStages, 1);
  EXPECT_EQ(pinned.offload, Offload::kNone);

  request.recompute = "full";
  request.zero = 2;
  request.schedule = "interleaved";
  const CompileOptions said = withFreedomsPinned(request);
  EXPECT_EQ(said.recompute, "full") << "what the user says stays";
  EXPECT_EQ(said.zeroLevel(), 2);
  EXPECT_EQ(said.virtualStages, 0);
  request.offload = Offload::kState;
  EXPECT_EQ(withFreedomsPinned(request).offload, Offload::kState);
}

TEST(Freedoms, ThePlannerKeepsToEach) {
  EXPECT_EQ(without(Freedom::kZero).zero, 0);
  EXPECT_EQ(without(Freedom::kPipeline).schedule.submeshes.size(), 1U);
  EXPECT_EQ(without(Freedom::kVirtualStages, staged()).schedule.virtualStages, 1);
  const Decisions split = without(Freedom::kZeroBubble, staged());
  ASSERT_GT(split.schedule.submeshes.size(), 1U);
  EXPECT_FALSE(schedule::cutsBackward(*schedule::parseKind(split.schedule.kind))) << split.schedule.kind;
  EXPECT_EQ(without(Freedom::kTensorSplits).mesh.ofRanks().axes().size(), 1U) << "the batch's axis alone";
  const Decisions gathered = without(Freedom::kGathers);
  for (const OperatorDecision& op : gathered.operators) {
    EXPECT_NE(op.gather, GatherPolicy::kEachCall);
  }
}

// Six layers in four stages of one device: 1, 2, 1, 2 layers, whatever head and loss add.
TEST(Freedoms, StagesOfAsManyBlocksAsCanBe) {
  CompileOptions request = onFour();
  request.mesh = "dp=1";
  request.micro = 4;
  request.virtualStages = 1;
  request.without = {Freedom::kUnevenStages};
  const ClosedRequest even = closed(request);
  std::vector<int64_t> layers(4, 0);
  for (const GraphOperator& op : even.graph->operators) {
    if (op.facts.kind == "matmul" && op.phase == Phase::kForward) {
      ++layers.at(op.userStage.value_or(0));
    }
  }
  const auto [least, most] = std::minmax_element(layers.begin(), layers.end());
  EXPECT_LE(*most - *least, 1);
}

// The shortest step of one stage is on another mesh than the shortest of all.
TEST(Freedoms, LayoutsBeforeAllElse) {
  CompileOptions alone = onFour();
  alone.without = {Freedom::kPipeline, Freedom::kZero, Freedom::kRecompute, Freedom::kMemoryPrices};
  alone.micro = 1;
  const std::string shortest = closed(alone).request.mesh;
  const ClosedRequest open = closed(onFour());
  EXPECT_NE(open.request.mesh, shortest);
  CompileOptions first = onFour();
  first.without = {Freedom::kTogether};
  const ClosedRequest found = closed(first);
  EXPECT_EQ(found.request.mesh, shortest);
  EXPECT_GT(found.attempt.time, open.attempt.time);
  first.mesh = "dp=2,tp=2";
  EXPECT_EQ(closed(first).request.mesh, "dp=2,tp=2") << "the user's mesh stays";
  first.mesh = "dp=2";
  first.micro = 4;
  EXPECT_EQ(closed(first).request.mesh, "dp=2") << "also where it is for two submeshes";
}

TEST(Freedoms, WhatOneCostsIsWhatThePlanWithoutItTakesLonger) {
  const CompileOptions request = onFour();
  const ClosedRequest plan = closed(request);
  SearchMemory memory;
  const std::vector<PricedPlan> prices = freedomPricesOf(graphForAll(program().graph), request, plan, memory);
  ASSERT_EQ(prices.size(), allFreedoms().size() - 1) << "offload is not asked for";
  for (const PricedPlan& price : prices) {
    const Freedoms taken = *parseFreedoms(price.what);
    CompileOptions changed = request;
    changed.without = taken;
    EXPECT_DOUBLE_EQ(price.seconds, inSeconds(closed(changed).attempt.time)) << price.what;
    EXPECT_DOUBLE_EQ(price.costSeconds, price.seconds - inSeconds(plan.attempt.time)) << price.what;
    EXPECT_GE(price.costSeconds, 0) << price.what;
  }
  CompileOptions semi = request;
  semi.mode = Mode::kSemi;
  EXPECT_THAT(freedomPricesOf(graphForAll(program().graph), semi, plan, memory), IsEmpty());
}

// The search of the plan and those of its prices ask what blocks need once.
TEST(Freedoms, PricesKnowWhatTheSearchOfThePlanFound) {
  const GraphFor graphs = graphForAll(program().graph);
  SearchMemory shared, own;
  const absl::StatusOr<ClosedRequest> plan = closeRequest(graphs, onFour(), {}, &shared);
  ASSERT_TRUE(plan.ok()) << plan.status();
  const size_t before = shared.blocks.size();
  for (const Freedom freedom : {Freedom::kGathers, Freedom::kZeroClasses}) {
    CompileOptions changed = onFour();
    changed.without = {freedom};
    ASSERT_TRUE(closeRequest(graphs, changed, {}, &shared).ok());
    EXPECT_EQ(shared.blocks.size(), before) << "blocks do not know " << freedomName(freedom);
  }
  const std::vector<PricedPlan> prices = freedomPricesOf(graphs, onFour(), *plan, shared);
  const std::vector<PricedPlan> alone = freedomPricesOf(graphs, onFour(), *plan, own);
  EXPECT_LT(shared.blocks.size() - before, own.blocks.size());
  ASSERT_EQ(prices.size(), alone.size());
  for (size_t i = 0; i < prices.size(); ++i) {
    EXPECT_DOUBLE_EQ(prices[i].seconds, alone[i].seconds) << prices[i].what;
  }
}

// Its price is that of the request without it.
TEST(Freedoms, OverlapHasAPriceWhereItIsAskedFor) {
  CompileOptions request = onFour();
  request.overlap = true;
  SearchMemory memory;
  const GraphFor graphs = graphForAll(program().graph);
  const std::vector<PricedPlan> prices = freedomPricesOf(graphs, request, closed(request), memory);
  ASSERT_EQ(prices.size(), allFreedoms().size()) << "offload is not asked for";
  EXPECT_EQ(prices.back().what, "overlap");
  EXPECT_DOUBLE_EQ(prices.back().seconds, inSeconds(closed(onFour()).attempt.time));
}

TEST(Freedoms, KindsThatSplitTheBackwardPassHaveTablesThatDo) {
  for (const schedule::Kind kind : schedule::allKinds()) {
    const bool loops = kind == schedule::Kind::kInterleaved || kind == schedule::Kind::kBreadthFirst ||
                       kind == schedule::Kind::kZbInterleaved;
    const absl::StatusOr<schedule::Table> table = schedule::generate(
        {.kind = kind, .ranks = 2, .virtualStages = loops ? 2 : schedule::defaultVirtualStages(kind), .micros = 8});
    ASSERT_TRUE(table.ok()) << table.status();
    EXPECT_EQ(splitsBackward(*table), schedule::cutsBackward(kind)) << schedule::kindName(kind);
  }
}

}  // namespace
}  // namespace weft::testing
