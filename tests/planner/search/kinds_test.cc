// Machines of several kinds of devices: what submeshes take and hold on their own kind, and where the search puts
// stages.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "absl/strings/str_cat.h"
#include "planner/check_request.h"
#include "planner/cost/step_model.h"
#include "planner/derive/derive.h"
#include "planner/search/choose_recompute.h"
#include "planner/search/plan.h"
#include "planner/search/sketches.h"
#include "tests/planner/search/chain_program.h"

namespace weft::testing {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kLayers = 10;

// Of one device on one node.
std::string kind(const std::string& name, double flops, int64_t memory = 0) {
  return absl::StrCat("[kind ", name, "]\nflops = ", flops, "\ndevices_per_node = 1\nnodes = 1\n",
                      memory > 0 ? absl::StrCat("memory = ", memory, "\n") : "");
}

std::string machineOf(const std::string& kinds) {
  return "memory_bandwidth = 1e13\nlaunch_latency = 1e-9\nlink_bandwidth = 1e12\nlink_latency = 1e-9\n"
         "network_bandwidth = 1e12\nnetwork_latency = 1e-9\n" +
         kinds;
}

// Five layers on each of two stages.
ProgramGraph twoStages() {
  return chainProgram({.layers = kLayers, .rows = 256, .width = 256, .stages = 2}).graph;
}

CompileOptions pinned(const std::string& machine) {
  return {.mode = Mode::kSemi, .mesh = "dp=1", .machine = machine, .micro = 8, .schedule = "1f1b", .recompute = "none"};
}

struct Model {
  std::unique_ptr<StepModel> model;
  StepNeeds needs;
};

Model modelOf(const CompileOptions& request) {
  ProgramGraph graph = twoStages();
  absl::StatusOr<Derivation> derived = deriveDecisions(graph, request, {});
  EXPECT_TRUE(derived.ok()) << derived.status();
  absl::StatusOr<std::unique_ptr<StepModel>> model =
      StepModel::create(std::move(graph), derived->decisions, *weft::machineOf(request), {});
  EXPECT_TRUE(model.ok()) << model.status();
  const absl::StatusOr<StepNeeds> needs = (*model)->needs(derived->decisions);
  EXPECT_TRUE(needs.ok()) << needs.status();
  return {*std::move(model), *needs};
}

double allOf(const schedule::StageTimes& stage) {
  return stage.f + stage.b.value_or(stage.i + stage.w);
}

TEST(Kinds, EachSubmeshTakesTheTimesOfItsOwn) {
  const std::string fast = kind("fast", 4e12);
  const std::string slow = kind("slow", 1e12);
  const StepNeeds mixed = modelOf(pinned(machineOf(fast + slow))).needs;
  const StepNeeds turned = modelOf(pinned(machineOf(slow + fast))).needs;
  const StepNeeds allFast = modelOf(pinned(machineOf(fast + kind("other", 4e12)))).needs;
  const StepNeeds allSlow = modelOf(pinned(machineOf(slow + kind("other", 1e12)))).needs;
  EXPECT_EQ(allOf(mixed.times.stages[0]), allOf(allFast.times.stages[0]));
  EXPECT_EQ(allOf(mixed.times.stages[1]), allOf(allSlow.times.stages[1]));
  EXPECT_EQ(allOf(turned.times.stages[0]), allOf(allSlow.times.stages[0]));
  EXPECT_EQ(allOf(turned.times.stages[1]), allOf(allFast.times.stages[1]));
  EXPECT_GT(allOf(mixed.times.stages[1]), 2 * allOf(allFast.times.stages[1]));
  EXPECT_EQ(mixed.submeshes[0].after, allFast.submeshes[0].after);
  EXPECT_GT(mixed.stepTime(), allFast.stepTime());
  EXPECT_LT(mixed.stepTime(), allSlow.stepTime());
}

// Two kinds that are alike are one machine.
TEST(Kinds, ThatAreAlikeAreAsOne) {
  const StepNeeds two = modelOf(pinned(machineOf(kind("a", 4e12) + kind("b", 4e12)))).needs;
  const StepNeeds one = modelOf(pinned(machineOf("flops = 4e12\ndevices_per_node = 1\nnodes = 2\n"))).needs;
  EXPECT_EQ(two.stepTime(), one.stepTime());
  EXPECT_EQ(two.times.comm, one.times.comm);
}

// What is sent between kinds is as fast as the slower end.
TEST(Kinds, TransfersTakeTheSlowerSide) {
  const auto withNetwork = [](const std::string& bandwidth) {
    return kind("slow", 1e12) + "network_bandwidth = " + bandwidth + "\n";
  };
  const double both = modelOf(pinned(machineOf(kind("fast", 4e12) + withNetwork("1e9")))).needs.times.comm;
  EXPECT_EQ(both, modelOf(pinned(machineOf(withNetwork("1e9") + kind("fast", 4e12)))).needs.times.comm);
  EXPECT_GT(both, 100 * modelOf(pinned(machineOf(kind("fast", 4e12) + withNetwork("1e12")))).needs.times.comm);
}

TEST(Kinds, LimitsAreTheMemoryOfEach) {
  CompileOptions request = pinned(machineOf(kind("large", 1e12, 80000) + kind("small", 1e12, 30000)));
  const StageMeshes meshes = {{*Mesh::parse("dp=1")}, {0, 1}};
  const MemoryLimits limits = *memoryLimitsOf(request);
  EXPECT_EQ(limits.ofSubmeshes(meshes), (std::vector<int64_t>{80000, 30000}));
  EXPECT_EQ(limits.least(), 30000);
  EXPECT_EQ(limits.mean(2), 55000);
  EXPECT_EQ(limits.mean(1), 80000);
  EXPECT_EQ(limits.print(), "80000 (large), 30000 (small)");
  EXPECT_TRUE(limits.hold(meshes, {80000, 30000}));
  EXPECT_FALSE(limits.hold(meshes, {30000, 30001}));
  request.memoryLimit = 40000;
  EXPECT_EQ(memoryLimitsOf(request)->ofSubmeshes(meshes), (std::vector<int64_t>{40000, 30000}));
  request.machine = "memory = 30000";
  EXPECT_EQ(memoryLimitsOf(request)->ofSubmeshes(meshes), (std::vector<int64_t>{40000, 40000})) << "as ever";
}

TEST(Kinds, MoreRanksThanAllHaveAreRefused) {
  ProgramGraph graph = twoStages();
  CompileOptions request = pinned(machineOf(kind("fast", 4e12) + kind("slow", 1e12)));
  request.mesh = "dp=2";
  const absl::StatusOr<Derivation> derived = deriveDecisions(graph, request, {});
  EXPECT_THAT(std::string(derived.status().message()),
              ::testing::AllOf(HasSubstr("takes 4 devices"), HasSubstr("has 2"),
                               HasSubstr("1 nodes of 1 'fast' and 1 nodes of 1 'slow'")));
}

// What is recomputed is what the rank that is short of memory needs; the other keeps all.
TEST(Kinds, OnlyTheSmallRecomputes) {
  const ProgramGraph program = chainProgram({.layers = 8, .rows = 4096, .width = 16, .stages = 2, .relus = 3}).graph;
  CompileOptions request = pinned(machineOf(kind("a", 1e12) + kind("b", 1e12)));
  request.recompute = "auto";
  request.schedule = "gpipe";  // both hold all micro-batches
  const absl::StatusOr<Attempt> free = predictProgram(program, request, {});
  ASSERT_TRUE(free.ok()) << free.status();
  const std::vector<int64_t>& all = free->decisions.prediction->peakBytes;
  for (const int small : {0, 1}) {
    const auto memory = [&](int submesh) { return submesh == small ? all[submesh] * 8 / 10 : all[submesh]; };
    request.machine = machineOf(kind("a", 1e12, memory(0)) + kind("b", 1e12, memory(1)));
    const absl::StatusOr<Attempt> made = predictProgram(program, request, {});
    ASSERT_TRUE(made.ok()) << made.status();
    EXPECT_TRUE(made->fits);
    EXPECT_LE(made->submeshes[small].peakBytes, memory(small));
    EXPECT_EQ(made->submeshes[1 - small].peakBytes, all[1 - small]);
    std::map<int64_t, int64_t> recomputed;
    for (const OperatorDecision& op : made->decisions.operators) {
      recomputed[op.stage] += op.recompute ? 1 : 0;
    }
    EXPECT_GT(recomputed[small], 0);
    EXPECT_EQ(recomputed[1 - small], 0);
  }
}

// The program with its first layers on stage 0, the others on stage 1.
ProgramGraph cutAfter(ProgramGraph graph, int64_t layers) {
  for (GraphOperator& op : graph.operators) {
    if (op.phase == Phase::kForward) {
      op.userStage = op.id < 2 * layers ? 0 : 1;
    }
  }
  return graph;
}

int64_t layersOnFirst(const ClosedRequest& plan) {
  int64_t layers = 0;
  for (const GraphOperator& op : plan.graph->operators) {
    layers += op.phase == Phase::kForward && op.facts.kind == kMatmul.kind && op.userStage == 0 ? 1 : 0;
  }
  return layers;
}

// Two ranks, one after the other.
CompileOptions oneStageEach() {
  return {.mode = Mode::kAuto, .mesh = "dp=1", .devices = 2, .without = {Freedom::kVirtualStages}};
}

struct CutPlan {
  int64_t layers = 0;
  ClosedRequest plan;
};

// The best of all cuts in two, each of them pinned.
CutPlan bestOfAllCuts(const ProgramGraph& graph, const CompileOptions& request) {
  std::optional<CutPlan> best;
  for (int64_t layers = 1; layers < kLayers; ++layers) {
    const absl::StatusOr<ClosedRequest> plan = closeRequest(graphForAll(cutAfter(graph, layers)), request, {});
    EXPECT_TRUE(plan.ok()) << plan.status();
    EXPECT_LE(plan->attempt.decisions.prediction->bound, plan->attempt.time) << layers;
    if (!best || isBetter(plan->attempt, best->plan.attempt)) {
      best = CutPlan{layers, *plan};
    }
  }
  return *best;
}

TEST(Kinds, TheSlowOneGetsFewerLayers) {
  const ProgramGraph graph = chainProgram({.layers = kLayers, .rows = 256, .width = 256}).graph;
  for (const bool fastFirst : {true, false}) {
    const std::string fast = kind("fast", 4e12);
    const std::string slow = kind("slow", 1e12);
    CompileOptions request = oneStageEach();
    request.machine = machineOf(fastFirst ? fast + slow : slow + fast);
    const absl::StatusOr<ClosedRequest> found = closeRequest(graphForAll(graph), request, {});
    ASSERT_TRUE(found.ok()) << found.status();
    const CutPlan best = bestOfAllCuts(graph, request);
    EXPECT_EQ(found->attempt.time, best.plan.attempt.time) << fastFirst;
    EXPECT_EQ(layersOnFirst(*found), best.layers) << fastFirst;
    EXPECT_GE(fastFirst ? best.layers : kLayers - best.layers, 7) << "of ten, four to one";
    EXPECT_LE(found->attempt.decisions.prediction->bound, found->attempt.time);
    // Nothing given: never worse, never below its bound.
    request.mesh.clear();
    request.without.clear();
    const absl::StatusOr<ClosedRequest> open = closeRequest(graphForAll(graph), request, {});
    ASSERT_TRUE(open.ok()) << open.status();
    EXPECT_LE(open->attempt.time, found->attempt.time);
    EXPECT_LE(open->attempt.decisions.prediction->bound, open->attempt.time);
  }
}

// A sketch of a plan on two kinds is what its prediction comes to.
TEST(Kinds, SketchesAreOfTheirKinds) {
  const ProgramGraph graph = chainProgram({.layers = kLayers, .rows = 256, .width = 256}).graph;
  CompileOptions request = withFreedomsPinned(oneStageEach());
  request.machine = machineOf(kind("fast", 4e12) + kind("slow", 1e12));
  PlanningMemo memo;
  SearchMemory before;
  const GraphFor graphs = graphForAll(graph);
  const absl::StatusOr<std::unique_ptr<Sketches>> sketches = Sketches::create(graphs, request, {memo, before});
  ASSERT_TRUE(sketches.ok()) << sketches.status();
  const std::optional<Sketch> first = (*sketches)->next();
  ASSERT_TRUE(first.has_value());
  ASSERT_EQ(first->cut.first.size(), 2U);
  const absl::StatusOr<ClosedRequest> found = closeRequest(graphs, request, {});
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_NEAR(static_cast<double>(first->cut.time) / static_cast<double>(found->attempt.time), 1, 0.1);
  EXPECT_LE(first->cut.bound, found->attempt.time);
}

// Of equal speed: as many layers lie on the small one as it has room for.
TEST(Kinds, TheSmallOneHoldsFewerLayers) {
  const ProgramGraph graph = chainProgram({.layers = kLayers, .rows = 64, .width = 256}).graph;
  CompileOptions request = oneStageEach();
  request.machine = machineOf(kind("a", 1e12) + kind("b", 1e12));
  const absl::StatusOr<ClosedRequest> even = closeRequest(graphForAll(graph), request, {});
  ASSERT_TRUE(even.ok()) << even.status();
  ASSERT_EQ(layersOnFirst(*even), kLayers / 2);
  const std::vector<int64_t> peaks = even->attempt.decisions.prediction->peakBytes;
  const int64_t small = peaks[1] * 7 / 10;
  request.machine = machineOf(kind("large", 1e12, 4 * peaks[0]) + kind("small", 1e12, small));
  const absl::StatusOr<ClosedRequest> found = closeRequest(graphForAll(graph), request, {});
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_TRUE(found->attempt.fits);
  EXPECT_GT(layersOnFirst(*found), kLayers / 2);
  EXPECT_LE(found->attempt.submeshes[1].peakBytes, small);
  EXPECT_GT(found->attempt.submeshes[0].peakBytes, small) << "the limit is of its own kind";
  const CutPlan best = bestOfAllCuts(graph, request);
  EXPECT_EQ(found->attempt.time, best.plan.attempt.time);
  EXPECT_LE(found->attempt.decisions.prediction->bound, found->attempt.time);
}

}  // namespace
}  // namespace weft::testing
