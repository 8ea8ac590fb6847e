#include "ir/layout/reshard.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/ir/layout/reshard_interpreter.h"

namespace weft {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class ReshardTest : public ::testing::Test {
 protected:
  Layout layout(const std::string& text, const Mesh& mesh) const {
    absl::StatusOr<Layout> layout = Layout::parse(text, mesh);
    EXPECT_TRUE(layout.ok()) << layout.status();
    return layout.value_or(Layout());
  }

  absl::StatusOr<ReshardPlan> plan(const std::string& mesh, const Shape& shape, const std::string& from,
                                   const std::string& to) {
    mesh_ = *Mesh::parse(mesh);
    return ReshardPlanner(mesh_, machine_).plan(shape, DType::kF32, layout(from, mesh_), layout(to, mesh_));
  }

  // "all_gather [{},{}]; ..."
  std::string steps(const std::string& mesh, const Shape& shape, const std::string& from, const std::string& to) {
    absl::StatusOr<ReshardPlan> found = plan(mesh, shape, from, to);
    if (!found.ok()) {
      return std::string(found.status().message());
    }
    std::string text;
    for (const ReshardStep& step : found->steps) {
      text += (text.empty() ? "" : "; ") + collectiveName(step.kind) + " " + step.layout.print(mesh_);
    }
    return text;
  }

  Machine machine_;
  Mesh mesh_;
};

TEST_F(ReshardTest, OneCollectiveEach) {
  EXPECT_EQ(steps("dp=2,tp=4", {16, 32}, "[{dp},{}]", "[{dp},{tp}]"), "slice [{dp},{tp}]");
  EXPECT_EQ(steps("dp=2,tp=4", {16, 32}, "[{dp},{tp}]", "[{dp},{}]"), "all_gather [{dp},{}]");
  EXPECT_EQ(steps("dp=2,tp=4", {16, 32}, "[{tp},{}]", "[{},{tp}]"), "all_to_all [{},{tp}]");
  EXPECT_EQ(steps("dp=2,tp=4", {16, 32}, "[{},{dp}] partial{tp:sum}", "[{tp},{dp}]"), "reduce_scatter [{tp},{dp}]");
  EXPECT_EQ(steps("dp=2,tp=4", {16, 32}, "[{dp},{}] partial{tp:sum}", "[{dp},{}]"), "all_reduce [{dp},{}]");
  EXPECT_EQ(steps("x=2,y=2", {16, 32}, "[{x},{y}]", "[{y},{x}]"), "permute [{y},{x}]");
  EXPECT_EQ(steps("x=2,y=2", {16}, "[{x,y}]", "[{y,x}]"), "permute [{y,x}]");
}

TEST_F(ReshardTest, NothingToDo) {
  EXPECT_EQ(steps("dp=2,tp=4", {16}, "[{dp,tp}]", "[{all}]"), "");
  EXPECT_EQ(steps("a=3,b=2", {12}, "[{a,b}]", "[{all:(1)2,all:(2)3}]"), "");
  EXPECT_EQ(steps("dp=2", {}, "[]", "[]"), "");
}

// The layout of the last step is spelled as the caller spelled it.
TEST_F(ReshardTest, EndsInTheCallersSpelling) {
  absl::StatusOr<ReshardPlan> found = plan("dp=2,tp=2", {16}, "[{}]", "[{dp,tp}]");
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(found->steps.back().layout, layout("[{dp,tp}]", mesh_));
}

TEST_F(ReshardTest, BytesAndCostOfEachCollective) {
  // 16x32 f32 = 2048 bytes; machine: 1e-6 s per launch, 2e-6 s per hop, 1e10 bytes per second.
  auto check = [&](const std::string& from, const std::string& to, int64_t bytes, int64_t hops) {
    absl::StatusOr<ReshardPlan> found = plan("tp=4", {16, 32}, from, to);
    ASSERT_TRUE(found.ok()) << found.status();
    ASSERT_EQ(found->steps.size(), 1u);
    EXPECT_EQ(found->steps[0].bytesReceived, bytes);
    EXPECT_EQ(found->cost, (hops > 0 ? 1'000'000 : 0) + 2'000'000 * hops + 100 * bytes) << "picoseconds";
  };
  check("[{tp},{}]", "[{},{}]", 1536, 3);
  check("[{tp},{}]", "[{},{tp}]", 384, 3);
  check("[{},{}] partial{tp:sum}", "[{tp},{}]", 1536, 3);
  check("[{},{}] partial{tp:sum}", "[{},{}]", 3072, 6);
  check("[{},{}]", "[{tp},{}]", 0, 0);
}

TEST_F(ReshardTest, CostModelIsSane) {
  const Machine machine;
  Machine nodes;
  nodes.devicesPerNode = 4;
  nodes.networkBandwidth = 1e10;
  nodes.networkLatency = 1e-5;
  for (CollectiveKind kind : {CollectiveKind::kAllGather, CollectiveKind::kReduceScatter, CollectiveKind::kAllToAll,
                              CollectiveKind::kAllReduce, CollectiveKind::kPermute}) {
    for (const int64_t perNode : {1, 2, 4}) {
      EXPECT_LT(collectiveCost(nodes, kind, {4, perNode}, 100000), collectiveCost(nodes, kind, {4, perNode}, 100100));
      EXPECT_EQ(collectiveCost(machine, kind, {4, 4}, 100000), collectiveCost(nodes, kind, {4, 4}, 100000));
    }
    EXPECT_GT(collectiveCost(nodes, kind, {4, 2}, 100000), collectiveCost(nodes, kind, {4, 4}, 100000));
    EXPECT_GE(collectiveCost(nodes, kind, {4, 1}, 100000), collectiveCost(nodes, kind, {4, 2}, 100000));
  }
  EXPECT_EQ(collectiveCost(machine, CollectiveKind::kAllGather, {1, 1}, 0), 0);
  EXPECT_EQ(collectiveCost(machine, CollectiveKind::kAllReduce, {8, 8}, 2000),
            collectiveCost(machine, CollectiveKind::kAllGather, {8, 8}, 1000) +
                collectiveCost(machine, CollectiveKind::kReduceScatter, {8, 8}, 1000) -
                picosecondsOf(machine.launchLatency));
}

// dp and tp are no neighbors in the line. Two gathers take 2 hops and 2 launches, one takes 3 hops and 1 launch.
TEST_F(ReshardTest, LaunchesDecideWhatIsJoined) {
  const std::string mesh = "dp=2,sp=2,tp=2";
  EXPECT_EQ(steps(mesh, {16, 8}, "[{dp,tp},{sp}]", "[{},{sp}]"), "all_gather [{dp},{sp}]; all_gather [{},{sp}]");
  EXPECT_EQ(steps(mesh, {16, 8}, "[{},{sp}] partial{dp:sum,tp:sum}", "[{dp,tp},{sp}]"),
            "reduce_scatter [{dp},{sp}] partial{tp:sum}; reduce_scatter [{dp,tp},{sp}]");
  machine_.launchLatency = 1e-5;
  EXPECT_EQ(steps(mesh, {16, 8}, "[{dp,tp},{sp}]", "[{},{sp}]"), "all_gather [{},{sp}]");
  EXPECT_EQ(steps(mesh, {16, 8}, "[{},{sp}] partial{dp:sum,tp:sum}", "[{dp,tp},{sp}]"),
            "reduce_scatter [{dp,tp},{sp}]");
  EXPECT_EQ(steps(mesh, {16, 8}, "[{},{sp}] partial{dp:sum,tp:sum}", "[{tp,dp},{sp}]"),
            "reduce_scatter [{tp,dp},{sp}]");
}

// Two nodes of four: the axes whose ranks are on one node, and how fast a group over them is.
TEST_F(ReshardTest, GroupsLieOnNodes) {
  machine_ = {.linkBandwidth = 1e11, .linkLatency = 0, .launchLatency = 0};
  machine_.devicesPerNode = 4;
  machine_.networkBandwidth = 4e10;
  const Mesh mesh = *Mesh::parse("dp=2,tp=4");
  const auto span = [&](const std::string& layoutText) {
    const GroupSpan found = spanOf(machine_, 8, layout(layoutText, mesh).dim(0));
    return std::pair(found.ranks, found.perNode);
  };
  EXPECT_EQ(span("[{tp}]"), std::pair(int64_t{4}, int64_t{4}));
  EXPECT_EQ(span("[{dp}]"), std::pair(int64_t{2}, int64_t{1}));
  EXPECT_EQ(span("[{dp,tp}]"), std::pair(int64_t{8}, int64_t{4}));
  EXPECT_EQ(span("[{all:(1)4}]"), std::pair(int64_t{4}, int64_t{2}));
  EXPECT_EQ(spanOf(machine_, 2, {{AxisKind::kSpace, 1, 2}}).perNode, 2) << "a stage on half a node";
  // 1 MiB over tp on the links; over all 3/4 inside, 1/8 of it between nodes, as well over dp: a rank that gathered its
  // half from its partner alone would have it over a fourth of the cards, so each takes an eighth and they share.
  const auto cost = [&](const std::string& from) {
    absl::StatusOr<ReshardPlan> found = plan("dp=2,tp=4", {1 << 18}, from, "[{}]");
    EXPECT_TRUE(found.ok()) << found.status();
    return inSeconds(found->cost) / (1 << 20);
  };
  EXPECT_NEAR(cost("[{tp}]"), 0.75 / 1e11, 1e-17);
  EXPECT_NEAR(cost("[{dp,tp}]"), 0.75 / 1e11 + 0.125 / 1e10, 1e-17);
  EXPECT_NEAR(cost("[{dp}]"), 0.75 / 1e11 + 0.125 / 1e10, 1e-17);
  EXPECT_EQ(inSeconds(collectiveCost(machine_, CollectiveKind::kAllGather, {2, 1}, 1 << 19)), (1 << 19) / 1e10);
}

// 4x2: a permute (1/8 of the tensor) and an all_to_all of half of x (1/16). Gathering y first would take 5/16.
TEST_F(ReshardTest, AxesThatTradePlacesAreCut) {
  machine_.linkLatency = 0;
  machine_.launchLatency = 0;
  absl::StatusOr<ReshardPlan> found = plan("x=4,y=2", {16, 32}, "[{x},{y}]", "[{y},{x}]");
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(found->cost, picosecondsOf(16.0 * 32 * 4 * 6 / 32 / machine_.linkBandwidth));
}

TEST_F(ReshardTest, CutsThatDoNotNestMeetInTheLine) {
  EXPECT_EQ(steps("6", {12, 12}, "[{all:(1)3},{}]", "[{all:(1)2},{}]"), "slice [{all},{}]; all_gather [{all:(1)2},{}]");
  EXPECT_EQ(steps("6", {36, 36}, "[{all:(1)3},{all:(3)2}]", "[{all:(2)3},{all:(1)2}]"),
            "permute [{all:(2)3},{all:(1)2}]");
}

TEST_F(ReshardTest, MaxIsNotScattered) {
  EXPECT_EQ(steps("tp=4", {16, 32}, "[{},{}] partial{tp:max}", "[{tp},{}]"), "all_reduce [{},{}]; slice [{tp},{}]");
}

TEST_F(ReshardTest, PartialAxesOfTheTargetStayPartial) {
  EXPECT_EQ(steps("dp=2,tp=2", {16}, "[{}] partial{dp:sum,tp:sum}", "[{}] partial{dp:sum}"),
            "all_reduce [{}] partial{dp:sum}");
  EXPECT_EQ(steps("dp=2,tp=2", {16}, "[{tp}] partial{dp:sum}", "[{}] partial{dp:sum}"),
            "all_gather [{}] partial{dp:sum}");
}

TEST_F(ReshardTest, PadsStay) {
  EXPECT_EQ(steps("tp=4", {70, 4}, "[{tp},{}] pad{0:72}", "[{},{tp}] pad{0:72}"), "all_to_all [{},{tp}] pad{0:72}");
  EXPECT_THAT(steps("tp=4", {72, 4}, "[{tp},{}]", "[{},{tp}] pad{0:76}"),
              AllOf(HasSubstr("72 elements before and 76 after"), HasSubstr("keeps the pad")));
}

// 3 does not divide over tp=2, so the sum cannot be scattered there.
TEST_F(ReshardTest, DivisibilityLimitsTheMoves) {
  EXPECT_EQ(steps("tp=2", {3}, "[{}] partial{tp:sum}", "[{}]"), "all_reduce [{}]");
  machine_.linkBandwidth = 1;  // bytes only
  EXPECT_EQ(steps("dp=2,tp=2", {2, 3}, "[{dp},{}]", "[{},{}]"), "all_gather [{},{}]");
}

TEST_F(ReshardTest, TimeAxes) {
  // Accumulation first: everything after it costs once per step.
  EXPECT_EQ(steps("dp=2,micro=3", {16}, "[{}] partial{dp:sum,micro:sum}", "[{dp}]"),
            "all_reduce [{}] partial{dp:sum}; reduce_scatter [{dp}]");
  // The view of the micro-batch comes last.
  EXPECT_EQ(steps("dp=2,micro=2", {16}, "[{}]", "[{dp,micro}]"), "slice [{dp}]; slice [{dp,micro}]");
  // A dimension split over time lies still; others may move, within the micro-batch.
  EXPECT_EQ(steps("dp=2,tp=2,micro=2", {16, 4}, "[{dp,micro},{tp}]", "[{dp,micro},{}]"), "all_gather [{dp,micro},{}]");
  absl::StatusOr<ReshardPlan> found = plan("dp=2,tp=2,micro=2", {16, 4}, "[{dp,micro},{tp}]", "[{dp,micro},{}]");
  EXPECT_EQ(found->steps[0].bytesReceived, 4 * 2 * 4);
  EXPECT_EQ(plan("dp=2,micro=3", {16}, "[{}] partial{micro:sum}", "[{}]")->cost, 0);
}

TEST_F(ReshardTest, TimeErrors) {
  EXPECT_THAT(steps("dp=2,micro=2", {16, 4}, "[{dp,micro},{}]", "[{micro},{dp}]"),
              AllOf(HasSubstr("dimension 0 of '[{dp,micro},{}]'"), HasSubstr("would mix the micro-batches")));
  EXPECT_THAT(steps("dp=2,micro=2", {16, 4}, "[{micro},{}]", "[{},{}]"), HasSubstr("would mix the micro-batches"));
}

TEST_F(ReshardTest, Errors) {
  EXPECT_THAT(steps("dp=2", {16}, "[{dp}]", "[{}] partial{dp:sum}"), HasSubstr("never makes a value partial"));
  EXPECT_THAT(steps("dp=2", {16}, "[{}] partial{dp:max}", "[{}] partial{dp:sum}"), HasSubstr("partial{dp:sum}"));
  EXPECT_THAT(steps("dp=2", {15}, "[{}]", "[{dp}]"), AllOf(HasSubstr("'to'"), HasSubstr("size 15")));
  EXPECT_THAT(steps("dp=2", {16, 2}, "[{dp}]", "[{}]"), AllOf(HasSubstr("'from'"), HasSubstr("has 1 dimensions")));
}

TEST_F(ReshardTest, GroupsOfAPermuteAreItsCycles) {
  absl::StatusOr<ReshardPlan> found = plan("x=2,y=2", {4, 4}, "[{x},{y}]", "[{y},{x}]");
  ASSERT_TRUE(found.ok());
  EXPECT_THAT(found->steps[0].source, ElementsAre(0, 2, 1, 3));
  EXPECT_THAT(groupsOf(found->steps[0], mesh_), ElementsAre(ElementsAre(1, 2)));
  ReshardStep ring;
  ring.kind = CollectiveKind::kPermute;
  ring.source = {2, 0, 1};
  // Rank 1 receives what rank 0 had, rank 2 what rank 1 had.
  EXPECT_THAT(groupsOf(ring, *Mesh::parse("3")), ElementsAre(ElementsAre(0, 1, 2)));
}

// The same reshard under other axis names comes from the memo and must still name its own axes.
TEST_F(ReshardTest, RenamedAxesGiveTheSamePlan) {
  mesh_ = *Mesh::parse("a=2,b=4,c=2,d=4");
  ReshardPlanner planner(mesh_, machine_);
  auto run = [&](const std::string& from, const std::string& to) {
    absl::StatusOr<ReshardPlan> found = planner.plan({64, 64}, DType::kF32, layout(from, mesh_), layout(to, mesh_));
    EXPECT_TRUE(found.ok()) << found.status();
    std::mt19937 random(3);
    testing::Ranks ranks(mesh_, {64, 64});
    ranks.place(layout(from, mesh_), random);
    for (const ReshardStep& step : found->steps) {
      ranks.run(step);
      EXPECT_EQ(ranks.compare(step.layout), "");
    }
    EXPECT_EQ(ranks.compare(layout(to, mesh_)), "");
    return inSeconds(found->cost);
  };
  double first = run("[{a},{b}]", "[{b},{a}]");
  EXPECT_EQ(run("[{c},{d}]", "[{d},{c}]"), first);
  EXPECT_EQ(run("[{a},{d}]", "[{d},{a}]"), first);
}

TEST_F(ReshardTest, PlansAreDeterministic) {
  std::string first = steps("x=4,y=2,z=2", {32, 32}, "[{x},{y,z}]", "[{z},{x,y}]");
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(steps("x=4,y=2,z=2", {32, 32}, "[{x},{y,z}]", "[{z},{x,y}]"), first);
  }
}

// Far more ranks than can be searched exhaustively: still a plan, and no dearer than gathering everything.
TEST_F(ReshardTest, LargeMeshesHaveAPlan) {
  absl::StatusOr<ReshardPlan> found =
      plan("a=16,b=8,c=8,d=4", {4096, 4096}, "[{a,d},{b}] partial{c:sum}", "[{b},{c,a}]");
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(found->steps.back().layout.print(mesh_), "[{b},{c,a}]");
  double gather = 4096.0 * 4096 * 4 / machine_.linkBandwidth;
  EXPECT_LT(inSeconds(found->cost), gather);
}

}  // namespace
}  // namespace weft
