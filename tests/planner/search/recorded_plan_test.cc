// A search that begins from a saved record.
#include "planner/search/recorded_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "planner/search/plan.h"
#include "tests/planner/search/chain_program.h"

namespace weft::testing {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

CompileOptions openRequest() {
  return {.mode = Mode::kAuto, .devices = 8, .machine = "a100-80g"};
}

GraphBuilder programOf(int64_t layers, int64_t width) {
  return chainProgram({.layers = layers, .rows = 4096, .width = width});
}

ClosedRequest planOf(const ProgramGraph& graph, const CompileOptions& request) {
  absl::StatusOr<ClosedRequest> found = closeRequest(graphForAll(graph), request, {});
  EXPECT_TRUE(found.ok()) << found.status();
  return *std::move(found);
}

CompileOptions from(const ClosedRequest& plan, CompileOptions request) {
  request.from = printDecisions(plan.attempt.decisions);
  return request;
}

std::string textOf(Decisions decisions) {
  decisions.notes.clear();
  return printDecisions(decisions);
}

std::vector<CompileOptions> pinned() {
  std::vector<CompileOptions> pins(5, openRequest());
  pins[0].zero = 2;
  pins[1].micro = 2;
  pins[2].mesh = "dp=4,tp=2";
  pins[3].maxStages = 1;
  pins[4].without = {Freedom::kTensorSplits};
  return pins;
}

TEST(RecordedPlan, OfTheSameRequestTheSameIsFoundWithFewQuestions) {
  for (const int64_t layers : {2, 6}) {
    for (const int64_t width : {256, 8192}) {
      const ProgramGraph graph = programOf(layers, width).graph;
      const ClosedRequest cold = planOf(graph, openRequest());
      const ClosedRequest warm = planOf(graph, from(cold, openRequest()));
      EXPECT_EQ(textOf(warm.attempt.decisions), textOf(cold.attempt.decisions));
      EXPECT_LE(3 * warm.ticks, 2 * cold.ticks) << layers << " layers " << width << " wide";
      EXPECT_THAT(warm.attempt.decisions.notes, Not(Contains(HasSubstr("dropped"))));
      // Notes do not pile up.
      const ClosedRequest again = planOf(graph, from(warm, openRequest()));
      EXPECT_EQ(textOf(again.attempt.decisions), textOf(cold.attempt.decisions));
      EXPECT_EQ(again.attempt.decisions.notes.size(), warm.attempt.decisions.notes.size());
    }
  }
}

// Operators that a search splits otherwise than others of their kind leave the layers what they are: "full" recomputes
// in the record what it asks for in the program.
TEST(RecordedPlan, ChangedSplitsAreKeptUnderWordsForRecomputation) {
  const ProgramGraph graph = chainProgram({.layers = 4, .rows = 12, .width = 256, .relus = 2}).graph;
  CompileOptions request = openRequest();
  request.machine = "cpu";
  request.micro = 6;
  request.recompute = "full";
  const ClosedRequest cold = planOf(graph, request);
  ASSERT_THAT(cold.attempt.decisions.notes, Contains(HasSubstr("splits of single operators")));
  EXPECT_EQ(textOf(planOf(graph, from(cold, request)).attempt.decisions), textOf(cold.attempt.decisions));
}

// What a record recomputes otherwise than words ask for is not kept.
TEST(RecordedPlan, WordsForRecomputationWinAgainstTheRecord) {
  const ProgramGraph graph = chainProgram({.layers = 4, .rows = 12, .width = 256, .relus = 2}).graph;
  const auto recomputed = [](const ClosedRequest& plan) {
    return std::ranges::count_if(plan.attempt.decisions.operators, [](const auto& op) { return op.recompute; });
  };
  CompileOptions none = openRequest(), full = openRequest();
  none.recompute = "none";
  full.recompute = "full";
  EXPECT_GT(recomputed(planOf(graph, from(planOf(graph, none), full))), 0);
  EXPECT_EQ(recomputed(planOf(graph, from(planOf(graph, full), none))), 0);
}

// A record of a worse plan hides little: fewer sketches are refined beside it.
TEST(RecordedPlan, AWorseRecordGivesAboutWhatIsFoundWithoutIt) {
  const ProgramGraph graph = programOf(6, 8192).graph;
  const ClosedRequest cold = planOf(graph, openRequest());
  for (const CompileOptions& pin : pinned()) {
    const ClosedRequest record = planOf(graph, pin);
    const ClosedRequest warm = planOf(graph, from(record, openRequest()));
    EXPECT_LE(warm.attempt.time, record.attempt.time);
    EXPECT_LE(static_cast<double>(warm.attempt.time), 1.005 * static_cast<double>(cold.attempt.time));
  }
}

// What a pin forbids is dropped and named, the rest leads to what is found without the record, or better.
TEST(RecordedPlan, APinWinsAgainstTheRecord) {
  const ProgramGraph graph = programOf(6, 8192).graph;
  const ClosedRequest record = planOf(graph, openRequest());
  for (const CompileOptions& pin : pinned()) {
    const ClosedRequest cold = planOf(graph, pin);
    const ClosedRequest warm = planOf(graph, from(record, pin));
    EXPECT_LE(warm.attempt.time, cold.attempt.time);
    EXPECT_EQ(warm.request.zeroLevel(), pin.zero.value_or(warm.request.zeroLevel()));
    EXPECT_EQ(warm.request.micro, pin.micro ? pin.micro : warm.request.micro);
    EXPECT_EQ(warm.request.mesh, pin.mesh.empty() ? warm.request.mesh : pin.mesh);
  }
}

std::vector<std::string> notesFrom(const ClosedRequest& record, const ProgramGraph& graph,
                                   const CompileOptions& request) {
  return planOf(graph, from(record, request)).attempt.decisions.notes;
}

TEST(RecordedPlan, WhatIsDroppedIsNamed) {
  const ProgramGraph graph = programOf(4, 8192).graph;
  CompileOptions pins = openRequest();
  pins.mesh = "dp=2,tp=2";
  pins.micro = 4;
  pins.zero = 1;
  pins.schedule = "1f1b";
  const ClosedRequest record = planOf(graph, pins);
  CompileOptions asked = openRequest();
  asked.zero = 2;
  EXPECT_THAT(notesFrom(record, graph, asked), Contains(AllOf(HasSubstr("ZeRO level 1"), HasSubstr("says 2"))));
  asked = openRequest();
  asked.micro = 2;
  EXPECT_THAT(notesFrom(record, graph, asked), Contains(AllOf(HasSubstr("micro-batches 4"), HasSubstr("instead 2"))));
  asked = openRequest();
  asked.schedule = "zb_h1";
  EXPECT_THAT(notesFrom(record, graph, asked), Contains(AllOf(HasSubstr("schedule 1f1b"), HasSubstr("says zb_h1"))));
  asked = openRequest();
  asked.devices = 16;
  EXPECT_THAT(notesFrom(record, graph, asked), Contains(AllOf(HasSubstr("2 x dp=2,tp=2"), HasSubstr("instead 2 x"))));
  asked = openRequest();
  asked.maxStages = 1;
  EXPECT_THAT(notesFrom(record, graph, asked), Contains(HasSubstr("nothing of the record is kept")));
  asked = openRequest();
  asked.memoryLimit = record.attempt.peakBytes / 2;
  EXPECT_THAT(notesFrom(record, graph, asked), Contains(HasSubstr("what is recomputed")));
}

TEST(RecordedPlan, BucketsOfGathersAreThoseOfTheRecord) {
  const auto graph = std::make_shared<const ProgramGraph>(programOf(2, 64).graph);
  CompileOptions pins = openRequest();
  pins.mesh = "dp=8";
  pins.zero = 3;
  pins.regather = true;
  pins.gatherBucket = 4096;
  const Decisions record = planOf(*graph, pins).attempt.decisions;
  EXPECT_EQ(record.gatherBucket, 4096);
  EXPECT_EQ(requestOf(record, openRequest(), Mode::kLayouts).gatherBucket, 4096);
  const absl::StatusOr<BlockProgram> program = BlockProgram::create(graph, openRequest());
  ASSERT_TRUE(program.ok()) << program.status();
  const auto keptBy = [&](const CompileOptions& asked) -> int64_t {
    RecordedPlan before(record, asked);
    EXPECT_TRUE(before.read(*program).ok());
    return before.request() ? before.request()->gatherBucket : -1;
  };
  CompileOptions asked = openRequest();
  EXPECT_EQ(keptBy(asked), 4096);
  asked.gatherBucket = 8192;
  EXPECT_EQ(keptBy(asked), 8192);
  asked.gatherBucket = 0;
  asked.without = {Freedom::kGathers};
  EXPECT_EQ(keptBy(asked), 0);
}

// The record splits otherwise than the layout that the new request asks for.
TEST(RecordedPlan, WordsThatTheRecordDoesNotKeepAreKept) {
  const ProgramGraph graph = programOf(2, 8192).graph;
  const ClosedRequest record = planOf(graph, openRequest());
  for (const std::string layout : {"[{tp},{}]", "[{},{tp}]", "[{},{}]"}) {
    CompileOptions asked = openRequest();
    asked.layouts = {{"w0", layout}};
    const ClosedRequest cold = planOf(graph, asked);
    const ClosedRequest warm = planOf(graph, from(record, asked));
    EXPECT_LE(warm.attempt.time, cold.attempt.time) << layout;
    const Decisions& made = warm.attempt.decisions;
    EXPECT_EQ(
        made.arguments[1].layout.print(made.mesh).find("tp") != std::string::npos,
        cold.attempt.decisions.arguments[1].layout.print(cold.attempt.decisions.mesh).find("tp") != std::string::npos)
        << layout;
  }
}

TEST(RecordedPlan, RecordsOfOtherProgramsAreRefused) {
  const ClosedRequest record = planOf(programOf(2, 256).graph, openRequest());
  const auto refusal = [&](const ProgramGraph& graph, CompileOptions request) {
    return std::string(closeRequest(graphForAll(graph), request, {}).status().message());
  };
  EXPECT_THAT(refusal(programOf(3, 256).graph, from(record, openRequest())),
              AllOf(HasSubstr("another program"), HasSubstr("'w2' here")));
  ProgramGraph renamed = programOf(2, 256).graph;
  renamed.operators[1].name = "other";
  EXPECT_THAT(refusal(renamed, from(record, openRequest())), HasSubstr("'op1' in the record and 'other' here"));
  CompileOptions broken = openRequest();
  broken.from = "{}";
  EXPECT_THAT(refusal(programOf(2, 256).graph, broken), HasSubstr("from: "));
}

}  // namespace
}  // namespace weft::testing
