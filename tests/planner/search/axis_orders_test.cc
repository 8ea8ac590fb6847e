// Which orders of a mesh's axes differ on a machine.
#include "planner/search/axis_orders.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace weft {
namespace {

using ::testing::ElementsAre;

std::vector<std::string> ordersOnNodesOf(int64_t devices, const std::string& mesh) {
  Machine machine;
  machine.devicesPerNode = devices;
  machine.networkBandwidth = 1e9;
  return axisOrders(mesh, machine);
}

TEST(AxisOrders, DifferWhereGroupsSpanNodes) {
  EXPECT_THAT(ordersOnNodesOf(8, "dp=8,tp=8"), ElementsAre("dp=8,tp=8", "tp=8,dp=8"));
  EXPECT_THAT(ordersOnNodesOf(4, "dp=2,tp=4"), ElementsAre("dp=2,tp=4", "tp=4,dp=2"));
  EXPECT_THAT(ordersOnNodesOf(2, "a=2,b=2,c=2"), ElementsAre("a=2,b=2,c=2", "a=2,c=2,b=2", "b=2,c=2,a=2"))
      << "one is inside a node, whichever of the others is first";
}

TEST(AxisOrders, AreOneWhereAllLieTheSame) {
  EXPECT_THAT(ordersOnNodesOf(0, "dp=8,tp=8"), ElementsAre("dp=8,tp=8")) << "no nodes";
  EXPECT_THAT(ordersOnNodesOf(8, "dp=4,tp=2"), ElementsAre("dp=4,tp=2")) << "on one node";
  EXPECT_THAT(ordersOnNodesOf(8, "dp=16,tp=1"), ElementsAre("dp=16,tp=1")) << "one axis";
  EXPECT_THAT(ordersOnNodesOf(1, "dp=4,tp=2"), ElementsAre("dp=4,tp=2")) << "every rank has a node of its own";
}

}  // namespace
}  // namespace weft
