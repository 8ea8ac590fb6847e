// The simulation of a plan, against times worked out by hand.

#include "tools/analysis/simulate_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/staged_plan.h"

namespace weft::schedule {
namespace {

using ::testing::DoubleEq;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using weft::testing::stagedPlan;

// Submesh 0: forward 4 + 1 for the copy, backward 1 + 6, update 1. Submesh 1: forward 1 + 5, backward 3 + 1 + 4, update
// 2 + 1.
PlanTimes times() {
  PlanTimes times;
  times.instructions = {{{4, 1}, {1, 6}, {1}}, {{1, 5}, {3, 1, 4}, {2, 1}}};
  return times;
}

TEST(SimulatePlanTest, OneMicroBatchWorkedOutByHand) {
  const absl::StatusOr<PlanSimulation> run = simulatePlan(stagedPlan({{0, 1, 2}, {0, 1, 2}}), times());
  ASSERT_TRUE(run.ok()) << run.status();
  // The message of the forward is there at 5, its receiver done at 11. The gradient leaves at 15, inside the backward.
  EXPECT_THAT(run->ranks[1].starts, ElementsAre(0, 11, 19));
  EXPECT_THAT(run->ranks[1].ends, ElementsAre(11, 19, 22));
  EXPECT_THAT(run->ranks[0].starts, ElementsAre(0, 5, 22));
  EXPECT_THAT(run->ranks[0].ends, ElementsAre(5, 22, 23));
  EXPECT_EQ(run->seconds, 23);
  EXPECT_EQ(run->ranks[0].busy, 13);
  EXPECT_EQ(run->ranks[1].busy, 17);
  EXPECT_THAT(run->bubbleRatio, DoubleEq(16.0 / 46.0));
}

// Who waits for a message goes on later; who does not is not held up. The host's parts stand before and after.
TEST(SimulatePlanTest, WakingAndTheHostTakeTime) {
  PlanTimes slow = times();
  slow.wake = 0.5;
  slow.start = 2;
  slow.finish = 3;
  const absl::StatusOr<PlanSimulation> run = simulatePlan(stagedPlan({{0, 1, 2}, {0, 1, 2}}), slow);
  ASSERT_TRUE(run.ok()) << run.status();
  EXPECT_EQ(run->ranks[1].ends[0], 2 + 5 + 0.5 + 6);
  EXPECT_EQ(run->ranks[0].ends[1], 2 + 11.5 + 4 + 0.5 + 7);  // the gradient leaves at 17.5
  EXPECT_EQ(run->seconds, 25 + 1 + 3);                       // the update's message is there before
}

// Two forwards at once: the mailbox has room for one message, so the second send waits until the first is taken out.
TEST(SimulatePlanTest, FullMailboxHoldsTheSender) {
  PlanTimes slow = times();
  slow.instructions[1][2] = {10, 1};
  const plan::Plan plan = stagedPlan({{2, 0, 0, 1, 1}, {2, 0, 0, 1, 1}});
  const absl::StatusOr<PlanSimulation> run = simulatePlan(plan, slow);
  ASSERT_TRUE(run.ok()) << run.status();
  // Both begin with the update, whose message is there at 11; then 4 + 1 for the first forward, received at 17 + 1.
  EXPECT_EQ(run->ranks[0].ends[0], 12);
  EXPECT_EQ(run->ranks[0].ends[1], 17);
  EXPECT_EQ(run->ranks[1].ends[1], 23);
  EXPECT_EQ(run->ranks[0].ends[2], 22);  // 17 + 4, and the first was taken out at 18
  PlanTimes crowded = slow;
  crowded.instructions[1][0] = {8, 5};  // takes the first message out at 25
  const absl::StatusOr<PlanSimulation> late = simulatePlan(plan, crowded);
  ASSERT_TRUE(late.ok()) << late.status();
  EXPECT_EQ(late->ranks[0].ends[2], 26);
}

TEST(SimulatePlanTest, CollectiveBeginsWithItsLastRank) {
  plan::Plan plan;
  plan.set_ranks(2);
  auto* group = plan.add_group_sets()->add_groups();
  group->add_ranks(0);
  group->add_ranks(1);
  weft::testing::addStagedFunction(plan, plan::FORWARD, 0, "k", 0);
  weft::testing::addStagedFunction(plan, plan::BACKWARD, 0, "kk", 0);
  plan.mutable_functions(1)->mutable_instructions(1)->mutable_collective()->set_group_set(0);
  for (int rank = 0; rank < 2; ++rank) {
    plan::RankSchedule* schedule = plan.add_schedules();
    for (int forward = 0; forward <= rank; ++forward) {
      schedule->add_step()->set_function(0);
    }
    schedule->add_step()->set_function(1);
  }
  PlanTimes times;
  times.instructions = {{{10}, {1, 3}}};
  const absl::StatusOr<PlanSimulation> run = simulatePlan(plan, times);
  ASSERT_TRUE(run.ok()) << run.status();
  EXPECT_THAT(run->ranks[0].ends, ElementsAre(10, 24));
  EXPECT_THAT(run->ranks[1].ends, ElementsAre(10, 20, 24));
  EXPECT_EQ(run->ranks[0].busy, 14);
}

TEST(SimulatePlanTest, EachCallWithATimeOfItsOwn) {
  PlanTimes replay;
  replay.starts = {1, 2};
  replay.calls = {{{4, 1}, {1, 6}, {1}}, {{1, 5}, {3, 1, 4}, {2, 1}}};
  const absl::StatusOr<PlanSimulation> run = simulatePlan(stagedPlan({{0, 1, 2}, {0, 1, 2}}), replay);
  ASSERT_TRUE(run.ok()) << run.status();
  EXPECT_EQ(run->seconds, 24);
}

TEST(SimulatePlanTest, StageTimesAreSumsWithoutWaits) {
  const std::vector<StageTimes> stages = stageTimes(stagedPlan({{0, 1, 2}, {0, 1, 2}}), times());
  ASSERT_EQ(stages.size(), 2u);
  EXPECT_EQ(stages[0].f, 5);
  EXPECT_EQ(stages[0].b, 7);
  EXPECT_EQ(stages[1].f, 6);
  EXPECT_EQ(stages[1].b, 8);
}

TEST(SimulatePlanTest, Refusals) {
  PlanTimes short_ = times();
  short_.instructions[1][1].pop_back();
  EXPECT_THAT(std::string(simulatePlan(stagedPlan({{0, 1, 2}, {0, 1, 2}}), short_).status().message()),
              HasSubstr("another plan"));
  // Submesh 0 wants a gradient first, submesh 1 an activation.
  EXPECT_THAT(std::string(simulatePlan(stagedPlan({{1, 0, 2}, {0, 1, 2}}), times()).status().message()),
              HasSubstr("rank 0 of submesh 0 waits for ever at BACKWARD, instruction 0"));
}

}  // namespace
}  // namespace weft::schedule
