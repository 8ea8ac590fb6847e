#include "planner/cost/time_parts.h"

#include <gtest/gtest.h>

namespace weft {
namespace {

constexpr Picoseconds kSecond = 1'000'000'000'000;

FunctionTime function(plan::FunctionKind kind, int64_t stage, Picoseconds computation, Picoseconds communication,
                      Picoseconds hidden = 0) {
  return {kind, stage, kSecond * (computation + communication - hidden), kSecond * computation,
          kSecond * communication};
}

// The second submesh has more to do; 4 x 6 seconds of 30.
TEST(TimePartsTest, TheBusiestSubmeshStandsForAll) {
  const std::vector<std::vector<FunctionTime>> submeshes = {
      {function(plan::PROLOGUE, 0, 1, 1), function(plan::FORWARD, 0, 1, 0), function(plan::BACKWARD, 0, 2, 1),
       function(plan::UPDATE, 0, 1, 0)},
      {function(plan::FORWARD, 1, 2, 1, 1), function(plan::BACKWARD, 1, 3, 3, 2), function(plan::UPDATE, 1, 2, 2, 1)}};
  const TimeParts parts = timeParts(submeshes, 4, 35);
  EXPECT_DOUBLE_EQ(parts.computation, 20);
  EXPECT_DOUBLE_EQ(parts.communication, 4);
  EXPECT_DOUBLE_EQ(parts.once, 2 + 3);
  EXPECT_DOUBLE_EQ(parts.onceCommunication, 1 + 1);
  EXPECT_DOUBLE_EQ(parts.hidden, 4 * 3 + 1);
  EXPECT_DOUBLE_EQ(parts.bubble, 35 - 24 - 5);
  EXPECT_DOUBLE_EQ(parts.sum(), 35);
}

TEST(TimePartsTest, OfAForwardProgramTheLongestStage) {
  const std::vector<std::vector<FunctionTime>> submeshes = {
      {function(plan::FORWARD, 0, 1, 0), function(plan::FORWARD, 2, 2, 1)}, {function(plan::FORWARD, 1, 2, 0)}};
  const TimeParts parts = timeParts(submeshes, 10, 3 * 10 + 3);
  EXPECT_DOUBLE_EQ(parts.computation, 20);
  EXPECT_DOUBLE_EQ(parts.communication, 10);
  EXPECT_DOUBLE_EQ(parts.bubble, 3);
}

// What is copied to and from the host is part of what runs once, beside the communication.
TEST(TimePartsTest, CopiesOfTheUpdate) {
  FunctionTime update = function(plan::UPDATE, 0, 3, 2, 1);
  update.total += 4 * kSecond;
  update.offload = 4 * kSecond;
  update.offloadHidden = 2 * kSecond;
  const TimeParts parts =
      timeParts({{function(plan::FORWARD, 0, 1, 0), function(plan::BACKWARD, 0, 2, 0), update}}, 2, 14);
  EXPECT_DOUBLE_EQ(parts.once, 8);
  EXPECT_DOUBLE_EQ(parts.onceCommunication, 1);
  EXPECT_DOUBLE_EQ(parts.onceOffload, 4);
  EXPECT_DOUBLE_EQ(parts.offloadHidden, 2);
  EXPECT_DOUBLE_EQ(parts.hidden, 1);
  EXPECT_DOUBLE_EQ(parts.sum(), 14);
}

}  // namespace
}  // namespace weft
