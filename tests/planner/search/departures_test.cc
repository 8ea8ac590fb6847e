// Plans within a few departures from the user's words: each is the best of those that the planner makes without them.
#include "planner/search/departures.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "planner/search/plan.h"
#include "tests/planner/search/chain_program.h"

namespace weft::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

CompileOptions autoOn(int64_t devices) {
  CompileOptions options;
  options.mode = Mode::kAuto;
  options.devices = devices;
  return options;
}

GraphBuilder program() {
  return chainProgram({.layers = 2, .rows = 32, .width = 32});
}

// A mesh, micro-batches and a schedule that are each worse than what would be found, for two layers.
CompileOptions stubborn() {
  CompileOptions request = autoOn(2);
  request.mesh = "dp=1,tp=2";
  request.micro = 8;
  request.zero = 1;
  return request;
}

DepartedPlan departed(const GraphBuilder& program, CompileOptions request, int64_t departures) {
  request.departures = departures;
  absl::StatusOr<DepartedPlan> made = departedPlan(graphForAll(program.graph), request, {});
  EXPECT_TRUE(made.ok()) << made.status();
  return *std::move(made);
}

Picoseconds timeOf(const GraphBuilder& program, const CompileOptions& request) {
  const absl::StatusOr<ClosedRequest> closed = closeRequest(graphForAll(program.graph), request, {});
  EXPECT_TRUE(closed.ok()) << closed.status();
  return closed.ok() ? closed->attempt.time : 0;
}

Picoseconds timeWithout(bool mesh, bool micro, bool zero) {
  CompileOptions request = stubborn();
  request.mesh = mesh ? "" : request.mesh;
  request.micro = micro ? std::nullopt : request.micro;
  request.zero = zero ? std::nullopt : request.zero;
  return timeOf(program(), request);
}

TEST(Departures, OneIsTheBestOfAllWordsLeftOpenAlone) {
  const DepartedPlan made = departed(program(), stubborn(), 1);
  EXPECT_THAT(made.words, ElementsAre("mesh dp=1,tp=2", "micro-batches 8", "ZeRO level 1"));
  ASSERT_EQ(made.alone.size(), 3U);
  EXPECT_EQ(made.alone[0].second.time, timeWithout(true, false, false));
  EXPECT_EQ(made.alone[1].second.time, timeWithout(false, true, false));
  EXPECT_EQ(made.alone[2].second.time, timeWithout(false, false, true));
  EXPECT_THAT(made.from, ElementsAre(1U)) << "launches of eight micro-batches cost most";
  EXPECT_EQ(made.plan.attempt.time, made.alone[1].second.time);
  ASSERT_TRUE(made.own);
  EXPECT_EQ(made.own->time, timeOf(program(), stubborn()));
  EXPECT_GT(made.own->time, made.plan.attempt.time);
  EXPECT_TRUE(made.exact);
  EXPECT_EQ(made.planned, 4);
  EXPECT_EQ(made.question.request.mesh, "dp=1,tp=2") << "what is not departed from is kept";
  EXPECT_FALSE(made.question.request.micro);
  EXPECT_THAT(made.plan.attempt.decisions.notes.back(), HasSubstr("departures: micro-batches 8, of 3 words; "));
}

TEST(Departures, TwoAreTheBestOfAllPairs) {
  const Picoseconds best =
      std::min({timeWithout(true, true, false), timeWithout(true, false, true), timeWithout(false, true, true),
                timeWithout(true, false, false), timeWithout(false, true, false), timeWithout(false, false, true)});
  const DepartedPlan made = departed(program(), stubborn(), 2);
  EXPECT_EQ(made.plan.attempt.time, best);
  EXPECT_EQ(made.planned, 7);
  EXPECT_TRUE(made.exact);
  EXPECT_LE(made.from.size(), 2U);
}

TEST(Departures, WhatTheUserSaysStaysWhereItCostsNothing) {
  const CompileOptions open = autoOn(2);
  const absl::StatusOr<ClosedRequest> best = closeRequest(graphForAll(program().graph), open, {});
  ASSERT_TRUE(best.ok()) << best.status();
  CompileOptions request = open;
  request.micro = best->request.micro;
  request.zero = best->request.zero;
  const DepartedPlan made = departed(program(), request, 2);
  EXPECT_THAT(made.from, IsEmpty());
  EXPECT_EQ(made.plan.attempt.time, best->attempt.time);
}

TEST(Departures, WithoutWordsAllIsSearched) {
  const DepartedPlan made = departed(program(), autoOn(2), 3);
  EXPECT_THAT(made.words, IsEmpty());
  EXPECT_EQ(made.planned, 1);
  EXPECT_EQ(made.plan.attempt.time, timeOf(program(), autoOn(2)));
  EXPECT_THAT(made.plan.attempt.decisions.notes.back(), HasSubstr("nothing is said that a plan could depart from"));
}

// Words that cannot be together leave a plan where one of them may go.
TEST(Departures, FromWordsThatContradictEachOther) {
  CompileOptions request = autoOn(2);
  request.mesh = "dp=2";
  request.layouts = {{"w0", "[{tp},{}]"}};
  const absl::StatusOr<ClosedRequest> none = closeRequest(graphForAll(program().graph), request, {});
  ASSERT_FALSE(none.ok());
  const DepartedPlan made = departed(program(), request, 1);
  EXPECT_FALSE(made.own);
  EXPECT_EQ(made.refusal, none.status());
  EXPECT_EQ(made.from.size(), 1U);
  EXPECT_THAT(made.plan.attempt.decisions.notes.back(), HasSubstr("no plan with all words kept: "));
}

// Of many words not all sets are planned, but those of the best with one word more.
TEST(Departures, OfManyWordsTheBestSetsGrow) {
  GraphBuilder b = program();
  CompileOptions request = stubborn();
  request.recompute = "none";
  request.maxStages = 1;
  request.schedule = "1f1b";
  request.virtualStages = 1;
  for (const char* weight : {"w0", "w1"}) {
    request.layouts.emplace_back(weight, "[{},{}]");
  }
  const DepartedPlan two = departed(b, request, 2);
  EXPECT_TRUE(two.exact) << "9 words and 36 pairs";
  EXPECT_EQ(two.planned, 1 + 9 + 36);
  const DepartedPlan three = departed(b, request, 3);
  EXPECT_FALSE(three.exact);
  EXPECT_LT(three.planned, 1 + 9 + 3 * 8 + 3 * 7 + 1);
  EXPECT_LE(three.plan.attempt.time, two.plan.attempt.time);
  EXPECT_THAT(three.plan.attempt.decisions.notes.back(), HasSubstr("not all there are"));
}

TEST(Departures, ThePlannerGivesTheSame) {
  CompileOptions request = stubborn();
  request.departures = 1;
  const absl::StatusOr<ClosedRequest> closed = closeRequest(graphForAll(program().graph), request, {});
  ASSERT_TRUE(closed.ok()) << closed.status();
  EXPECT_EQ(closed->attempt.time, timeWithout(false, true, false));
}

}  // namespace
}  // namespace weft::testing
