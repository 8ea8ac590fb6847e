// What a compiled GPT holds and does: its collectives, that the same input gives the same bytes, equality to the bit,
// memory.

#include "ir/program/program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "examples/gpt/model.h"
#include "ir/registry.h"
#include "passes/compile.h"
#include "passes/logical/module_file.h"
#include "passes/logical/read_module.h"
#include "planner/cost/plan_time.h"
#include "planner/decisions.h"
#include "runtime/base/random.h"
#include "runtime/base/read_text.h"
#include "runtime/plan/plan_file.h"
#include "runtime/plan/statistics.h"
#include "weft/weft.h"

namespace weft {
namespace {

using Counts = std::map<std::string, std::map<std::string, int64_t>>;

struct Request {
  std::string mesh;
  bool tensorParallel = false;
  bool sequence = false;
  bool regather = false;
  int zero = 0;
  int64_t micro = 1;
  int64_t layers = 4;
  int64_t width = 32;
  std::string dumpDir = {};
  std::string decisions = {};
  int64_t memoryLimit = 0;
  int64_t stages = 1;
  std::string recompute = "none";
  std::string machine = {};
  int64_t devices = 1;
  int64_t gatherBucket = 0;
};

absl::StatusOr<Program> compileGpt(const Request& request) {
  Graph g;
  examples::GptConfig config;
  config.layers = request.layers;
  config.stages = request.stages;
  config.width = request.width;
  config.heads = 4;
  config.context = 16;
  config.batch = 16;
  config.vocabulary = 64;
  if (request.tensorParallel) {
    config.parallel = {request.mesh.find("dp") == std::string::npos ? "" : "dp", "tp", request.sequence};
  }
  const examples::GptModel model = examples::buildGpt(g, config);
  CompileOptions options;
  options.mesh = request.mesh;
  options.devices = request.devices;
  options.zero = request.zero;
  options.micro = request.micro;
  options.regather = request.regather;
  options.gatherBucket = request.gatherBucket;
  options.dumpDir = request.dumpDir;
  options.decisions = request.decisions;
  options.memoryLimit = request.memoryLimit;
  options.recompute = request.recompute;
  options.machine = request.machine;
  return compile(g, model.loss, optim::AdamW{.lr = 1e-3}, options);
}

Counts countsOf(const Request& request) {
  absl::StatusOr<Program> program = compileGpt(request);
  EXPECT_TRUE(program.ok()) << program.status();
  return program.ok() ? statisticsOf(program->plan).byFunction : Counts();
}

double collectiveSeconds(const plan::Plan& plan) {
  double seconds = 0;
  for (const plan::Function& function : plan.functions()) {
    for (const plan::Instruction& instruction : function.instructions()) {
      seconds += instruction.has_collective() ? instruction.collective().cost() : 0;
    }
  }
  return seconds;
}

// Every price in a plan is of the machine that the request names.
TEST(MachineTest, PricesAreOfTheRequestsMachine) {
  for (const int zero : {0, 3}) {
    const absl::StatusOr<Program> usual = compileGpt({.mesh = "dp=2", .zero = zero, .layers = 1});
    Request slow = {.mesh = "dp=2", .zero = zero, .layers = 1};
    slow.machine = "link_latency = 1";
    const absl::StatusOr<Program> waiting = compileGpt(slow);
    ASSERT_TRUE(usual.ok() && waiting.ok());
    EXPECT_LT(collectiveSeconds(usual->plan), 1);
    EXPECT_EQ(machineOf(waiting->plan)->linkLatency, 1) << "for the tools";
    for (const plan::Function& function : waiting->plan.functions()) {
      for (const plan::Instruction& instruction : function.instructions()) {
        if (instruction.has_collective()) {
          EXPECT_GE(instruction.collective().cost(), 1) << instruction.label();
        }
      }
    }
  }
}

// The sizes of a mesh that are left open are found, and the plan is that of the mesh that was taken.
TEST(OpenMeshTest, ThePlanIsThatOfTheMeshThatWasTaken) {
  const Request open = {.mesh = "dp=?,tp=?", .tensorParallel = true, .layers = 1, .devices = 4};
  const absl::StatusOr<Program> found = compileGpt(open);
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(found->plan.ranks(), 4);
  const absl::StatusOr<Program> given = compileGpt({.mesh = found->plan.mesh(), .tensorParallel = true, .layers = 1});
  ASSERT_TRUE(given.ok()) << given.status();
  EXPECT_EQ(statisticsOf(found->plan).byFunction, statisticsOf(given->plan).byFunction);
  EXPECT_EQ(found->plan.memory().peak_bytes(), given->plan.memory().peak_bytes());
  EXPECT_THAT(found->notes, ::testing::Contains(::testing::HasSubstr("found for mesh 'dp=?,tp=?' on 4 devices: " +
                                                                     found->plan.mesh())));
  Request again = open;
  again.decisions = std::string(found->decisions());
  const absl::StatusOr<Program> realized = compileGpt(again);
  ASSERT_TRUE(realized.ok()) << realized.status();
  EXPECT_EQ(realized->plan.mesh(), found->plan.mesh());
}

// Per call of each function. 55 gradients: 12 in each of 4 layers, wte, wpe, lnf (2), head; the forward all_reduce
// carries the two scalars of the loss.
TEST(CollectivesTest, DataParallelHasOneGradientBucket) {
  EXPECT_EQ(countsOf({.mesh = "dp=4"}), (Counts{{"forward", {{"all_reduce", 1}}}, {"update", {{"all_reduce", 1}}}}));
}

TEST(CollectivesTest, ColumnRowPairsReduceTwicePerLayerAndDirection) {
  EXPECT_EQ(countsOf({.mesh = "tp=2", .tensorParallel = true}),
            (Counts{{"forward", {{"all_reduce", 8}}}, {"backward", {{"all_reduce", 8}}}}));
}

TEST(CollectivesTest, SequenceSplitBoundariesKept) {
  const Counts counts = countsOf({.mesh = "tp=2", .tensorParallel = true, .sequence = true});
  EXPECT_EQ(counts.at("forward").at("all_gather"), 8);
  EXPECT_EQ(counts.at("forward").at("reduce_scatter"), 8);
  EXPECT_EQ(counts.at("backward"), (std::map<std::string, int64_t>{{"all_gather", 8}, {"reduce_scatter", 8}}));
}

TEST(CollectivesTest, SequenceSplitBoundariesGatheredAgain) {
  const Counts counts = countsOf({.mesh = "tp=2", .tensorParallel = true, .sequence = true, .regather = true});
  EXPECT_EQ(counts.at("forward").at("all_gather"), 8);
  EXPECT_EQ(counts.at("backward"), (std::map<std::string, int64_t>{{"all_gather", 16}, {"reduce_scatter", 8}}));
}

// Gradients split along dimension 0 are one bucket, those along dimension 1 another.
TEST(CollectivesTest, Zero1ReducesOncePerStep) {
  const Counts counts = countsOf({.mesh = "dp=4", .zero = 1, .micro = 4});
  EXPECT_EQ(counts.count("backward"), 0U);
  EXPECT_EQ(counts.at("update").at("reduce_scatter"), 2);
  EXPECT_EQ(counts.at("update").at("all_gather"), 2) << "53 parameters split along either dimension";
}

// In about four buckets, each as soon as its gradients exist: one of all would hold them until the end of the pass.
TEST(CollectivesTest, Zero2ReducesEachMicroBatchIntoTheShardedAccumulator) {
  const Counts counts = countsOf({.mesh = "dp=4", .zero = 2, .micro = 4});
  EXPECT_EQ(counts.at("backward").at("reduce_scatter"), 5);
  EXPECT_EQ(counts.at("update").count("reduce_scatter"), 0U);
  const auto whole = compileGpt({.mesh = "dp=4", .zero = 1, .micro = 4});
  const auto sharded = compileGpt({.mesh = "dp=4", .zero = 2, .micro = 4});
  ASSERT_TRUE(whole.ok() && sharded.ok());
  EXPECT_LT(3 * statisticsOf(sharded->plan).memory["accumulator"], statisticsOf(whole->plan).memory["accumulator"]);
  EXPECT_LT(sharded->plan.memory().peak_bytes(), whole->plan.memory().peak_bytes());
}

// So does a step of one micro-batch: whole gradients would all be there at the end of the backward pass.
TEST(CollectivesTest, Zero2ScattersGradientsOfOneMicroBatchWhereTheyAreMade) {
  for (const int level : {2, 3}) {
    const Counts counts = countsOf({.mesh = "dp=4", .zero = level});
    EXPECT_EQ(counts.at("backward").at("reduce_scatter"), 5) << "level " << level;
    EXPECT_EQ(counts.at("update").count("reduce_scatter"), 0U);
    const auto whole = compileGpt({.mesh = "dp=4", .zero = 1});
    const auto sharded = compileGpt({.mesh = "dp=4", .zero = level});
    ASSERT_TRUE(whole.ok() && sharded.ok());
    EXPECT_LT(3 * statisticsOf(sharded->plan).memory["accumulator"], statisticsOf(whole->plan).memory["accumulator"]);
    EXPECT_LT(sharded->plan.memory().peak_bytes(), whole->plan.memory().peak_bytes());
  }
}

// The parameters that the backward pass reads, too, are gathered in one bucket for each dimension; the 27 of norms and
// biases that it does not read in three that are no larger than the largest of them. Gathered again in each function, a
// bucket is no larger than the largest weight, unless it may have more bytes.
TEST(CollectivesTest, Zero3GathersPerUseKeptOrAgain) {
  EXPECT_EQ(countsOf({.mesh = "dp=4", .zero = 3}).at("forward").at("all_gather"), 3 + 2);
  EXPECT_EQ(countsOf({.mesh = "dp=4", .zero = 3}).at("backward").count("all_gather"), 0U);
  EXPECT_EQ(countsOf({.mesh = "dp=4", .regather = true, .zero = 3}).at("backward").at("all_gather"), 14);
  const Counts joined = countsOf({.mesh = "dp=4", .regather = true, .zero = 3, .gatherBucket = 1 << 20});
  EXPECT_EQ(joined.at("backward").at("all_gather"), 2) << "one for each dimension";
}

// With several micro-batches parameters are gathered once per step, before the first; or again in each call.
TEST(CollectivesTest, Zero3GathersOncePerStepOrInEachCall) {
  const Counts once = countsOf({.mesh = "dp=4", .zero = 3, .micro = 4});
  EXPECT_EQ(once.at("prologue").at("all_gather"), 2);
  EXPECT_EQ(once.count("forward"), 0U);
  const Counts again = countsOf({.mesh = "dp=4", .regather = true, .zero = 3, .micro = 4});
  EXPECT_EQ(again.at("prologue").count("all_gather"), 0U);
  EXPECT_EQ(again.at("forward").at("all_gather"), 14);
  EXPECT_EQ(again.at("backward").at("all_gather"), 14);
}

// The record says it of each value.
TEST(CollectivesTest, OneBoundaryIsGatheredAgain) {
  Request request = {.mesh = "tp=2", .tensorParallel = true, .sequence = true};
  const absl::StatusOr<Program> program = compileGpt(request);
  ASSERT_TRUE(program.ok()) << program.status();
  Decisions record = *parseDecisions(program->plan.decisions());
  const auto norm = std::find_if(record.operators.begin(), record.operators.end(),
                                 [](const OperatorDecision& op) { return op.label == "h1.layer_norm"; });
  ASSERT_NE(norm, record.operators.end());
  norm->gather = GatherPolicy::kEachCall;
  request.decisions = printDecisions(record);
  EXPECT_EQ(countsOf(request).at("backward"),
            (std::map<std::string, int64_t>{{"all_gather", 9}, {"reduce_scatter", 8}}));
}

// Without a scope of the user's, layer by layer: each keeps what it begins with, and nothing else.
TEST(RecomputeTest, FullIsLayerByLayer) {
  const auto compiled = [](const std::string& recompute) {
    absl::StatusOr<Program> program = compileGpt({.mesh = "1", .layers = 12, .recompute = recompute});
    EXPECT_TRUE(program.ok()) << program.status();
    return statisticsOf(program->plan);
  };
  const PlanStatistics none = compiled("none"), full = compiled("full");
  EXPECT_LT(full.memory.at("activation") * 8, none.memory.at("activation"));
  EXPECT_LT(full.peakBytes * 5, none.peakBytes * 4);
  EXPECT_LT(full.flops * 3, none.flops * 4) << "no more than the forward pass once more";
}

// By how much the memory that was predicted of the program is beside what it needs, in parts of it.
double errorOfPrediction(const Program& program) {
  const Decisions record = *parseDecisions(program.plan.decisions());
  const auto peak = static_cast<double>(program.plan.memory().peak_bytes());
  return std::abs(static_cast<double>(record.prediction->most()) / peak - 1);
}

// What is run again reads the parameters that the backward pass gathers; those of the forward pass are gone by then.
TEST(RecomputeTest, ParametersGatheredInEachCallAreNotKeptForIt) {
  const auto compiled = [](bool regather, const std::string& recompute) {
    absl::StatusOr<Program> program = compileGpt({.mesh = "dp=4",
                                                  .regather = regather,
                                                  .zero = regather ? 3 : 0,
                                                  .recompute = recompute,
                                                  .machine = "a100-80g"});
    EXPECT_TRUE(program.ok()) << program.status();
    EXPECT_LT(errorOfPrediction(*program), 0.01) << recompute;
    return statisticsOf(program->plan);
  };
  const PlanStatistics plain = compiled(false, "full"), full = compiled(true, "full"), none = compiled(true, "none");
  EXPECT_LE(full.memory.at("activation"), plain.memory.at("activation"));
  EXPECT_LT(full.memory.at("activation") * 4, none.memory.at("activation"));
}

// Twice as many layers hold no more gradients at once, nor gathered parameters, and the model knows it.
TEST(CollectivesTest, Zero3HoldsTheGradientsOfFewLayersAtOnce) {
  const auto transientOf = [](const std::string& mesh, int64_t layers) {
    absl::StatusOr<Program> program = compileGpt({.mesh = mesh,
                                                  .tensorParallel = mesh != "dp=2",
                                                  .regather = true,
                                                  .zero = 3,
                                                  .layers = layers,
                                                  .width = 2048,
                                                  .machine = "a100-80g"});
    EXPECT_TRUE(program.ok()) << program.status();
    EXPECT_LT(errorOfPrediction(*program), 0.01) << mesh;
    return statisticsOf(program->plan).memory.at("transient");
  };
  for (const std::string mesh : {"dp=2", "dp=2,tp=2"}) {
    EXPECT_LT(10 * transientOf(mesh, 12), 11 * transientOf(mesh, 6)) << mesh;
  }
}

// Between the memory of all parameters gathered once and of none, as many are as there is room for.
TEST(CollectivesTest, AMemoryLimitDecidesHowManyParametersAreGatheredOnce) {
  Request request = {.mesh = "dp=4", .zero = 3, .micro = 4, .layers = 2};
  const absl::StatusOr<Program> once = compileGpt(request);
  ASSERT_TRUE(once.ok()) << once.status();
  request.regather = true;
  const absl::StatusOr<Program> again = compileGpt(request);
  ASSERT_TRUE(again.ok()) << again.status();
  request.regather = false;
  const int64_t most = once->plan.memory().peak_bytes();
  const int64_t least = again->plan.memory().peak_bytes();
  ASSERT_LT(least, most);
  int64_t before = 0;
  // (`regather` is also said of the few activations that are gathered.)
  for (const int64_t limit : {least + 4096, (least + most) / 2, most}) {
    request.memoryLimit = limit;
    const absl::StatusOr<Program> program = compileGpt(request);
    ASSERT_TRUE(program.ok()) << program.status();
    EXPECT_LE(program->plan.memory().peak_bytes(), limit);
    const auto counts = statisticsOf(program->plan).byFunction;
    const int64_t gathered = counts.at("prologue").count("all_gather") > 0 ? counts.at("prologue").at("all_gather") : 0;
    EXPECT_GE(gathered, before);
    before = gathered;
  }
  EXPECT_EQ(before, statisticsOf(once->plan).byFunction.at("prologue").at("all_gather"));
  EXPECT_GT(before, 0);
  request.memoryLimit = least - 1;
  EXPECT_EQ(compileGpt(request).status().code(), absl::StatusCode::kResourceExhausted);
}

std::string bytesOf(const absl::StatusOr<Program>& program) {
  EXPECT_TRUE(program.ok()) << program.status();
  return program.ok() ? *serializePlan(program->plan) : "";
}

const Request& mixedRequest() {
  static const Request request{.mesh = "dp=2,tp=2", .tensorParallel = true, .zero = 2, .micro = 3, .layers = 1};
  return request;
}

TEST(DeterminismTest, SecondCompileAndSavedDecisionsGiveTheSameBytes) {
  const absl::StatusOr<Program> first = compileGpt(mixedRequest());
  const std::string bytes = bytesOf(first);
  EXPECT_EQ(bytes, bytesOf(compileGpt(mixedRequest())));
  Request again = mixedRequest();
  again.decisions = first->decisions();
  EXPECT_EQ(bytes, bytesOf(compileGpt(again)));
}

// Compiles with dumps, and goes on from each of them.
void expectSameBytesFromEveryDump(Request request) {
  const std::filesystem::path directory = std::filesystem::path(testing::TempDir()) / "weft_dumps";
  std::filesystem::remove_all(directory);
  request.dumpDir = directory.string();
  const std::string bytes = bytesOf(compileGpt(request));
  const ir::OperatorRegistry registry = ir::OperatorRegistry::builtin();
  int resumed = 0;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    if (entry.path().filename() == kDecisionsFile) {
      continue;
    }
    const std::string name = entry.path().stem().string();
    mlir::DialectRegistry dialects;
    registerWeftDialects(dialects);
    mlir::MLIRContext context(dialects);
    const std::string text = readText(entry.path().string()).value();
    EXPECT_EQ(text.find(kDecisionsAttr + std::string(" = ")), std::string::npos) << name << " holds the record";
    const auto module = readModule(text, entry.path().string(), context);
    ASSERT_TRUE(module.ok()) << name << ": " << module.status();
    const std::string from = resumePoint(**module);
    EXPECT_EQ(from, name == "00-input" ? "" : name.substr(3));
    absl::StatusOr<plan::Plan> plan = compileModule(**module, registry, {});
    ASSERT_TRUE(plan.ok()) << name << ": " << plan.status();
    EXPECT_EQ(*serializePlan(*plan), bytes) << "resumed from " << name;
    ++resumed;
  }
  EXPECT_EQ(resumed, 22);  // the input and 21 phases
}

TEST(DeterminismTest, EveryDumpResumesToTheSameBytes) {
  expectSameBytesFromEveryDump(mixedRequest());
}

// Options, layouts and batch dimensions that have their defaults are left out.
TEST(DumpTest, TheInputShowsWhatWasAskedFor) {
  const std::filesystem::path directory = std::filesystem::path(testing::TempDir()) / "weft_input_dump";
  Request request = mixedRequest();
  request.dumpDir = directory.string();
  ASSERT_TRUE(compileGpt(request).ok());
  const std::string text = readText((directory / "00-input.mlir").string()).value();
  EXPECT_NE(text.find("nn.options = {recompute = \"none\", zero = 2 : i64}}"), std::string::npos)
      << text.substr(0, 800);
  for (const std::string word : {"nn.layouts", "nesterov", "nn.batch_dim", "keep_dims = false"}) {
    EXPECT_EQ(text.find(word), std::string::npos) << word;
  }
  std::filesystem::remove_all(directory);
}

// What is searched for between compilations (schedule, recomputation, gathers) is found again from a dump that was
// written before it was decided: no dump says it before the record does.
TEST(DeterminismTest, EveryDumpOfASearchResumesToTheSameBytes) {
  const Request staged{.mesh = "dp=2", .micro = 4, .layers = 2, .stages = 2, .recompute = "auto"};
  const absl::StatusOr<Program> unlimited = compileGpt(staged);
  ASSERT_TRUE(unlimited.ok()) << unlimited.status();
  EXPECT_NE(parseDecisions(unlimited->decisions())->schedule.kind, "1f1b") << "which nobody would have to search for";
  expectSameBytesFromEveryDump(staged);
  for (const int zero : {0, 3}) {  // recomputation; gathers, too
    Request tight{.mesh = "dp=2", .zero = zero, .micro = 2, .layers = 2, .recompute = "auto"};
    tight.memoryLimit = compileGpt(tight)->plan.memory().peak_bytes() * 95 / 100;
    expectSameBytesFromEveryDump(tight);
  }
}

// Losses and parameters after some steps, as bytes.
std::string trainedBytes(const Request& request) {
  absl::StatusOr<Program> program = compileGpt(request);
  EXPECT_TRUE(program.ok()) << program.status();
  Trainer trainer(*program, {.threadsPerRank = 1, .progress = false});
  EXPECT_TRUE(trainer.status().ok()) << trainer.status();
  std::vector<int32_t> x(16 * 16);
  std::vector<int32_t> y(16 * 16);
  const absl::Status status = trainer.fit(4, [&](int64_t step, Feed& feed) {
    for (size_t i = 0; i < x.size(); ++i) {
      x[i] = static_cast<int32_t>(randomBits({5, 1, static_cast<uint32_t>(step)}, i) % 64);
      y[i] = static_cast<int32_t>(randomBits({5, 2, static_cast<uint32_t>(step)}, i) % 64);
    }
    feed.write("x", x);
    feed.write("y", y);
  });
  EXPECT_TRUE(status.ok()) << status;
  std::string bytes(reinterpret_cast<const char*>(trainer.losses().data()), trainer.losses().size() * sizeof(double));
  for (const plan::NamedTensor& tensor : program->plan.tensors()) {
    if (tensor.kind() == plan::TENSOR_PARAMETER) {
      const std::vector<char> data = *trainer.executor().readTensor(tensor.name());
      bytes.append(data.begin(), data.end());
    }
  }
  return bytes;
}

TEST(BitEqualityTest, FourRanksEqualOneRankWithFourMicroBatches) {
  EXPECT_EQ(trainedBytes({.mesh = "dp=4", .layers = 2}), trainedBytes({.mesh = "1", .micro = 4, .layers = 2}));
}

TEST(BitEqualityTest, DifferentMicroBatchCountsDiffer) {
  // The comparison above can fail: another order of additions gives other bits.
  EXPECT_NE(trainedBytes({.mesh = "1", .layers = 2}), trainedBytes({.mesh = "1", .micro = 4, .layers = 2}));
}

// The loss of a program whose matmul reads a sum over the batch, on fixed numbers.
double lossOfBatchSum(int64_t micro) {
  Graph g;
  const Tensor x = g.input("x", {8, 6});
  const Tensor w = g.parameter("w", {6, 4}, Init::normal(0.5));
  const Tensor total = reshape(sum(x, {0}), {1, 6});
  const Tensor loss = mean(matmul(total, w));
  absl::StatusOr<Program> program = compileForward(g, loss, {.mesh = "1", .micro = micro});
  EXPECT_TRUE(program.ok()) << program.status();
  const KernelRegistry kernels = cpuKernels();
  absl::StatusOr<std::unique_ptr<Executor>> executor = Executor::create(program->plan, kernels);
  EXPECT_TRUE(executor.ok()) << executor.status();
  std::vector<float> data(48);
  for (size_t i = 0; i < data.size(); ++i) {
    data[i] = randomNormal({5, 3, 0}, i);
  }
  EXPECT_TRUE((*executor)->runInit().ok());
  EXPECT_TRUE((*executor)->writeTensor("x", data.data(), data.size() * sizeof(float)).ok());
  EXPECT_TRUE((*executor)->runStep().ok());
  return *(*executor)->readScalar("loss");
}

TEST(MicroBatchesTest, MatmulOfABatchSumReadsTheWholeSum) {
  // Both add eight rows, in another grouping: f32 rounding of a few additions of size 1.
  EXPECT_NEAR(lossOfBatchSum(1), lossOfBatchSum(4), 1e-5);
}

// Resident growth under weft-run: the sum of the ranks' predicted peaks within 2 % + 8 MiB.
TEST(MemoryTest, ResidentGrowthIsThePrediction) {
  // Resident memory is what is measured: under a sanitizer it is mostly shadow memory, which no plan knows.
#if defined(__SANITIZE_ADDRESS__) || __has_feature(address_sanitizer)
  GTEST_SKIP() << "a sanitizer keeps shadow memory of its own";
#endif
  absl::StatusOr<Program> program = compileGpt({.mesh = "dp=2,tp=2", .tensorParallel = true, .zero = 1, .micro = 2});
  ASSERT_TRUE(program.ok()) << program.status();
  const std::string path = testing::TempDir() + "/weft_memory_test.plan";
  ASSERT_TRUE(writePlan(program->plan, path).ok());
  const std::string command = std::string(WEFT_RUN) + " " + path + " --steps 2 --memory --json";
  std::FILE* pipe = popen(command.c_str(), "r");
  ASSERT_NE(pipe, nullptr);
  std::string text;
  char buffer[4096];
  for (size_t n = 0; (n = std::fread(buffer, 1, sizeof(buffer), pipe)) > 0;) {
    text.append(buffer, n);
  }
  ASSERT_EQ(pclose(pipe), 0) << text;
  const nlohmann::json memory = nlohmann::json::parse(text)["memory"];
  const double predicted = memory["planned"];
  const double resident = memory["resident_growth"];
  EXPECT_NEAR(resident, predicted, 0.02 * predicted + (8 << 20)) << memory.dump();
}

}  // namespace
}  // namespace weft
