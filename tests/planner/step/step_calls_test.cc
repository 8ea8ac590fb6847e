// The calls of a step, and the room for messages.
#include "planner/step/step_calls.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace weft {
namespace {

using ::testing::ElementsAre;

std::vector<std::pair<int, int64_t>> pairs(const std::vector<FunctionCall>& calls) {
  std::vector<std::pair<int, int64_t>> made;
  for (const FunctionCall& call : calls) {
    made.emplace_back(call.function, call.microBatch);
  }
  return made;
}

std::vector<StepFunction> functions(const std::vector<std::pair<plan::FunctionKind, int64_t>>& list) {
  std::vector<StepFunction> made;
  for (const auto& [kind, stage] : list) {
    made.push_back({.kind = kind, .stage = stage});
  }
  return made;
}

TEST(StepCallsTest, PrologueThenMicroBatchesThenUpdate) {
  const std::vector<StepFunction> all = functions({{plan::INIT, 0},
                                                   {plan::PROLOGUE, 0},
                                                   {plan::FORWARD, 0},
                                                   {plan::FORWARD, 2},
                                                   {plan::BACKWARD, 2},
                                                   {plan::BACKWARD, 0},
                                                   {plan::UPDATE, 0}});
  // Stages 0 and 2 are this submesh's.
  const std::vector<schedule::Action> order = {schedule::forward(0, 0), schedule::forward(0, 1),
                                               schedule::forward(2, 0), schedule::backward(2, 0),
                                               schedule::backward(0, 0)};
  EXPECT_THAT(pairs(callsOf(all, order)),
              ElementsAre(std::pair(1, 0), std::pair(2, 0), std::pair(2, 1), std::pair(3, 0), std::pair(4, 0),
                          std::pair(5, 0), std::pair(6, 0)));
  EXPECT_THAT(pairs(initCallsOf(all)), ElementsAre(std::pair(0, 0)));
}

TEST(StepCallsTest, AWholeBackwardRunsBothHalves) {
  const std::vector<StepFunction> halves =
      functions({{plan::FORWARD, 1}, {plan::INPUT_GRAD, 1}, {plan::WEIGHT_GRAD, 1}});
  EXPECT_THAT(pairs(callsOf(halves, {schedule::forward(1, 3), schedule::backward(1, 3)})),
              ElementsAre(std::pair(0, 3), std::pair(1, 3), std::pair(2, 3)));
  EXPECT_THAT(pairs(callsOf(halves, {schedule::weightGrad(1, 2), schedule::inputGrad(1, 5)})),
              ElementsAre(std::pair(2, 2), std::pair(1, 5)));
}

TEST(StepCallsTest, AMailboxHoldsWhatTheEarlierStageHasInFlight) {
  const std::vector<int64_t> submeshes = {0, 1, 0, 2};
  const std::vector<int64_t> inFlight = {2, 3, 5, 1};
  const auto capacity = [&](plan::FunctionKind kind, int64_t from, int64_t to) {
    return channelCapacity(kind, {submeshes, inFlight, from, to});
  };
  EXPECT_EQ(capacity(plan::FORWARD, 1, 2), 3);
  EXPECT_EQ(capacity(plan::INPUT_GRAD, 2, 1), 3);
  EXPECT_EQ(capacity(plan::FORWARD, 1, 0), 5);  // submesh 0 owns stages 0 and 2
  EXPECT_EQ(capacity(plan::UPDATE, 1, 0), 1);
  EXPECT_EQ(capacity(plan::PROLOGUE, 0, 1), 1);
}

}  // namespace
}  // namespace weft
