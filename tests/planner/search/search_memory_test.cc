#include "planner/search/search_memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <tuple>

#include "planner/search/plan.h"
#include "tests/planner/search/chain_program.h"

namespace weft::testing {
namespace {

CompileOptions openRequest() {
  return {.mode = Mode::kAuto, .devices = 8, .machine = "a100-80g"};
}

ProgramGraph programOf(int64_t layers, int64_t width) {
  return chainProgram({.layers = layers, .rows = 4096, .width = width}).graph;
}

ClosedRequest planOf(const GraphFor& graphs, const CompileOptions& request, SearchMemory* memory) {
  absl::StatusOr<ClosedRequest> found = closeRequest(graphs, request, {}, memory);
  EXPECT_TRUE(found.ok()) << found.status();
  return *std::move(found);
}

// Beside notes, which count the sketches.
std::string textOf(Decisions decisions) {
  decisions.notes.clear();
  return printDecisions(decisions);
}

void expectSame(const ClosedRequest& warm, const ClosedRequest& cold, const std::string& which) {
  EXPECT_EQ(textOf(warm.attempt.decisions), textOf(cold.attempt.decisions)) << which;
  EXPECT_EQ(warm.attempt.time, cold.attempt.time) << which;
  EXPECT_EQ(warm.attempt.peakBytes, cold.attempt.peakBytes) << which;
  EXPECT_TRUE(areSame(warm.request, cold.request)) << which;
}

TEST(SearchMemory, TheSameAgainIsKnownWithoutAsking) {
  for (const int64_t layers : {2, 6}) {
    for (const int64_t width : {256, 8192}) {
      const GraphFor graphs = graphForAll(programOf(layers, width));
      SearchMemory memory;
      const ClosedRequest first = planOf(graphs, openRequest(), &memory);
      const ClosedRequest again = planOf(graphs, openRequest(), &memory);
      EXPECT_GT(first.ticks, 10);
      EXPECT_LE(again.ticks, first.ticks / 4);  // levels of ZeRO of single classes are counted as they are tried
      expectSame(again, first, "again");
      expectSame(first, planOf(graphs, openRequest(), nullptr), "alone");
    }
  }
}

// What a pin leaves has been asked about without it.
TEST(SearchMemory, APinReusesWhatWasAskedWithoutIt) {
  const GraphFor graphs = graphForAll(programOf(6, 8192));
  SearchMemory memory;
  const ClosedRequest open = planOf(graphs, openRequest(), &memory);
  std::vector<CompileOptions> pins(5, openRequest());
  pins[0].zero = 2;
  pins[1].micro = 2;
  pins[2].mesh = "dp=4,tp=2";
  pins[3].maxStages = 1;
  pins[4].memoryLimit = open.attempt.peakBytes * 3 / 4;
  for (size_t i = 0; i < pins.size(); ++i) {
    const ClosedRequest cold = planOf(graphs, pins[i], nullptr);
    const ClosedRequest warm = planOf(graphs, pins[i], &memory);
    expectSame(warm, cold, "pin " + std::to_string(i));
    EXPECT_LT(warm.ticks, cold.ticks) << "pin " << i;
  }
}

// Of every level of ZeRO what was asked about the first. Of a tiny program the splits of single operators would be
// tried anew.
TEST(SearchMemory, AnotherLevelOfZeroIsKnownFromTheFirst) {
  const GraphFor graphs = graphForAll(programOf(40, 8192));
  ASSERT_GT((*graphs(1))->operators.size(), kOperatorsOfTiny);
  // Pipelines are predicted at each level that the best of it does not rule out.
  for (const auto [maxStages, part] : {std::pair(1, 3), std::pair(0, 2)}) {
    CompileOptions request = openRequest();
    request.maxStages = maxStages;
    SearchMemory memory;
    const ClosedRequest open = planOf(graphs, request, &memory);
    for (const int level : {1, 2, 3}) {
      CompileOptions pinned = request;
      pinned.zero = level;
      const ClosedRequest found = planOf(graphs, pinned, &memory);
      EXPECT_LE(found.ticks, open.ticks / part) << level << ": neighbors and stages cut anew are asked about";
      EXPECT_GE(found.attempt.time, open.attempt.time) << level;
    }
  }
}

// Another program, and words that blocks depend on, are other questions.
TEST(SearchMemory, OtherQuestionsAreAskedAnew) {
  SearchMemory memory;
  const GraphFor graphs = graphForAll(programOf(2, 1024));
  planOf(graphs, openRequest(), &memory);
  const GraphFor wider = graphForAll(programOf(2, 2048));
  expectSame(planOf(wider, openRequest(), &memory), planOf(wider, openRequest(), nullptr), "another program");
  std::vector<CompileOptions> changed(3, openRequest());
  changed[0].machine = "h100-80g";
  changed[1].layouts = {{"w0", "[{tp},{}]"}};
  changed[2].zeroOf = {{"w0", 3}};
  for (size_t i = 0; i < changed.size(); ++i) {
    expectSame(planOf(graphs, changed[i], &memory), planOf(graphs, changed[i], nullptr), "change " + std::to_string(i));
  }
}

// A plan that was given up as it takes too long may fit where it may take longer.
TEST(SearchMemory, WhatWasGivenUpIsAskedAgainWhereMoreIsOfUse) {
  SearchQuestion question;
  question.useless = 10;
  KnownAnswers<ClosedRequest> known;
  known.keep(question, ClosedRequest());
  question.useless = 9;
  EXPECT_NE(known.find(question), nullptr);
  question.useless = 11;
  EXPECT_EQ(known.find(question), nullptr);
  ClosedRequest fits;
  fits.attempt.fits = true;
  question.useless = 10;
  question.closed.zero = 1;
  known.keep(question, fits);
  question.useless = kAnyTime;
  EXPECT_NE(known.find(question), nullptr);
}

TEST(SearchMemory, BoundsAreKnownByAllThatTheyDependOn) {
  const auto graph = std::make_shared<const ProgramGraph>(programOf(2, 256));
  const auto other = std::make_shared<const ProgramGraph>(programOf(6, 256));
  const Machine machine = *Machine::parse(*Machine::textOf("a100-80g"));
  Machine faster = machine;
  faster.memoryBandwidth *= 2;
  KnownBounds known;
  for (int again = 0; again < 2; ++again) {
    for (const auto& [program, on, ranks] :
         {std::tuple(graph, machine, 1), {graph, machine, 4}, {other, machine, 1}, {graph, faster, 1}}) {
      const BoundedPlans plans = {.ranks = ranks, .submeshRanks = {ranks}};
      EXPECT_EQ(*known.of(program, on, plans), *leastTime(*program, on, plans));
    }
  }
}

}  // namespace
}  // namespace weft::testing
