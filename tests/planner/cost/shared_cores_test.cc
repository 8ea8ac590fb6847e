#include "planner/cost/shared_cores.h"

#include <gtest/gtest.h>

#include "planner/schedule/generate.h"

namespace weft {
namespace {

SharedCores coresOf(const Machine& machine, const std::vector<int64_t>& ranks) {
  return {machine, ranks, std::vector<absl::Span<const FunctionTime>>(ranks.size())};
}

// Whose functions do not communicate.
SharedCores coresWith(const Machine& machine, const std::vector<int64_t>& ranks, int64_t stages) {
  std::vector<FunctionTime> functions;
  for (int64_t stage = 0; stage < stages; ++stage) {
    functions.push_back({.kind = plan::FORWARD, .stage = stage, .total = 1, .computation = 1});
  }
  std::vector<absl::Span<const FunctionTime>> all(ranks.size());
  all[0] = functions;
  return {machine, ranks, all};
}

double after(const Machine& machine, const std::vector<int64_t>& ranks, const std::vector<double>& times) {
  return coresOf(machine, ranks).once(plan::UPDATE, times);
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
  EXPECT_DOUBLE_EQ(after(machine, {1, 3}, {2, 10}), 16) << "four for 4, then three with 8 at two thirds";
}

// Kernels take twice as long where two ranks share a core; what collectives take was measured so.
TEST(SharedCoresTest, CollectivesNeedNoCore) {
  Machine machine;
  machine.cores = 2;
  const std::vector<FunctionTime> functions = {
      {.kind = plan::FORWARD, .total = 10, .computation = 5, .communication = 5},
      {.kind = plan::BACKWARD, .total = 10, .computation = 10},
      {.kind = plan::PROLOGUE, .total = 3, .communication = 3},
      {.kind = plan::UPDATE, .total = 8, .computation = 6, .communication = 2}};
  const SharedCores cores(machine, {4}, {functions});
  EXPECT_DOUBLE_EQ(cores.once(plan::PROLOGUE, {3}), 3);
  EXPECT_DOUBLE_EQ(cores.once(plan::UPDATE, {0.8}), 1.4) << "in any unit";
  const absl::StatusOr<schedule::Table> table = schedule::generate({.ranks = 1, .micros = 3});
  ASSERT_TRUE(table.ok()) << table.status();
  const schedule::Times times = {{{10, 0, 0, 10}}};
  EXPECT_DOUBLE_EQ(cores.makespan(*table, times).value_or(-1), 3 * (2 * 5 + 5 + 2 * 10));
  EXPECT_DOUBLE_EQ(cores.forward({0}, times, 3), 3 * (2 * 5 + 5));
}

// The second of two ranks computes while the first is in a collective, and waits for no core then.
TEST(SharedCoresTest, CoresOfRanksInCollectivesAreFree) {
  Machine machine;
  machine.cores = 1;
  const std::vector<FunctionTime> first = {{.kind = plan::UPDATE, .total = 12, .computation = 4, .communication = 8}};
  const std::vector<FunctionTime> second = {{.kind = plan::UPDATE, .total = 10, .computation = 10}};
  EXPECT_DOUBLE_EQ(SharedCores(machine, {1, 1}, {first, second}).once(plan::UPDATE, {12, 10}), 16)
      << "both for 8; then the first communicates until 16, and the second computes its last 6 until 14";
}

// Three stages, three micro-batches: all three ranks are busy for one of five steps only, which takes 3/2 on two cores.
// All work on both cores at once would take 4.5.
TEST(SharedCoresTest, StagesTakeTurnsWhileMoreWorkThanThereAreCores) {
  const absl::StatusOr<schedule::Table> table =
      schedule::generate({.kind = schedule::Kind::kGpipe, .ranks = 3, .micros = 3});
  ASSERT_TRUE(table.ok()) << table.status();
  const schedule::Times times = schedule::Times::uniform(1, 0, 0);
  Machine machine;
  const auto makespan = [&](const std::vector<int64_t>& ranks) {
    return coresWith(machine, ranks, 3).makespan(*table, times).value_or(-1);
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
  EXPECT_DOUBLE_EQ(coresWith(machine, {1, 1}, 2).makespan(*table, schedule::Times::uniform(1, 0, 0, 0.25)).value_or(-1),
                   4.25);
}

TEST(SharedCoresTest, CoresAreThoseOfANode) {
  Machine machine;
  machine.cores = 2;
  machine.devicesPerNode = 4;
  EXPECT_EQ(after(machine, {8}, {10}), 20);
  EXPECT_EQ(after(machine, {2}, {10}), 10);
}

}  // namespace
}  // namespace weft
