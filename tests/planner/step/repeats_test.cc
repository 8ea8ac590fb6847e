// What the backward pass runs again, by a record.

#include "planner/step/repeats.h"

#include <gtest/gtest.h>

namespace weft {
namespace {

constexpr Place kForward = {RunsIn::kForward, 0};

Decisions record() {
  Decisions decisions;
  decisions.operators = {{.id = 3, .recompute = true}, {.id = 4}};
  decisions.reshards = {{.id = 3, .index = 0, .how = "[{},{}]", .recompute = false},
                        {.id = -1, .index = 2, .how = howOfMask(1), .stage = 1, .recompute = true}};
  return decisions;
}

TEST(Repeats, OperatorsAsTheRecordSays) {
  const Repeats repeats(record());
  EXPECT_TRUE(repeats.ofOperator(3, kForward, false));
  EXPECT_FALSE(repeats.ofOperator(4, kForward, false));
  EXPECT_FALSE(repeats.ofOperator(5, kForward, false)) << "the record does not know it";
  EXPECT_FALSE(repeats.ofOperator(3, kForward, true)) << "whole only after all micro-batches";
  EXPECT_FALSE(repeats.ofOperator(3, {RunsIn::kBackward, 0}, false));
  EXPECT_FALSE(repeats.ofOperator(3, {RunsIn::kPrologue, 0}, false));
}

TEST(Repeats, MovesFollowUnlessTheRecordSaysOtherwise) {
  const Repeats repeats(record());
  EXPECT_FALSE(repeats.ofMove({.id = 3, .index = 0, .how = "[{},{}]"}, kForward, false, true)) << "kept by its entry";
  EXPECT_TRUE(repeats.ofMove({.id = 3, .index = 0, .how = "[{dp},{}]"}, kForward, false, true)) << "another reshard";
  EXPECT_TRUE(repeats.ofMove({.id = 3, .index = 1, .how = "[{},{}]"}, kForward, false, true)) << "of another result";
  EXPECT_FALSE(repeats.ofMove({.id = 4, .index = 0, .how = "[{},{}]"}, kForward, false, false));
  const ReshardDecision mask = {.id = -1, .index = 2, .how = "mask 1", .stage = 1};
  EXPECT_TRUE(repeats.ofMove(mask, {RunsIn::kForward, 1}, false, false)) << "for itself";
  EXPECT_FALSE(repeats.ofMove(mask, {RunsIn::kForward, 1}, true, true));
  EXPECT_FALSE(repeats.ofMove(mask, {RunsIn::kUpdate, 1}, false, true));
}

// For the gradients of weights, where they run apart.
TEST(Repeats, MovesOfTheBackwardPassRunAgainWhereTheRecordSaysSo) {
  const Repeats repeats(record());
  const ReshardDecision mask = {.id = -1, .index = 2, .how = "mask 1", .stage = 1};
  EXPECT_TRUE(repeats.ofMove(mask, {RunsIn::kBackward, 1}, false, false));
  EXPECT_FALSE(repeats.ofMove({.id = 3, .index = 0, .how = "[{dp},{}]"}, {RunsIn::kBackward, 0}, false, true))
      << "it follows nothing";
}

}  // namespace
}  // namespace weft
