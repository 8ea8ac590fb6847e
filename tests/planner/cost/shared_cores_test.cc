#include "planner/cost/shared_cores.h"

#include <gtest/gtest.h>

namespace weft {
namespace {

TEST(SharedCoresTest, RanksTakeTurnsWhereTheyAreMoreThanCores) {
  Machine machine;
  EXPECT_EQ(SharedCores(machine, {4}).together(10, {10}), 10) << "each has a core";
  machine.cores = 2;
  EXPECT_EQ(SharedCores(machine, {2}).together(10, {10}), 10);
  EXPECT_EQ(SharedCores(machine, {4}).together(10, {10}), 20) << "two ranks a core, both busy all the time";
  EXPECT_EQ(SharedCores(machine, {1, 1, 1, 1}).together(40, {10, 10, 10, 10}), 40) << "one after another";
  EXPECT_EQ(SharedCores(machine, {1, 1, 1, 1}).together(15, {10, 10, 10, 10}), 20);
  EXPECT_EQ(SharedCores(machine, {1, 3}).together(10, {10, 2}), 10) << "16 of work on two cores";
  EXPECT_EQ(SharedCores(machine, {1, 3}).together(10, {2, 10}), 16);
}

TEST(SharedCoresTest, CoresAreThoseOfANode) {
  Machine machine;
  machine.cores = 2;
  machine.devicesPerNode = 4;
  EXPECT_EQ(SharedCores(machine, {8}).together(10, {10}), 20);
  EXPECT_EQ(SharedCores(machine, {2}).together(10, {10}), 10);
}

}  // namespace
}  // namespace weft
