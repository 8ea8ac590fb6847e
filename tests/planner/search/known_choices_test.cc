// What a search chose is the answer to every request that pins it to just that, and to no other.
#include "planner/search/known_choices.h"

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <tuple>
#include <vector>

#include "planner/search/plan.h"
#include "tests/planner/search/chain_program.h"

namespace weft::testing {
namespace {

GraphFor programOf(int64_t layers) {
  return graphForAll(chainProgram({.layers = layers, .rows = 4096, .width = 1024}).graph);
}

CompileOptions openRequest() {
  return {.mode = Mode::kAuto, .devices = 8, .machine = "a100-80g"};
}

ClosedRequest foundFor(const CompileOptions& asked) {
  ClosedRequest found;
  found.request = asked;
  found.request.mesh = "dp=2";
  found.request.micro = 4;
  found.request.zero = 1;
  found.request.schedule = "zb_v";
  found.request.virtualStages = 2;
  found.attempt.fits = true;
  found.attempt.decisions.schedule.submeshes = {0, 1, 2, 3, 3, 2, 1, 0};
  return found;
}

using Change = std::function<void(CompileOptions&)>;

// Of each of these changes to the open request.
void expectKnown(const std::vector<Change>& changes, const KnownChoices& known, const GraphFor& graphs, bool expected) {
  for (size_t i = 0; i < changes.size(); ++i) {
    CompileOptions request = openRequest();
    changes[i](request);
    EXPECT_EQ(known.find(graphs, request).has_value(), expected) << i;
  }
}

TEST(KnownChoices, PinsThatTheChoiceObeys) {
  const GraphFor graphs = programOf(2);
  KnownChoices known;
  known.keep(graphs, openRequest(), foundFor(openRequest()));
  const std::vector<Change> changes = {
      [](CompileOptions&) {},
      [](CompileOptions& o) { o.mesh = "dp=2"; },
      [](CompileOptions& o) { o.micro = 4; },
      [](CompileOptions& o) { o.zero = 1; },
      [](CompileOptions& o) { o.schedule = "zb_v"; },
      [](CompileOptions& o) { o.virtualStages = 2; },
      [](CompileOptions& o) { o.maxStages = 8; },
      [](CompileOptions& o) { std::tie(o.mesh, o.micro, o.zero) = std::tuple("dp=2", 4, 1); },
  };
  expectKnown(changes, known, graphs, true);
}

TEST(KnownChoices, OtherWordsAreOtherRequests) {
  const GraphFor graphs = programOf(2);
  KnownChoices known;
  known.keep(graphs, openRequest(), foundFor(openRequest()));
  const std::vector<Change> changes = {
      [](CompileOptions& o) { o.mesh = "dp=4"; },
      [](CompileOptions& o) { o.mesh = "tp=?"; },
      [](CompileOptions& o) { o.micro = 2; },
      [](CompileOptions& o) { o.zero = 2; },
      [](CompileOptions& o) { o.schedule = "1f1b"; },
      [](CompileOptions& o) { o.virtualStages = 1; },
      [](CompileOptions& o) { o.maxStages = 7; },
      [](CompileOptions& o) { o.devices = 4; },
      [](CompileOptions& o) { o.machine = "h100-80g"; },
      [](CompileOptions& o) { o.memoryLimit = int64_t{80} << 30; },
      [](CompileOptions& o) { o.layouts = {{"w0", "[{dp},{}]"}}; },
      [](CompileOptions& o) { std::tie(o.micro, o.zero) = std::tuple(4, 2); },
  };
  expectKnown(changes, known, graphs, false);
  EXPECT_FALSE(known.find(programOf(2), openRequest())) << "another program, though alike";
}

// The request without a pin may find what the pin forbids.
TEST(KnownChoices, WithoutItsPinARequestIsSearched) {
  const GraphFor graphs = programOf(2);
  CompileOptions pinned = openRequest();
  pinned.micro = 4;
  pinned.maxStages = 8;
  KnownChoices known;
  known.keep(graphs, pinned, foundFor(pinned));
  EXPECT_FALSE(known.find(graphs, openRequest()));
  CompileOptions more = pinned;
  more.maxStages = 16;
  EXPECT_FALSE(known.find(graphs, more));
  more.maxStages = 0;
  EXPECT_FALSE(known.find(graphs, more));
}

// A level that is given is that of all parameters. When they are gathered it leaves open.
TEST(KnownChoices, ALevelOfZeroIsThatOfAllClasses) {
  const GraphFor graphs = programOf(2);
  CompileOptions level3 = openRequest();
  level3.zero = 3;
  ClosedRequest found = foundFor(openRequest());
  found.request.zero = 3;
  found.request.regather = true;
  for (const bool isMixed : {false, true}) {
    found.request.zeroOf = isMixed ? ZeroPatterns{{"w0", 1}} : ZeroPatterns();
    KnownChoices known;
    known.keep(graphs, openRequest(), found);
    EXPECT_TRUE(known.find(graphs, openRequest()));
    EXPECT_EQ(known.find(graphs, level3).has_value(), !isMixed);
  }
}

TEST(KnownChoices, AreNotSearchedForAgain) {
  const GraphFor graphs = programOf(6);
  SearchMemory memory;
  const absl::StatusOr<ClosedRequest> open = closeRequest(graphs, openRequest(), {}, &memory);
  ASSERT_TRUE(open.ok()) << open.status();
  EXPECT_GT(open->ticks, 0);
  CompileOptions request = openRequest();
  request.mesh = open->request.mesh;
  request.micro = open->request.micro;
  const absl::StatusOr<ClosedRequest> pinned = closeRequest(graphs, request, {}, &memory);
  ASSERT_TRUE(pinned.ok()) << pinned.status();
  EXPECT_EQ(pinned->ticks, 0);
  EXPECT_EQ(pinned->attempt.time, open->attempt.time);
  EXPECT_GE(pinned->attempt.decisions.prediction->bound, open->attempt.decisions.prediction->bound)
      << "the bound is that of the plans that the pins leave";
  const absl::StatusOr<ClosedRequest> alone = closeRequest(graphs, request, {});
  ASSERT_TRUE(alone.ok()) << alone.status();
  EXPECT_EQ(pinned->attempt.time, alone->attempt.time);
  EXPECT_EQ(pinned->attempt.decisions.prediction->bound, alone->attempt.decisions.prediction->bound);
}

}  // namespace
}  // namespace weft::testing
