#include "planner/cost/shared_cores.h"

#include <gtest/gtest.h>

#include <utility>

#include "planner/schedule/generate.h"

namespace weft {
namespace {

double after(const Machine& machine, const std::vector<int64_t>& ranks, const std::vector<double>& times) {
  return SharedCores(machine, ranks).once(times);
}

TEST(SharedCoresTest, RanksTakeTurnsWhereTheyAreMoreThanCores) {
  Machine machine;
  EXPECT_EQ(after(machine, {4}, {10}), 10) << "each has a core";
  machine.cores = 2;
  EXPECT_EQ(after(machine, {2}, {10}), 10);
  EXPECT_EQ(after(machine, {4}, {10}), 20) << "two ranks a core, both busy all the time";
  EXPECT_EQ(after(machine, {1, 1, 1, 1}, {10, 10, 10, 10}), 20);
  EXPECT_EQ(after(machine, {1, 1, 1}, {10, 4, 0}), 10) << "both have a core";
  EXPECT_DOUBLE_EQ(after(machine, {1, 3}, {10, 2}), 12) << "four for 4 at half speed, then one with 8";
  EXPECT_DOUBLE_EQ(after(machine, {1, 3}, {2, 10}), 20) << "four for 4, then three with 8, of whom two share a core";
}

TEST(SharedCoresTest, AsManyRanksWorkAsHaveACore) {
  Machine machine;
  EXPECT_EQ(ranksAtWork(machine, 9), 9);
  machine.cores = 3;
  EXPECT_EQ(ranksAtWork(machine, 2), 2);
  EXPECT_EQ(ranksAtWork(machine, 9), 3);
  machine.devicesPerNode = 4;
  EXPECT_EQ(ranksAtWork(machine, 9), 3 + 3 + 1);
  EXPECT_EQ(ranksAtWork(machine, 12), 9);
  machine.devicesPerNode = 3;
  EXPECT_EQ(ranksAtWork(machine, 9), 9);
}

// As long as what all ranks have to do takes, and what those of one submesh have.
TEST(SharedCoresTest, WorkTakesAsManyTurnsAsRanksShareACore) {
  Machine machine;
  const auto turns = [&](const std::vector<int64_t>& ranks) {
    const SharedCores cores(machine, ranks);
    return std::pair(cores.turnsOfAll(), cores.turnsOfOne());
  };
  EXPECT_EQ(turns({4}), std::pair(1.0, 1.0));
  machine.cores = 2;
  EXPECT_EQ(turns({1, 1}), std::pair(1.0, 1.0));
  EXPECT_EQ(turns({4}), std::pair(2.0, 2.0));
  EXPECT_EQ(turns({1, 1, 1, 1}), std::pair(2.0, 1.0));
  EXPECT_EQ(turns({1, 3}), std::pair(2.0, 2.0)) << "the third waits for a core, and two of them for it";
  machine.devicesPerNode = 4;
  EXPECT_EQ(turns({6}), std::pair(1.5, 2.0)) << "the last two have a core each, and wait";
}

TEST(SharedCoresTest, RanksWorkOnAnyCore) {
  Machine machine;
  machine.cores = 2;
  EXPECT_EQ(after(machine, {1, 1, 1}, {10, 0, 10}), 10);
  EXPECT_EQ(after(machine, {1, 1, 1}, {10, 10, 10}), 15);
  EXPECT_EQ(after(machine, {3}, {10}), 20) << "the third waits for a core, and two of them for it";
}

// Whatever a stage does, collectives too, takes twice as long where two of its ranks share a core.
TEST(SharedCoresTest, AllThatAStageDoesNeedsACore) {
  Machine machine;
  machine.cores = 2;
  const SharedCores cores(machine, {4});
  const absl::StatusOr<schedule::Table> table = schedule::generate({.ranks = 1, .micros = 3});
  ASSERT_TRUE(table.ok()) << table.status();
  const schedule::Times times = {{{10, 0, 0, 15}}};
  EXPECT_DOUBLE_EQ(cores.makespan(*table, times).value_or(-1), 2 * 3 * (10 + 15));
  EXPECT_DOUBLE_EQ(cores.forward({0}, times, 3), 2 * 3 * 10);
  EXPECT_DOUBLE_EQ(cores.once({0.75}), 1.5) << "in any unit";
}

// Of three micro-batches as in the schedule below.
TEST(SharedCoresTest, StagesOfAForwardProgramTakeTurns) {
  const schedule::StageTimes stage = {1, 0, 0, std::nullopt};
  Machine machine;
  const auto forward = [&](int64_t microBatches) {
    return SharedCores(machine, {1, 1, 1}).forward({0, 1, 2}, {{stage, stage, stage}}, microBatches);
  };
  EXPECT_DOUBLE_EQ(forward(3), 5);
  machine.cores = 2;
  EXPECT_DOUBLE_EQ(forward(3), 5.5);
  EXPECT_DOUBLE_EQ(forward(1), 3) << "one stage after another";
  machine.cores = 1;
  EXPECT_DOUBLE_EQ(forward(3), 9);
}

// Three stages, three micro-batches: all three ranks are busy for one of five steps only, which takes half as long
// again on two cores.
TEST(SharedCoresTest, StagesTakeTurnsWhileMoreWorkThanThereAreCores) {
  const absl::StatusOr<schedule::Table> table =
      schedule::generate({.kind = schedule::Kind::kGpipe, .ranks = 3, .micros = 3});
  ASSERT_TRUE(table.ok()) << table.status();
  const schedule::Times times = schedule::Times::uniform(1, 0, 0);
  Machine machine;
  const auto makespan = [&](const std::vector<int64_t>& ranks) {
    return SharedCores(machine, ranks).makespan(*table, times).value_or(-1);
  };
  EXPECT_EQ(makespan({1, 1, 1}), 5);
  machine.cores = 2;
  EXPECT_DOUBLE_EQ(makespan({1, 1, 1}), 5.5);
  EXPECT_DOUBLE_EQ(makespan({2, 2, 2}), 1 + 2 + 3 + 2 + 1) << "two ranks of each";
  machine.cores = 1;
  EXPECT_DOUBLE_EQ(makespan({1, 1, 1}), 9) << "one after the other";
}

// The second stage begins at 1.25, beside the first one's second forward pass, which has 0.75 left: at half speed both
// until that ends at 2.75; the second stage ends its first at 3 and has the second there by then. The gradient, which
// takes no time, is back after another 0.25.
TEST(SharedCoresTest, TransfersNeedNoCore) {
  const absl::StatusOr<schedule::Table> table =
      schedule::generate({.kind = schedule::Kind::kGpipe, .ranks = 2, .micros = 2});
  ASSERT_TRUE(table.ok()) << table.status();
  Machine machine;
  machine.cores = 1;
  EXPECT_DOUBLE_EQ(SharedCores(machine, {1, 1}).makespan(*table, schedule::Times::uniform(1, 0, 0, 0.25)).value_or(-1),
                   4.25);
}

TEST(SharedCoresTest, CoresAreThoseOfANode) {
  Machine machine;
  machine.cores = 2;
  machine.devicesPerNode = 4;
  EXPECT_EQ(after(machine, {8}, {10}), 20);
  EXPECT_EQ(after(machine, {4, 4}, {10, 10}), 20) << "a node for each";
  EXPECT_EQ(after(machine, {2}, {10}), 10);
}

}  // namespace
}  // namespace weft
