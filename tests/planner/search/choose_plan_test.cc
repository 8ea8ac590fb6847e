// How many sketches of a long program are predicted.
#include "planner/search/choose_plan.h"

#include <gtest/gtest.h>

#include "planner/search/plan.h"
#include "tests/planner/search/chain_program.h"

namespace weft::testing {
namespace {

// More than 2000 operators, so a long one; and so many that six predictions are the rule.
constexpr int64_t kLayers = 500;

// Of all predictions the same: how often one is asked for.
int64_t predictionsWhereAllTake(Picoseconds time) {
  const ProgramGraph graph = chainProgram({.layers = kLayers, .rows = 64, .width = 64}).graph;
  CompileOptions request;
  request.mode = Mode::kAuto;
  request.devices = 8;
  int64_t asked = 0;
  const Predict predict = [&](const ProgramGraph& staged, const CompileOptions& closed,
                              std::optional<double>) -> absl::StatusOr<Attempt> {
    ++asked;
    EXPECT_EQ(24000 / staged.operators.size(), 6U);
    Attempt made;
    made.time = time;
    made.fits = true;
    made.decisions.mesh = *Mesh::parse(closed.mesh);
    return made;
  };
  ReshardMemo memo;
  SearchMemory memory;
  const absl::StatusOr<ClosedRequest> chosen = choosePlan(graphForAll(graph), request, predict, {memo, memory});
  EXPECT_TRUE(chosen.ok()) << chosen.status();
  return asked;
}

TEST(ChoosePlan, WhatIsAsShortAsExpectedIsTaken) {
  EXPECT_EQ(predictionsWhereAllTake(1), 1);
}

TEST(ChoosePlan, AsksMoreWhereNoneIsAsShortAsExpected) {
  EXPECT_EQ(predictionsWhereAllTake(1'000'000'000'000'000), 18);
}

}  // namespace
}  // namespace weft::testing
