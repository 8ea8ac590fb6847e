// The planner's searches on small programs, without the compiler.
#include "planner/search/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "absl/strings/str_cat.h"
#include "ir/layout/stage_mesh_text.h"
#include "planner/check_request.h"
#include "planner/derive/derive.h"
#include "planner/graph/segments.h"
#include "planner/search/block_program.h"
#include "planner/search/choose_recompute.h"
#include "planner/search/forward_graphs.h"
#include "tests/planner/search/chain_program.h"

namespace weft::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr int64_t kRowBytes = 4;

// A model of the derived record.
std::unique_ptr<StepModel> modelOf(const GraphBuilder& b, const CompileOptions& options,
                                   const Correction& correction = {}) {
  ProgramGraph graph = b.graph;
  absl::StatusOr<Derivation> derived = deriveDecisions(graph, options, {});
  EXPECT_TRUE(derived.ok()) << derived.status();
  absl::StatusOr<std::unique_ptr<StepModel>> model =
      StepModel::create(std::move(graph), std::move(derived->decisions), *machineOf(options), correction);
  EXPECT_TRUE(model.ok()) << model.status();
  return *std::move(model);
}

StepNeeds needsOf(StepModel& model) {
  const absl::StatusOr<StepNeeds> needs = model.needs(model.record());
  EXPECT_TRUE(needs.ok()) << needs.status();
  return *needs;
}

int64_t regionBytes(const SubmeshNeeds& needs, plan::MemoryClass memory) {
  int64_t bytes = 0;
  for (const StepRegion& region : needs.regions) {
    bytes += region.memory == memory ? region.bytes * region.slots : 0;
  }
  return bytes;
}

TEST(StepModel, CountsBytesAndSeconds) {
  const std::unique_ptr<StepModel> model = modelOf(chainProgram({.layers = 1, .rows = 64, .width = 32}), {});
  const StepNeeds needs = needsOf(*model);
  ASSERT_EQ(needs.submeshes.size(), 1U);
  const int64_t rows = 64 * 32 * kRowBytes;
  const int64_t weight = 32 * 32 * kRowBytes;
  EXPECT_EQ(regionBytes(needs.submeshes[0], plan::PARAMETER), weight);
  EXPECT_EQ(regionBytes(needs.submeshes[0], plan::INPUT), rows);
  EXPECT_EQ(regionBytes(needs.submeshes[0], plan::ACTIVATION), rows) << "relu's result; matmul's lies there too";
  // matmul, relu, sum; then the gradient of the sum, relu_grad, the contraction.
  const Machine machine;
  const double matmul = std::max(2.0 * 64 * 32 * 32 / machine.flops, (2.0 * rows + weight) / machine.memoryBandwidth);
  const double relus = (2.0 + 3.0) * rows / machine.memoryBandwidth;
  const double sums = (2.0 * rows + 4) / machine.memoryBandwidth;
  EXPECT_NEAR(inSeconds(needs.time), 2 * matmul + relus + sums + 6 * machine.launchLatency, 3e-12)
      << "half a picosecond for each of six";
}

TEST(StepModel, PricesTheReductionOfAGradient) {
  const GraphBuilder program = chainProgram({.layers = 1, .rows = 64, .width = 32});
  const std::unique_ptr<StepModel> model = modelOf(program, {.mesh = "dp=2"});
  const StepNeeds needs = needsOf(*model);
  const StepNeeds alone = needsOf(*modelOf(program, {}));
  EXPECT_EQ(regionBytes(needs.submeshes[0], plan::INPUT), 64 * 32 * kRowBytes / 2);
  EXPECT_EQ(regionBytes(needs.submeshes[0], plan::PARAMETER), regionBytes(alone.submeshes[0], plan::PARAMETER));
  const auto reductions = std::count_if(model->step().ops.begin(), model->step().ops.end(),
                                        [](const AnnotatedOp& op) { return op.kind == AnnotatedOp::Kind::kReshard; });
  EXPECT_EQ(reductions, 2) << "of the gradient and of the loss";
}

// Large gradients of ZeRO 2 are scattered where they are made. With overlap the rest of the pass runs beside that: what
// adds them to those of earlier micro-batches stands at its end.
TEST(StepModel, OverlapHidesScatteredGradients) {
  const GraphBuilder program = chainProgram({.layers = 6, .rows = 16384, .width = 4096});
  const auto backwardOf = [&](bool overlap) {
    const CompileOptions options = {
        .mesh = "dp=8", .machine = "a100-80g", .micro = 2, .zero = 2, .recompute = "none", .overlap = overlap};
    const std::unique_ptr<StepModel> model = modelOf(program, options);
    const std::vector<FunctionTime> functions = needsOf(*model).submeshes[0].functions;
    const auto backward = std::find_if(functions.begin(), functions.end(),
                                       [](const FunctionTime& each) { return each.kind == plan::BACKWARD; });
    EXPECT_NE(backward, functions.end());
    return *backward;
  };
  const FunctionTime overlapped = backwardOf(true);
  EXPECT_GT(overlapped.communication, 0);
  EXPECT_GT(2 * overlapped.hidden(), overlapped.communication);
  EXPECT_EQ(backwardOf(false).hidden(), 0);
}

TEST(StepModel, AScheduleHoldsItsMicroBatches) {
  const GraphBuilder program = chainProgram({.layers = 4, .rows = 64, .width = 16, .stages = 2});
  const auto slots = [&](const std::string& kind) {
    return needsOf(*modelOf(program, {.micro = 8, .schedule = kind})).submeshes[0].slotsOf(0);
  };
  EXPECT_EQ(slots("gpipe"), 8);
  EXPECT_EQ(slots("1f1b"), 2);
}

TEST(StepModel, StagesOfASubmeshHoldTheirOwnMicroBatches) {
  const GraphBuilder program = chainProgram({.layers = 4, .rows = 64, .width = 16, .stages = 4});
  const SubmeshNeeds first =
      needsOf(*modelOf(program, {.micro = 8, .schedule = "interleaved", .virtualStages = 2})).submeshes[0];
  EXPECT_GT(first.slotsOf(0), first.slotsOf(2));
}

// Of schedules and recomputation in any order a model says what one says that was asked nothing else.
TEST(StepModel, WhatWasAskedBeforeChangesNoAnswer) {
  const GraphBuilder program = chainProgram({.layers = 4, .rows = 64, .width = 32, .stages = 2, .relus = 2});
  const CompileOptions options = {.micro = 8, .schedule = "1f1b"};
  const std::unique_ptr<StepModel> model = modelOf(program, options);
  std::vector<Decisions> records;
  // Of the forward pass; of more kinds than step programs are kept.
  for (const size_t recomputed : {0, 1, 2, 3, 4, 12}) {
    for (const char* kind : {"1f1b", "zb_h1", "zb_h2"}) {
      records.push_back(model->record());
      records.back().schedule.kind = kind;
      for (size_t op = 0; op < recomputed; ++op) {
        records.back().operators[op].recompute = true;
      }
    }
  }
  std::set<std::pair<int64_t, Picoseconds>> answers;
  for (const bool again : {false, true}) {
    for (const Decisions& record : records) {
      const absl::StatusOr<StepNeeds> needs = model->needs(record);
      const absl::StatusOr<StepNeeds> alone = modelOf(program, options)->needs(record);
      ASSERT_TRUE(needs.ok() && alone.ok()) << needs.status() << alone.status();
      ASSERT_EQ(needs->submeshes.size(), 2U);
      EXPECT_EQ(needs->stepTime(), alone->stepTime()) << record.schedule.kind << again;
      for (const size_t s : {0, 1}) {
        EXPECT_EQ(needs->submeshes[s].peakBytes, alone->submeshes[s].peakBytes) << record.schedule.kind << again;
        EXPECT_EQ(needs->submeshes[s].activations.all(), alone->submeshes[s].activations.all());
      }
      answers.emplace(needs->peakBytes(), needs->stepTime());
    }
    std::ranges::reverse(records);
  }
  EXPECT_GT(answers.size(), records.size() / 2) << "most differ";
  const absl::StatusOr<StepNeeds> one = model->needs(records.front(), 1), all = model->needs(records.front());
  ASSERT_TRUE(one.ok() && all.ok()) << one.status() << all.status();
  EXPECT_LT(one->time, all->time) << "of other micro-batches";
}

TEST(StepModel, AddsWhatTheCompilerMeasured) {
  const GraphBuilder program = chainProgram({});
  const int64_t bytes = needsOf(*modelOf(program, {})).peakBytes();
  EXPECT_EQ(needsOf(*modelOf(program, {}, {{512}})).peakBytes(), bytes + 512);
}

struct Planned {
  absl::StatusOr<Decisions> record;
  int64_t recomputed() const {
    return std::count_if(record->operators.begin(), record->operators.end(),
                         [](const OperatorDecision& op) { return op.recompute; });
  }
};

Planned planned(const GraphBuilder& b, const CompileOptions& options, const Correction& correction = {}) {
  Planned made{planProgram(graphForAll(b.graph), options, correction)};
  EXPECT_TRUE(made.record.ok()) << made.record.status();
  return made;
}

TEST(PlanProgram, SearchesNothingWhereTheRequestSaysAll) {
  const Planned one = planned(chainProgram({}), {});
  EXPECT_FALSE(one.record->prediction);
  const Planned staged = planned(chainProgram({.stages = 2}), {.micro = 4, .schedule = "gpipe"});
  EXPECT_EQ(staged.record->schedule.kind, "gpipe");
  EXPECT_FALSE(staged.record->prediction);
}

TEST(PlanProgram, TakesTheShortestScheduleThatFits) {
  const GraphBuilder program = chainProgram({.layers = 4, .rows = 256, .width = 32, .stages = 2});
  CompileOptions options = {.micro = 8, .recompute = "none"};
  const Planned open = planned(program, options);
  ASSERT_TRUE(open.record->prediction);
  for (const char* kind : {"gpipe", "1f1b", "zb_h1"}) {
    CompileOptions fixed = options;
    fixed.schedule = kind;
    const StepNeeds needs = needsOf(*modelOf(program, fixed));
    EXPECT_LE(open.record->prediction->time, needs.stepTime()) << kind;
    // What gpipe takes 1f1b takes too, in less memory.
    EXPECT_EQ(open.record->schedule.considered.find(kind) != std::string::npos, std::string(kind) != "gpipe") << kind;
  }
  CompileOptions tight = options;
  tight.schedule = "1f1b";
  options.memoryLimit = needsOf(*modelOf(program, tight)).peakBytes();
  const Planned limited = planned(program, options);
  EXPECT_LE(limited.record->prediction->most(), options.memoryLimit);
  EXPECT_GE(limited.record->prediction->time, open.record->prediction->time);
}

// Schedules that place stages in a loop and in a V share what is found out about splits, where that is the same: what
// is said of each is what it takes alone, on submeshes alike, with unlike meshes and of unlike devices.
TEST(PredictProgram, SchedulesTakeWhatEachTakesAlone) {
  const GraphBuilder program = chainProgram({.layers = 4, .rows = 256, .width = 64, .stages = 4});
  CompileOptions alike = {.mode = Mode::kLayouts, .mesh = "dp=2,tp=2", .micro = 8, .zero = 1};
  alike.without = {Freedom::kBatchAxes};  // what is said is of the splits that are best under all schedules
  CompileOptions unlike = alike;
  unlike.mesh = "";
  unlike.stageMeshes = "dp=4,tp=1;dp=1,tp=4";
  CompileOptions kinds = alike;
  kinds.machine =
      "memory_bandwidth = 1e11\nlink_bandwidth = 1e9\nlink_latency = 1e-6\nlaunch_latency = 1e-6\n"
      "network_bandwidth = 1e8\nnetwork_latency = 1e-5\n"
      "[kind fast]\nflops = 1e13\ndevices_per_node = 4\nnodes = 1\n"
      "[kind slow]\nflops = 1e7\ndevices_per_node = 4\nnodes = 1\n";
  for (CompileOptions options : {alike, unlike, kinds}) {
    options.virtualStages = 2;
    const absl::StatusOr<Attempt> open = predictProgram(program.graph, options, {});
    ASSERT_TRUE(open.ok()) << open.status();
    int compared = 0;
    for (const auto& entry : nlohmann::json::parse(open->decisions.schedule.considered)) {
      if (entry.contains("refused")) {
        continue;
      }
      options.schedule = entry["kind"];
      const absl::StatusOr<Attempt> alone = predictProgram(program.graph, options, {});
      ASSERT_TRUE(alone.ok()) << alone.status();
      EXPECT_EQ(entry["seconds"], inSeconds(alone->time)) << entry;
      EXPECT_EQ(entry["peak_bytes"], alone->peakBytes) << entry;
      ++compared;
    }
    EXPECT_GT(compared, 4);
  }
}

TEST(PlanProgram, RecomputesWhatALimitAsksForAndNoMore) {
  const GraphBuilder program = chainProgram({.layers = 6, .rows = 512, .width = 32});
  const int64_t peak = needsOf(*modelOf(program, {})).peakBytes();
  CompileOptions options = {.memoryLimit = peak};
  EXPECT_EQ(planned(program, options).recomputed(), 0);
  const int64_t kept = 512 * 32 * kRowBytes;  // one layer's
  options.memoryLimit = peak - kept;
  const Planned some = planned(program, options);
  EXPECT_GT(some.recomputed(), 0);
  EXPECT_LE(some.record->prediction->most(), options.memoryLimit);
  EXPECT_THAT(some.record->recomputeSummary, HasSubstr("step_seconds_otherwise"));
  options.memoryLimit = peak - 2 * kept;
  EXPECT_GT(planned(program, options).recomputed(), some.recomputed());
}

TEST(PlanProgram, TheMemoryOfTheMachineIsTheLimit) {
  const GraphBuilder program = chainProgram({.layers = 6, .rows = 512, .width = 32});
  const int64_t limit = needsOf(*modelOf(program, {})).peakBytes() - 1;
  const std::string machine = "memory = " + std::to_string(limit);
  const Planned made = planned(program, {.machine = machine});
  EXPECT_GT(made.recomputed(), 0);
  EXPECT_LE(made.record->prediction->most(), limit);
  EXPECT_EQ(planned(program, {.machine = machine, .memoryLimit = 2 * limit}).recomputed(), 0) << "the user's own";
}

TEST(PlanProgram, AMachineHasSoManyDevices) {
  const std::string machine = "devices_per_node = 2\nnodes = 1";
  EXPECT_TRUE(planned(chainProgram({}), {.mesh = "dp=2", .machine = machine}).record.ok());
  const absl::StatusOr<Decisions> refused =
      planProgram(graphForAll(chainProgram({}).graph), {.mesh = "dp=4", .machine = machine}, {});
  EXPECT_THAT(std::string(refused.status().message()),
              AllOf(HasSubstr("takes 4 devices"), HasSubstr("has 2 (1 nodes")));
  const absl::StatusOr<Decisions> stages =
      planProgram(graphForAll(chainProgram({.stages = 2}).graph), {.mesh = "dp=2", .machine = machine}, {});
  EXPECT_THAT(std::string(stages.status().message()), HasSubstr("takes 4 devices"));
}

TEST(PlanProgram, ListensToACorrection) {
  const GraphBuilder program = chainProgram({.layers = 6, .rows = 512, .width = 32});
  const CompileOptions options = {.memoryLimit = needsOf(*modelOf(program, {})).peakBytes()};
  EXPECT_EQ(planned(program, options).recomputed(), 0);
  EXPECT_GT(planned(program, options, {{64}}).recomputed(), 0) << "64 bytes more than predicted do not fit";
}

TEST(PlanProgram, NothingFitsIsLeftToTheCompiler) {
  const GraphBuilder program = chainProgram({});
  const Planned none = planned(program, {.memoryLimit = 1000});
  ASSERT_TRUE(none.record->prediction);
  EXPECT_GT(none.record->prediction->most(), 1000);
}

TEST(PlanProgram, GathersInEachCallWhereALimitAsksForIt) {
  const GraphBuilder program = chainProgram({.layers = 4, .rows = 32, .width = 128});
  CompileOptions options = {.mesh = "dp=2", .micro = 2, .zero = 3, .recompute = "none"};
  const int64_t once = needsOf(*modelOf(program, options)).peakBytes();
  options.memoryLimit = once - 128 * 128 * kRowBytes;
  const Planned limited = planned(program, options);
  EXPECT_LE(limited.record->prediction->most(), options.memoryLimit);
  const auto each = std::count_if(limited.record->arguments.begin(), limited.record->arguments.end(),
                                  [](const ArgumentDecision& a) { return a.gather == GatherPolicy::kEachCall; });
  EXPECT_GT(each, 0);
  EXPECT_LT(each, 4) << "what the limit leaves room for is gathered once";
  const std::unique_ptr<StepModel> model = modelOf(program, options);
  Decisions always = model->record();
  for (ArgumentDecision& argument : always.arguments) {
    argument.gather = argument.gather == GatherPolicy::kNone ? argument.gather : GatherPolicy::kEachCall;
  }
  ProgramGraph graph = program.graph;
  ASSERT_TRUE(deriveDecisions(graph, options, {}).ok());
  const absl::StatusOr<std::unique_ptr<StepModel>> all = StepModel::create(std::move(graph), always, Machine(), {});
  ASSERT_TRUE(all.ok()) << all.status();
  const StepNeeds needs = needsOf(**all);
  EXPECT_LT(limited.record->prediction->time, needs.stepTime());
}

// An open mesh is the best of those that it can be, each planned by itself.
TEST(PlanProgram, FindsTheSizesOfAMesh) {
  const GraphBuilder program = chainProgram({.layers = 4, .rows = 64, .width = 64});
  const std::vector<std::pair<std::string, std::string>> words = {{"*", "[{},{tp}]"}};
  CompileOptions open = {.mesh = "dp=?,tp=?", .devices = 4, .layouts = words};
  std::map<std::string, StepNeeds> needs;
  for (const char* mesh : {"dp=4,tp=1", "dp=2,tp=2", "dp=1,tp=4"}) {
    needs[mesh] = needsOf(*modelOf(program, {.mesh = mesh, .layouts = words}));
  }
  const auto least = [&](const auto& cost) {
    return std::min_element(needs.begin(), needs.end(),
                            [&](const auto& a, const auto& b) { return cost(a.second) < cost(b.second); })
        ->first;
  };
  const Planned fastest = planned(program, open);
  EXPECT_EQ(fastest.record->mesh.print(), least([](const StepNeeds& n) { return n.stepTime(); }));
  EXPECT_THAT(fastest.record->notes.back(),
              AllOf(HasSubstr("found for mesh 'dp=?,tp=?' on 4 devices: "), HasSubstr("dp=2,tp=2")));
  const std::string smallest = least([](const StepNeeds& n) { return n.peakBytes(); });
  EXPECT_NE(smallest, fastest.record->mesh.print());
  open.memoryLimit = needs[smallest].peakBytes();
  EXPECT_EQ(planned(program, open).record->mesh.print(), smallest) << "the only one that fits";
}

// The level that takes the least time of those that fit: sharing the update among ranks may save more than the gathers
// take.
TEST(PlanProgram, FindsTheLevelOfZero) {
  const GraphBuilder program = chainProgram({.layers = 4, .rows = 8, .width = 128});
  CompileOptions open = {.mesh = "dp=4", .zero = kFindZero, .recompute = "none"};
  std::vector<StepNeeds> needs;
  for (const int level : {0, 1, 2, 3}) {
    needs.push_back(needsOf(*modelOf(program, {.mesh = "dp=4", .zero = level, .recompute = "none"})));
  }
  int64_t least = needs[0].peakBytes();
  for (const StepNeeds& level : needs) {
    least = std::min(least, level.peakBytes());
  }
  for (const int64_t limit : {int64_t{0}, needs[0].peakBytes() - 1, least}) {
    open.memoryLimit = limit;
    const Planned found = planned(program, open);
    EXPECT_TRUE(limit == 0 || found.record->prediction->most() <= limit) << limit;
    for (const StepNeeds& level : needs) {
      if (limit == 0 || level.peakBytes() <= limit) {
        EXPECT_LE(found.record->prediction->time, level.stepTime()) << limit;
      }
    }
    EXPECT_THAT(found.record->notes.back(), HasSubstr("zero 0")) << limit;
  }
  ProgramGraph forward = program.graph;
  std::erase_if(forward.results, [](const GraphResult& result) { return result.updates.has_value(); });
  const absl::StatusOr<Decisions> none = planProgram(graphForAll(forward), open, {});
  ASSERT_TRUE(none.ok()) << none.status();
  EXPECT_EQ(none->zero, 0) << "nothing is updated";
}

// Of a program that is cut in the middle or not at all: everything that mode auto may choose, written out.
std::vector<std::pair<CompileOptions, ProgramGraph>> everyPlan(const ChainOptions& chain, int64_t devices,
                                                               int64_t limit) {
  std::vector<std::pair<CompileOptions, ProgramGraph>> plans;
  for (const int64_t stages : {1, 2}) {
    const int64_t ranks = devices / stages;
    for (int64_t dp = 1; dp <= ranks; dp *= 2) {
      for (const int64_t micro : {1, 2, 4, 8}) {
        for (const int zero : {0, 1, 2, 3}) {
          CompileOptions closed = {.mode = Mode::kLayouts, .micro = micro, .zero = zero, .memoryLimit = limit};
          closed.mesh = absl::StrCat("dp=", dp, ",tp=", ranks / dp);
          closed.schedule = stages == 1 ? "auto" : "1f1b";
          ChainOptions staged = chain;
          staged.stages = stages;
          plans.emplace_back(closed, chainProgram(staged).graph);
        }
      }
    }
  }
  return plans;
}

TEST(ModeAuto, IsNoWorseThanAnyPlanWrittenOut) {
  const ChainOptions chain = {.layers = 4, .rows = 64, .width = 128};
  const ProgramGraph graph = chainProgram(chain).graph;
  std::vector<int64_t> limits = {0};
  for (size_t i = 0; i < limits.size(); ++i) {
    CompileOptions open = {.mode = Mode::kAuto, .devices = 4, .memoryLimit = limits[i]};
    const absl::StatusOr<ClosedRequest> found = closeRequest(graphForAll(graph), open, {});
    ASSERT_TRUE(found.ok()) << found.status();
    const Attempt& best = found->attempt;
    EXPECT_THAT(best.decisions.notes.back(), HasSubstr("mode auto: found "));
    for (const auto& [closed, staged] : everyPlan(chain, 4, limits[i])) {
      const absl::StatusOr<Attempt> other = predictProgram(staged, closed, {});
      EXPECT_FALSE(other.ok() && other->fits && (!best.fits || other->time < best.time))
          << closed.mesh << ", micro " << *closed.micro << ", zero " << *closed.zero << ", limit " << limits[i] << ": "
          << other->time << " against " << best.time;
      if (other.ok()) {
        EXPECT_GE(other->time, best.decisions.prediction->bound) << closed.mesh << " takes less than any plan can";
      }
    }
    if (i == 0) {
      limits = {0, best.peakBytes * 7 / 10, best.peakBytes / 2};
    }
  }
}

// Where the user gives the meshes of stages alone, the program is cut into as many: against every cut between layers,
// written out.
TEST(ModeAuto, CutsTheProgramForTheStageMeshesThatAreGiven) {
  constexpr int64_t kLayers = 6;
  ChainOptions chain = {.layers = kLayers, .rows = 48 * 16, .width = 256};
  const ProgramGraph graph = chainProgram(chain).graph;
  chain.stages = kLayers;
  const ProgramGraph layers = chainProgram(chain).graph;
  for (const char* meshes : {"dp=3,tp=1;dp=1,tp=1", "dp=1,tp=1;dp=2,tp=1", "dp=1,tp=2;dp=3,tp=1"}) {
    CompileOptions open = {.mode = Mode::kAuto, .stageMeshes = meshes};
    const absl::StatusOr<ClosedRequest> found = closeRequest(graphForAll(graph), open, {});
    ASSERT_TRUE(found.ok()) << found.status();
    EXPECT_EQ(printStageMeshes(found->attempt.decisions.meshes().ofSubmesh), meshes);
    for (int64_t first = 1; first < kLayers; ++first) {
      ProgramGraph staged = layers;
      for (GraphOperator& op : staged.operators) {
        op.userStage = op.userStage ? std::optional<int64_t>(*op.userStage < first ? 0 : 1) : std::nullopt;
      }
      for (const int64_t micro : {1, 4, 16}) {
        for (const int zero : {0, 1, 3}) {
          const CompileOptions closed = {
              .mode = Mode::kLayouts, .stageMeshes = meshes, .micro = micro, .zero = zero, .schedule = "auto"};
          const absl::StatusOr<Attempt> other = predictProgram(staged, closed, {});
          ASSERT_TRUE(other.ok()) << other.status();
          EXPECT_LE(found->attempt.time, other->time)
              << meshes << ", " << first << " layers first, micro " << micro << ", zero " << zero;
          EXPECT_GE(other->time, found->attempt.decisions.prediction->bound) << meshes;
        }
      }
    }
  }
}

// Five layers, of which the user puts four on the first of two stages: every plan on four ranks, each stage on as many
// of them as it may have, written out.
std::vector<CompileOptions> everyPlanOfTwoStages() {
  std::vector<CompileOptions> plans;
  for (const int64_t first : {1, 2, 3}) {
    for (int64_t dp = 1; dp <= first; ++dp) {
      for (int64_t other = 1; other <= 4 - first; ++other) {
        if (first % dp != 0 || (4 - first) % other != 0) {
          continue;
        }
        for (const int64_t micro : {1, 2, 4, 8, 16}) {
          for (const int zero : {0, 1, 2, 3}) {
            CompileOptions closed = {.mode = Mode::kLayouts, .micro = micro, .zero = zero};
            closed.stageMeshes =
                absl::StrCat("dp=", dp, ",tp=", first / dp, ";dp=", other, ",tp=", (4 - first) / other);
            plans.push_back(closed);
          }
        }
      }
    }
  }
  return plans;
}

ProgramGraph twoUnlikeStages() {
  ProgramGraph graph = chainProgram({.layers = 5, .rows = 48 * 16, .width = 256, .stages = 5}).graph;
  for (GraphOperator& op : graph.operators) {
    op.userStage = op.userStage ? std::optional<int64_t>(*op.userStage < 4 ? 0 : 1) : std::nullopt;
  }
  return graph;
}

TEST(ModeAuto, FindsSubmeshesOfUnlikeSizes) {
  const ProgramGraph graph = twoUnlikeStages();
  CompileOptions open = {.mode = Mode::kAuto, .devices = 4};
  const absl::StatusOr<ClosedRequest> found = closeRequest(graphForAll(graph), open, {});
  ASSERT_TRUE(found.ok()) << found.status();
  const Attempt& best = found->attempt;
  const StageMeshes meshes = best.decisions.meshes();
  EXPECT_EQ(meshes.ofStage(0).ranks(), 3) << found->request.mesh << found->request.stageMeshes;
  EXPECT_EQ(meshes.ofStage(1).ranks(), 1);
  EXPECT_EQ(meshes.ranks(), 4);
  for (const CompileOptions& closed : everyPlanOfTwoStages()) {
    const absl::StatusOr<Attempt> other = predictProgram(graph, closed, {});
    if (other.ok()) {
      EXPECT_LE(best.time, other->time) << closed.stageMeshes << ", micro " << *closed.micro << ", zero "
                                        << *closed.zero;
      EXPECT_GE(other->time, best.decisions.prediction->bound) << closed.stageMeshes;
    }
  }
  open.without = {Freedom::kStageMeshes};
  const absl::StatusOr<ClosedRequest> without = closeRequest(graphForAll(graph), open, {});
  ASSERT_TRUE(without.ok()) << without.status();
  EXPECT_TRUE(without->attempt.decisions.meshes().same()) << without->request.stageMeshes;
  EXPECT_GT(without->attempt.time, best.time);
  open.without = {};
  open.mesh = "dp=?,tp=?";
  const absl::StatusOr<ClosedRequest> pinned = closeRequest(graphForAll(graph), open, {});
  ASSERT_TRUE(pinned.ok()) << pinned.status();
  EXPECT_TRUE(pinned->attempt.decisions.meshes().same()) << "the user's mesh is that of all";
  open.mesh = "";
  open.machine = "devices_per_node = 2\nlink_bandwidth = 1e10\nlink_latency = 2e-6\n";
  open.machine += "network_bandwidth = 2e10\nnetwork_latency = 2e-6";
  const absl::StatusOr<ClosedRequest> apart = closeRequest(graphForAll(graph), open, {});
  ASSERT_TRUE(apart.ok()) << apart.status();
  EXPECT_EQ(apart->attempt.decisions.meshes().ofStage(0).ranks(), 2) << "three would straddle nodes of two";
}

// Few rows and large weights that no four ranks divide, on two nodes of two: gradients are reduced inside of nodes, and
// the small sums of split products between them. Held against every plan without stages, the axes in either order.
// Where the batch's axes may split other factors either order serves.
TEST(ModeAuto, FindsTheOrderOfAxes) {
  const ProgramGraph graph = chainProgram({.layers = 2, .rows = 32, .width = 258}).graph;
  CompileOptions open = {.mode = Mode::kAuto, .devices = 4, .maxStages = 1};
  open.machine =
      "devices_per_node = 2\nlink_bandwidth = 1e12\nlink_latency = 1e-6\nnetwork_bandwidth = 1e10\n"
      "network_latency = 1e-6\nlaunch_latency = 1e-7";
  open.without = {Freedom::kBatchAxes};
  const absl::StatusOr<ClosedRequest> found = closeRequest(graphForAll(graph), open, {});
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(found->request.mesh, "tp=2,dp=2");
  for (const char* mesh : {"dp=4,tp=1", "dp=2,tp=2", "tp=2,dp=2", "dp=1,tp=4"}) {
    for (const int64_t micro : {1, 2, 4, 8}) {
      for (const int zero : {0, 1, 2, 3}) {
        CompileOptions closed = {.mode = Mode::kLayouts, .mesh = mesh, .machine = open.machine};
        closed.micro = micro;
        closed.zero = zero;
        closed.without = open.without;
        const absl::StatusOr<Attempt> other = predictProgram(graph, closed, {});
        ASSERT_TRUE(other.ok()) << other.status();
        EXPECT_LE(found->attempt.time, other->time) << mesh << ", micro " << micro << ", zero " << zero;
      }
    }
  }
  open.without = {Freedom::kBatchAxes, Freedom::kAxisOrder};
  const absl::StatusOr<ClosedRequest> without = closeRequest(graphForAll(graph), open, {});
  ASSERT_TRUE(without.ok()) << without.status();
  EXPECT_GT(without->attempt.time, found->attempt.time) << without->request.mesh;
  open.without = {Freedom::kBatchAxes};
  open.mesh = "dp=?,tp=?";
  const absl::StatusOr<ClosedRequest> pinned = closeRequest(graphForAll(graph), open, {});
  ASSERT_TRUE(pinned.ok()) << pinned.status();
  EXPECT_EQ(pinned->attempt.time, without->attempt.time) << "the user's order stays";
}

TEST(ModeAuto, KeepsWhatTheUserSays) {
  const ProgramGraph graph = chainProgram({.layers = 4, .rows = 64, .width = 64}).graph;
  const CompileOptions pinned = {
      .mode = Mode::kAuto, .devices = 4, .micro = 4, .zero = 2, .layouts = {{"w0", "[{tp},{}]"}}, .maxStages = 1};
  const absl::StatusOr<ClosedRequest> found = closeRequest(graphForAll(graph), pinned, {});
  ASSERT_TRUE(found.ok()) << found.status();
  const Decisions& record = found->attempt.decisions;
  EXPECT_EQ(record.mesh.microBatches(), 4);
  EXPECT_EQ(record.zero, 2);
  EXPECT_EQ(record.schedule.submeshes.size(), 1U);
  for (const ArgumentDecision& argument : record.arguments) {
    if (argument.name == "w0") {
      EXPECT_THAT(argument.layout.print(record.mesh.ofRanks()), HasSubstr("tp")) << record.mesh.print();
    }
  }
}

// A program that works on all rows at once in the forward pass has one micro-batch, though others are asked for.
TEST(ModeAuto, LeavesOutWhatTheProgramRefuses) {
  const GraphFor graphs = [graph = chainProgram({.layers = 2, .rows = 8}).graph](
                              int64_t microBatches) -> absl::StatusOr<std::shared_ptr<const ProgramGraph>> {
    return microBatches > 1
               ? absl::InvalidArgumentError("no rows left")
               : absl::StatusOr<std::shared_ptr<const ProgramGraph>>(std::make_shared<const ProgramGraph>(graph));
  };
  const absl::StatusOr<ClosedRequest> found = closeRequest(graphs, {.mode = Mode::kAuto, .devices = 2}, {});
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(found->request.microBatches(), 1);
  const absl::Status none = closeRequest(graphs, {.mode = Mode::kAuto, .devices = 2, .micro = 2}, {}).status();
  EXPECT_THAT(std::string(none.message()), HasSubstr("no rows left"));
}

TEST(PlanProgram, ReportsWhyNoMeshCanBe) {
  const GraphBuilder program = chainProgram({});
  const absl::StatusOr<Decisions> none =
      planProgram(graphForAll(program.graph), {.mesh = "dp=?", .devices = 2, .layouts = {{"*", "[{},{tp}]"}}}, {});
  EXPECT_THAT(std::string(none.status().message()), HasSubstr("tp"));
}

// What another stage reads is there for it to read: it does not run again.
TEST(PlanProgram, NeverRecomputesWhatAnotherStageReads) {
  const GraphBuilder program = chainProgram({.layers = 4, .rows = 512, .width = 32, .stages = 2});
  CompileOptions options = {.micro = 4, .schedule = "1f1b"};
  options.memoryLimit = needsOf(*modelOf(program, options)).peakBytes() * 9 / 10;
  const Planned made = planned(program, options);
  EXPECT_GT(made.recomputed(), 0);
  const int64_t lastOfStage0 = 3;  // relu of layer 1
  EXPECT_FALSE(made.record->find(lastOfStage0)->recompute);
}

// Memory has another price that saves some, but recomputation takes longer than the plan that is known.
TEST(PredictProgram, OfALongProgramNoOtherPriceIsTriedWhereRecomputationTakesLonger) {
  ProgramGraph graph = chainProgram({.layers = 350, .rows = 64, .width = 64}).graph;
  ASSERT_GT(graph.operators.size(), kOperatorsOfLong);
  markAlike(graph);
  CompileOptions options = {
      .mode = Mode::kLayouts,
      .mesh = "dp=2,tp=2",
      .machine = "flops = 1e11\nmemory_bandwidth = 1e11\nlink_latency = 1e-6\nlink_bandwidth = 1e8\n"};
  const absl::StatusOr<Attempt> free = predictProgram(graph, options, {}, nullptr, 0.0);
  ASSERT_TRUE(free.ok()) << free.status();
  options.memoryLimit = free->peakBytes * 9 / 10;
  const absl::StatusOr<Attempt> fits = predictProgram(graph, options, {}, nullptr, 0.0, kAnyThatFits);
  ASSERT_TRUE(fits.ok()) << fits.status();
  EXPECT_TRUE(fits->fits);
  EXPECT_GT(fits->time, free->time);
  const absl::StatusOr<Attempt> useless = predictProgram(graph, options, {}, nullptr, 0.0, free->time);
  ASSERT_TRUE(useless.ok()) << useless.status();
  EXPECT_FALSE(useless->fits);
  EXPECT_EQ(useless->peakBytes, free->peakBytes) << "another price would save some";
}

// Layers that decide together decide as each would alone, be reshards or arithmetic dear, and whatever ZeRO stores.
TEST(PredictProgram, AlikeLayersDecideOnce) {
  int split = 0;
  for (const double bandwidth : {1e8, 1e9, 1e10, 1e11}) {
    for (const int64_t rows : {16, 256}) {
      for (const int64_t width : {64, 256}) {
        for (const int zero : {0, 3}) {
          for (const char* mesh : {"dp=2,tp=2", "dp=1,tp=4"}) {
            ProgramGraph graph = chainProgram({.layers = 14, .rows = rows, .width = width}).graph;
            const CompileOptions options = {
                .mode = Mode::kLayouts,
                .mesh = mesh,
                .machine = absl::StrCat(
                    "flops = 1e11\nmemory_bandwidth = 1e11\nlink_latency = 1e-6\nlink_bandwidth = ", bandwidth, "\n"),
                .micro = 2,
                .zero = zero};
            const absl::StatusOr<Attempt> alone = predictProgram(graph, options, {});
            markAlike(graph);
            const absl::StatusOr<Attempt> alike = predictProgram(graph, options, {});
            ASSERT_TRUE(alone.ok() && alike.ok()) << alone.status() << alike.status();
            EXPECT_NEAR(inSeconds(alike->time) / inSeconds(alone->time), 1, 0.002)
                << bandwidth << " " << rows << " " << width << " " << zero << " " << mesh;
            split += alike->decisions.find(8)->axes.empty() ? 0 : 1;
          }
        }
      }
    }
  }
  EXPECT_GT(split, 10);
  EXPECT_LT(split, 54);
}

// Two stages of two ranks each: those that wait leave their cores to the others.
TEST(StepModel, RanksShareCores) {
  const auto needsOn = [](const std::string& machine) {
    return needsOf(*modelOf(chainProgram({.layers = 4, .stages = 2}),
                            {.mesh = "dp=2", .machine = machine, .micro = 4, .schedule = "1f1b"}));
  };
  const StepNeeds own = needsOn("");
  const StepNeeds enough = needsOn("cores = 4\n");
  EXPECT_EQ(enough.time, own.time);
  EXPECT_EQ(enough.onceTime, own.onceTime);
  const StepNeeds one = needsOn("cores = 1\n");
  double work = 0;  // of two ranks of each stage, four micro-batches
  for (const schedule::StageTimes& stage : own.times.stages) {
    work += 2 * 4 * (stage.f + stage.of(schedule::ActionKind::kBackward));
  }
  EXPECT_GT(one.time, own.time);
  const auto time = static_cast<double>(one.time);
  EXPECT_GE(time, work - 1);
  EXPECT_LE(time, work + 2 * own.times.comm) << "the core is idle while the first and the last transfer are under way";
  EXPECT_GT(one.onceTime, 2 * own.onceTime);
}

// The price of recomputing an operator, by its id, on the second of two stages.
std::map<int64_t, Picoseconds> pricesUnder(const std::string& schedule) {
  const std::unique_ptr<StepModel> model =
      modelOf(chainProgram({.layers = 4, .stages = 2}), {.devices = 1, .micro = 4, .schedule = schedule});
  const absl::StatusOr<std::vector<ForwardGraph>> graphs = forwardGraphs(model->record(), *model);
  EXPECT_TRUE(graphs.ok()) << graphs.status();
  std::map<int64_t, Picoseconds> prices;
  for (size_t i = 0; i < (*graphs)[1].ops.size(); ++i) {
    const AnnotatedOp& op = model->step().ops[(*graphs)[1].ops[i]];
    if (op.kind == AnnotatedOp::Kind::kOperator) {
      prices[model->view().op(op.op).id] = (*graphs)[1].graph.operators[i].time;
    }
  }
  return prices;
}

TEST(ForwardGraphs, WhatBothHalvesOfACutBackwardPassNeedCountsTwice) {
  const std::map<int64_t, Picoseconds> whole = pricesUnder("1f1b");
  const std::map<int64_t, Picoseconds> cut = pricesUnder("zb_h1");
  ASSERT_GT(whole.at(5), 0);
  EXPECT_EQ(cut.at(5), 2 * whole.at(5)) << "the gradients of h and of the next weight read it";
  EXPECT_EQ(cut.at(7), whole.at(7)) << "no weight stands behind it";
}

// What is run again reads a parameter that the backward pass gathers in any case. The gradients do not read the first.
TEST(ForwardGraphs, WhatTheBackwardPassGathersCostsNothingToGatherAgain) {
  const std::unique_ptr<StepModel> model =
      modelOf(chainProgram({.layers = 3, .rows = 64, .width = 128}),
              {.mesh = "dp=2", .micro = 2, .zero = 3, .recompute = "full", .regather = true});
  const absl::StatusOr<std::vector<ForwardGraph>> graphs = forwardGraphs(model->record(), *model);
  ASSERT_TRUE(graphs.ok()) << graphs.status();
  std::vector<bool> isFree;
  for (size_t i = 0; i < graphs->front().ops.size(); ++i) {
    const AnnotatedOp& op = model->step().ops[graphs->front().ops[i]];
    const bool gathers = op.kind == AnnotatedOp::Kind::kReshard && model->step().values[op.operands[0]].producer < 0 &&
                         model->view().graph().arguments[op.operands[0]].kind == ArgumentKind::kParameter;
    if (gathers) {
      isFree.push_back(graphs->front().graph.operators[i].time == 0);
    }
  }
  EXPECT_EQ(isFree, (std::vector<bool>{false, true, true}));
}

}  // namespace
}  // namespace weft::testing
