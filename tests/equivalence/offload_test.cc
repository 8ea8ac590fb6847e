// The optimizer's state in the host's memory: bytes and seconds of a plan with it are those of the plan without, less
// the state of the record's layouts, plus buffers and copies; mode auto offloads where that pays, and only there.
//
//   weft_offload_test --all    mode auto of more models under more limits
#include <gtest/gtest.h>

#include <algorithm>

#include "planner/check_request.h"
#include "planner/explain/plan_summary.h"
#include "planner/explain/ways_to_fit.h"
#include "planner/machine/times.h"
#include "planner/search/segment_costs.h"
#include "runtime/base/arithmetic.h"
#include "runtime/base/status.h"
#include "tests/equivalence/model_problem.h"
#include "tests/planner/search/chain_program.h"
#include "tests/support/seeds.h"

namespace weft::testing {

bool allLimits = false;

namespace {

constexpr char kMachine[] = "a100-80g";

KnownModel gpt(int64_t layers = 4) {
  return gptModel("GPT", {.vocabulary = 512, .layers = layers, .width = 256, .heads = 4, .context = 64, .batch = 16});
}
KnownModel mlp() {
  return mlpModel("MLP", 256, {784, 1024, 1024, 1024, 10});
}

std::unique_ptr<ModelProblem> problemOf(const KnownModel& model) {
  absl::StatusOr<std::unique_ptr<ModelProblem>> made = ModelProblem::create(model);
  EXPECT_TRUE(made.ok()) << made.status();
  return *std::move(made);
}

// What leaves the device, from nothing but the arguments and how they lie.
struct Expected {
  int64_t host = 0, freed = 0, buffer = 0;
};

Expected expectedOf(const ProgramGraph& graph, const Decisions& record, int64_t submesh) {
  Expected made;
  std::map<std::string, int64_t> ofParameter;
  const StageMeshes meshes = record.meshes();
  for (size_t i = 0; i < graph.arguments.size(); ++i) {
    const GraphArgument& argument = graph.arguments[i];
    const ArgumentDecision& decision = record.arguments[i];
    if (argument.kind != ArgumentKind::kState || meshes.submeshes[decision.stage] != submesh) {
      continue;
    }
    EXPECT_EQ(argument.name, decision.name);
    const TensorType local = {decision.layout.localShape(argument.type.shape), argument.type.type};
    if (local.bytes() > kAlignment) {
      made.host += local.bytes();
      made.freed += alignUp(local.bytes());
      ofParameter[argument.name.substr(std::string("adam.m.").size())] += alignUp(local.bytes());
    }
  }
  for (const auto& [name, bytes] : ofParameter) {
    made.buffer = std::max(made.buffer, std::min(2 * bytes, made.freed));
  }
  return made;
}

void expectExact(const ModelProblem& problem, CompileOptions request) {
  request.machine = kMachine;
  request.offload = Offload::kNone;
  const absl::StatusOr<Attempt> device = problem.predict(request);
  request.offload = Offload::kState;
  const absl::StatusOr<Attempt> host = problem.predict(request);
  ASSERT_TRUE(device.ok() && host.ok()) << device.status() << host.status();
  const Machine machine = *machineOf(request);
  const ProgramGraph graph = **problem.graph(request.microBatches());
  Picoseconds onDevice = 0;  // the longest update of a submesh
  Picoseconds onHost = 0;
  for (size_t s = 0; s < device->submeshes.size(); ++s) {
    const SubmeshNeeds& before = device->submeshes[s];
    const SubmeshNeeds& after = host->submeshes[s];
    const Expected expected = expectedOf(graph, host->decisions, static_cast<int64_t>(s));
    ASSERT_TRUE(after.offloaded.has_value());
    EXPECT_GT(expected.host, 0);
    EXPECT_EQ(after.offloaded->hostBytes, expected.host);
    EXPECT_EQ(after.peakBytes, before.peakBytes - expected.freed + expected.buffer);
    EXPECT_EQ(peakOf(after.regions), after.peakBytes);
    EXPECT_EQ(after.after, before.after + hostCopyTime(machine, 2 * expected.host));
    EXPECT_EQ(after.before, before.before);
    onDevice = std::max(onDevice, before.after);
    onHost = std::max(onHost, after.after);
  }
  EXPECT_EQ(host->time, device->time - onDevice + onHost);
  EXPECT_EQ(host->decisions.offload, Offload::kState);
  EXPECT_EQ(device->decisions.offload, Offload::kNone);
}

TEST(OffloadTest, BytesAndSecondsAreExact) {
  for (const KnownModel& model : {gpt(), mlp()}) {
    const std::unique_ptr<ModelProblem> problem = problemOf(model);
    for (const std::string mesh : {"dp=4", "dp=2,tp=2"}) {
      for (int zero = 0; zero <= 3; ++zero) {
        SCOPED_TRACE(::testing::Message() << model.name << " on " << mesh << ", ZeRO " << zero);
        // By words: with other prices a search may find other splits.
        CompileOptions request = {.mode = Mode::kSemi, .mesh = mesh, .micro = 2, .zero = zero};
        if (mesh == "dp=2,tp=2") {
          request.layouts = model.tensorParallel;
        }
        expectExact(*problem, request);
        request.stages = stagesOf(problem->parameters(), 2);
        expectExact(*problem, request);
      }
    }
  }
}

// An update without state has nothing to copy.
TEST(OffloadTest, WhatIsNotThereCostsNothing) {
  const GraphBuilder chain = chainProgram({.layers = 3, .rows = 64, .width = 64});
  CompileOptions request = {.mesh = "dp=2", .machine = kMachine, .micro = 2};
  const absl::StatusOr<Attempt> device = predictProgram(chain.graph, request, {});
  request.offload = Offload::kState;
  const absl::StatusOr<Attempt> host = predictProgram(chain.graph, request, {});
  ASSERT_TRUE(device.ok() && host.ok()) << device.status() << host.status();
  EXPECT_EQ(host->time, device->time);
  EXPECT_EQ(host->peakBytes, device->peakBytes);
  EXPECT_FALSE(host->submeshes[0].offloaded.has_value());
}

// With a second queue the copies run beside the kernels of the update: never longer than one after another, never
// shorter than without them.
TEST(OffloadTest, OverlapHidesCopies) {
  const std::unique_ptr<ModelProblem> problem = problemOf(gpt());
  CompileOptions request = {.mode = Mode::kLayouts, .mesh = "dp=4", .machine = kMachine, .micro = 2, .zero = 1};
  const auto timeOf = [&](bool overlap, Offload offload) {
    request.overlap = overlap;
    request.offload = offload;
    const absl::StatusOr<Attempt> attempt = problem->predict(request);
    EXPECT_TRUE(attempt.ok()) << attempt.status();
    return attempt->time;
  };
  const Picoseconds copies = timeOf(false, Offload::kState) - timeOf(false, Offload::kNone);
  const Picoseconds exposed = timeOf(true, Offload::kState) - timeOf(true, Offload::kNone);
  EXPECT_GE(exposed, 0);
  EXPECT_LT(exposed, copies);
}

ClosedRequest closed(const ModelProblem& problem, CompileOptions request, Offload offload) {
  request.offload = offload;
  absl::StatusOr<ClosedRequest> made = closeRequest(problem.graphs(), request, {});
  EXPECT_TRUE(made.ok()) << made.status();
  return *std::move(made);
}

// Of a request with no more memory than the least that a plan needs that offloads.
int64_t leastOnHost(const ModelProblem& problem, CompileOptions request) {
  request.memoryLimit = 1;
  return closed(problem, request, Offload::kState).attempt.peakBytes;
}

// At every limit no worse than without; where only plans that offload fit, one of them; none where memory is ample.
TEST(OffloadTest, AutoIsNeverWorseThanNone) {
  const KnownModel small = mlpModel("MLP", 16, {256, 256, 256, 256, 10});
  for (const KnownModel& model : allLimits ? std::vector<KnownModel>{small, gpt(2), mlp()} : std::vector{small}) {
    SCOPED_TRACE(model.name);
    const std::unique_ptr<ModelProblem> problem = problemOf(model);
    CompileOptions request = {.mode = Mode::kAuto, .devices = 2, .machine = kMachine};
    const ClosedRequest ample = closed(*problem, request, Offload::kAuto);
    EXPECT_EQ(ample.attempt.decisions.offload, Offload::kNone) << "memory is ample";
    std::vector<int64_t> limits = {leastOnHost(*problem, request)};
    for (const int64_t percent : allLimits ? std::vector<int64_t>{80, 60, 50, 40, 35, 30} : std::vector<int64_t>{50}) {
      limits.push_back(ample.attempt.peakBytes * percent / 100);
    }
    for (const int64_t limit : limits) {
      SCOPED_TRACE(limit);
      request.memoryLimit = limit;
      const ClosedRequest none = closed(*problem, request, Offload::kNone);
      const ClosedRequest best = closed(*problem, request, Offload::kAuto);
      EXPECT_FALSE(isBetter(none.attempt, best.attempt));
      const absl::StatusOr<Attempt> again = predictProgram(*best.graph, best.request, {});
      ASSERT_TRUE(again.ok()) << again.status();
      EXPECT_EQ(again->time, best.attempt.time);
      EXPECT_EQ(again->decisions.offload, best.attempt.decisions.offload);
      if (limit == limits[0]) {
        EXPECT_FALSE(none.attempt.fits);
        EXPECT_TRUE(best.attempt.fits);
        EXPECT_EQ(best.attempt.decisions.offload, Offload::kState);
      }
    }
  }
}

// Where nothing fits, the error names offload where it would help, and only there.
TEST(OffloadTest, WhatDoesNotFitMayFitWithIt) {
  const std::unique_ptr<ModelProblem> problem = problemOf(mlp());
  CompileOptions request = {.mode = Mode::kAuto, .devices = 1, .machine = kMachine, .memoryLimit = 1};
  const int64_t onDevice = closed(*problem, request, Offload::kNone).attempt.peakBytes;
  const int64_t onHost = leastOnHost(*problem, request);
  ASSERT_LT(onHost, onDevice);
  for (const int64_t limit : {onHost, onHost - 1}) {
    request.memoryLimit = limit;
    const ClosedRequest tight = closed(*problem, request, Offload::kNone);
    ASSERT_FALSE(tight.attempt.fits);
    const std::vector<WayToFit> ways = waysToFit(problem->graphs(), request, tight);
    const bool isNamed = std::any_of(ways.begin(), ways.end(), [](const WayToFit& way) {
      return way.what == "with the optimizer's state in the host's memory (offload state)";
    });
    EXPECT_EQ(isNamed, limit == onHost);
  }
}

// What is expected of blocks agrees with what is predicted of the plan, also where ZeRO shares the state.
TEST(OffloadTest, TheSearchExpectsWhatIsPredicted) {
  const std::unique_ptr<ModelProblem> problem = problemOf(gpt());
  const absl::StatusOr<std::shared_ptr<const ProgramGraph>> graph = problem->graph();
  for (const int level : {0, 1, 3}) {
    CompileOptions request = {.mode = Mode::kLayouts, .mesh = "dp=4", .machine = kMachine, .micro = 1, .zero = level};
    request.offload = Offload::kState;
    PlanningMemo memo;
    const absl::StatusOr<SegmentCosts> costs = segmentCosts(**graph, request, 0, memo);
    const absl::StatusOr<Attempt> attempt = problem->predict(request);
    ASSERT_TRUE(costs.ok() && attempt.ok()) << costs.status() << attempt.status();
    const SegmentCost& all = costs->segments[0];
    const SubmeshNeeds& needs = attempt->submeshes[0];
    EXPECT_EQ(all.offloadTime, needs.offloaded->time);
    EXPECT_EQ(all.bufferBytes, needs.offloaded->bufferBytes);
    EXPECT_EQ(all.onceTime + all.offloadTime, needs.before + needs.after);
    const MemorySummary memory = memoryOf(attempt->submeshes);
    EXPECT_EQ(all.bytesOfStep() + all.bufferBytes + all.passingBytes, memory.peakBytes - memory.activationBytes);
  }
}

}  // namespace
}  // namespace weft::testing

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  weft::testing::allLimits = weft::testing::wantsAll(argc, argv);
  return RUN_ALL_TESTS();
}
