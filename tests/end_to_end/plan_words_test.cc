// The words of a plan (planner/explain/plan_words.h): plans of many kinds, found or given by hand, are said in words of
// the program without any, and are planned just so again, without a record.

#include "planner/explain/plan_words.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>

#include "absl/strings/str_cat.h"
#include "examples/gpt/model.h"
#include "passes/compile.h"
#include "passes/logical/read_module.h"
#include "planner/explain/plan_summary.h"
#include "planner/explain/same_decisions.h"
#include "planner/search/plan.h"
#include "tests/equivalence/known_models.h"
#include "tests/equivalence/model_problem.h"
#include "tools/analysis/plan_code.h"
#include "weft/weft.h"

namespace weft {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;

struct Case {
  std::string name;
  examples::GptConfig config;
  CompileOptions options;
  std::string expanded = "";  // an operator for which its alternative stands though nothing asks for it
};

examples::GptConfig config() {
  return {.vocabulary = 64, .layers = 2, .width = 64, .heads = 4, .context = 16, .batch = 8};
}

examples::GptConfig megatron(bool sequence = false) {
  examples::GptConfig made = config();
  made.parallel = {"dp", "tp", sequence};
  return made;
}

examples::GptConfig staged(int64_t stages) {
  examples::GptConfig made = config();
  made.layers = stages;
  made.stages = stages;
  return made;
}

// Fewer rows than devices: tensor parallelism splits the classes, too.
examples::GptConfig largeVocabulary(int64_t classes = 50304) {
  return {.vocabulary = classes, .layers = 2, .width = 2048, .heads = 16, .context = 1024, .batch = 4};
}

std::vector<Case> cases() {
  examples::GptConfig odd = config();
  odd.batch = 6;
  examples::GptConfig split = staged(2);
  split.parallel = {"dp", "tp"};
  examples::GptConfig scopes = config();
  scopes.recomputeLayers = 1;
  return {
      {"auto", config(), {.mode = Mode::kAuto, .devices = 4}},
      {"auto_stages", staged(4), {.mode = Mode::kAuto, .devices = 4, .machine = "a100-80g", .micro = 4}},
      {"layouts", config(), {.mode = Mode::kLayouts, .mesh = "dp=2,tp=2", .micro = 2}},
      {"data", config(), {.mesh = "dp=4"}},
      {"tensor", megatron(), {.mesh = "dp=2,tp=2"}},
      {"sequence", megatron(true), {.mesh = "dp=2,tp=2"}},
      {"zero1", config(), {.mesh = "dp=4", .micro = 2, .zero = 1}},
      {"zero2", megatron(), {.mesh = "dp=2,tp=2", .micro = 2, .zero = 2}},
      {"zero3", megatron(), {.mesh = "dp=2,tp=2", .zero = 3}},
      {"zero3_regather", config(), {.mesh = "dp=4", .zero = 3, .regather = true}},
      {"zero3_gather_bucket", config(), {.mesh = "dp=4", .zero = 3, .regather = true, .gatherBucket = 65536}},
      {"one_f_one_b", staged(2), {.mesh = "dp=2", .micro = 4, .schedule = "1f1b"}},
      {"interleaved", staged(4), {.micro = 4, .schedule = "interleaved", .virtualStages = 2}},
      {"zero_bubble", staged(2), {.mesh = "tp=2", .micro = 4, .schedule = "zb_h1"}},
      {"scopes", scopes, {.mesh = "dp=2"}},
      {"limit", megatron(), {.mesh = "dp=2,tp=2", .memoryLimit = 1'000'000}},
      {"auto_limit", config(), {.mode = Mode::kAuto, .mesh = "dp=2,tp=2", .micro = 1, .memoryLimit = 1'200'000}},
      {"stage_meshes", split, {.stageMeshes = "dp=2,tp=2;dp=2", .micro = 2}},
      {"padded", odd, {.mesh = "dp=4"}},
      {"classes",
       largeVocabulary(),
       {.mode = Mode::kAuto, .devices = 8, .machine = "a100-80g", .micro = 1},
       "softmax_cross_entropy"},
      {"classes_in_micro_batches",
       largeVocabulary(),
       {.mode = Mode::kAuto, .mesh = "dp=1,tp=8", .machine = "a100-80g", .micro = 2, .without = {Freedom::kBatchAxes}},
       "softmax_cross_entropy"},
      {"padded_classes",
       largeVocabulary(50257),
       {.mode = Mode::kAuto, .devices = 8, .machine = "a100-80g", .micro = 1},
       "softmax_cross_entropy"},
  };
}

// The program without a word of the user's, but for `constrain`, which is an operator.
GraphFor bare(const GraphFor& graphs) {
  return [graphs](int64_t micro) -> absl::StatusOr<std::shared_ptr<const ProgramGraph>> {
    const absl::StatusOr<std::shared_ptr<const ProgramGraph>> graph = graphs(micro);
    if (!graph.ok()) {
      return graph.status();
    }
    auto made = std::make_shared<ProgramGraph>(**graph);
    for (GraphOperator& op : made->operators) {
      op.strategy.reset();
      op.userStage.reset();
      op.recomputeScope.reset();
    }
    return std::shared_ptr<const ProgramGraph>(std::move(made));
  };
}

// What the planner is asked about a program.
class Asked {
 public:
  Asked(Graph& g, const Tensor& loss, const CompileOptions& options) : context_(dialects(), kNoThreads) {
    const absl::StatusOr<std::string> text = logicalModule(g, loss, optim::Sgd{.lr = 0.1}, options);
    EXPECT_TRUE(text.ok()) << text.status();
    module_ = *readModule(*text, "model.mlir", context_);
    absl::StatusOr<PlannerProblem> problem = plannerProblem(*module_, registry_);
    EXPECT_TRUE(problem.ok()) << problem.status();
    problem_.emplace(*std::move(problem));
  }

  const PlannerProblem& problem() const { return *problem_; }

 private:
  static constexpr auto kNoThreads = mlir::MLIRContext::Threading::DISABLED;
  static mlir::DialectRegistry dialects() {
    mlir::DialectRegistry dialects;
    registerWeftDialects(dialects);
    return dialects;
  }

  mlir::MLIRContext context_;
  const ir::OperatorRegistry registry_ = ir::OperatorRegistry::builtin();
  mlir::OwningOpRef<mlir::ModuleOp> module_;
  std::optional<PlannerProblem> problem_;
};

class PlanWordsTest : public ::testing::TestWithParam<Case> {};

// Answers the options among the words. `expanded`: kind of the operator that an alternative stands for, if one does.
CompileOptions expectSaidWhole(const GraphFor& asked, const CompileOptions& request, const std::string& expanded = "") {
  const absl::StatusOr<Decisions> record = planProgram(asked, request, {});
  if (!record.ok()) {
    ADD_FAILURE() << record.status();
    return {};
  }
  if (!expanded.empty()) {
    EXPECT_THAT(summaryOf(*record, {}).alternatives, ElementsAre(Pair(expanded, 1)));
  }
  const GraphFor graphs = bare(asked);
  const absl::StatusOr<PlanWords> words = wordsOf(graphs, request, *record);
  if (!words.ok()) {
    ADD_FAILURE() << words.status();
    return {};
  }
  const int64_t micro = record->mesh.microBatches();
  EXPECT_THAT(words->unsaid, IsEmpty()) << tools::codeOf(*words, **graphs(micro));
  EXPECT_EQ(words->options.mode, Mode::kSemi);
  const absl::StatusOr<Decisions> again =
      planProgram(graphForAll(withWords(*words, **graphs(micro))), words->options, {});
  if (!again.ok()) {
    ADD_FAILURE() << again.status();
    return {};
  }
  const DecisionDifferences differences = differencesOf(*record, *again);
  EXPECT_THAT(differences.whole, IsEmpty());
  EXPECT_THAT(differences.arguments, IsEmpty());
  EXPECT_THAT(differences.reshards, IsEmpty());
  for (const OperatorDecision& op : record->operators) {
    EXPECT_EQ(again->find(op.id)->axes, op.axes) << op.label;
    EXPECT_EQ(again->find(op.id)->recompute, op.recompute) << op.label;
    EXPECT_EQ(again->find(op.id)->stage, op.stage) << op.label;
  }
  return words->options;
}

TEST_P(PlanWordsTest, SayTheWholePlan) {
  Graph g;
  const examples::GptModel model = examples::buildGpt(g, GetParam().config);
  const Asked asked(g, model.loss, GetParam().options);
  expectSaidWhole(asked.problem().graphs, asked.problem().request, GetParam().expanded);
}

// Four products on the first of two stages, one on the other: they are given three ranks and one.
// Only a limit asks for gathers that run again for the gradients of weights.
TEST(PlanWords, GathersThatRunAgain) {
  examples::GptConfig config = staged(2);
  config.layers = 4;
  config.batch = 16;
  config.parallel = {"", "tp", true};
  CompileOptions options = {.mesh = "tp=2", .micro = 4, .schedule = "zb_h1", .memoryLimit = int64_t{1} << 40};
  const auto asked = [&] {
    Graph g;
    const examples::GptModel model = examples::buildGpt(g, config);
    return Asked(g, model.loss, options);
  };
  const absl::StatusOr<Decisions> plain = planProgram(asked().problem().graphs, options, {});
  ASSERT_TRUE(plain.ok()) << plain.status();
  for (const int64_t percent : {96, 90, 85}) {
    options.memoryLimit = plain->prediction->most() * percent / 100;
    const absl::StatusOr<Decisions> record = planProgram(asked().problem().graphs, options, {});
    ASSERT_TRUE(record.ok()) << record.status();
    EXPECT_THAT(summaryOf(*record, {}).recompute, HasSubstr("gathers of 8 gradients")) << percent;
    expectSaidWhole(asked().problem().graphs, options);
  }
}

// Batch norm stands in no record: what it was expanded to does.
TEST(PlanWords, StagesThatBeginWithWhatIsExpanded) {
  Graph g;
  const auto convolution = [&](const Tensor& x, const std::string& name) {
    return conv2d(x, g.parameter(name, {4, 4, 3, 3}, Init::normal(0.3)), {.paddings = {1, 1}});
  };
  Tensor hidden = g.input("x", {8, 4, 6, 6});
  for (int stage = 0; stage < 3; ++stage) {
    auto scope = g.stage(stage);
    hidden = stage == 0 ? hidden : relu(nn::BatchNorm2d(g, absl::StrCat("norm", stage), 4)(hidden));
    hidden = convolution(hidden, absl::StrCat("w", stage));
  }
  const Asked asked(g, mean(hidden), {.micro = 2});
  expectSaidWhole(asked.problem().graphs, asked.problem().request);
}

TEST(PlanWords, MeshesThatWereFoundForStages) {
  Graph g;
  Tensor hidden = g.input("x", {48, 24});
  for (int i = 0; i < 4; ++i) {
    auto first = g.stage(0);
    hidden = relu(matmul(hidden, g.parameter(absl::StrCat("w", i), {24, 24}, Init::normal(0.3))));
  }
  auto second = g.stage(1);
  const Tensor loss = mean(matmul(hidden, g.parameter("last", {24, 24}, Init::normal(0.3))));
  CompileOptions options = {.mode = Mode::kAuto, .devices = 4};
  options.machine =
      "flops = 8e8\nmemory_bandwidth = 2e10\nlink_bandwidth = 1e10\nlink_latency = 1.2e-10\nlaunch_latency = 6e-11";
  const Asked asked(g, loss, options);
  EXPECT_THAT(expectSaidWhole(asked.problem().graphs, asked.problem().request).stageMeshes, HasSubstr(";"));
}

// Two layers; with `said` with the lines that --as-code prints of the plan of mode layouts.
struct Layers {
  explicit Layers(bool said) {
    const Tensor x = g.input("x", {32, 64});
    const Tensor up = g.parameter("up", {64, 256}, Init::normal(0.1));
    const Tensor down = g.parameter("down", {256, 64}, Init::normal(0.1));
    Tensor hidden = matmul(x, up);
    hidden = said ? hidden.shard({{"dp", ""}, {"", "tp"}}) : hidden;
    const Tensor y = matmul(gelu(hidden), down);
    loss = mean(y * y);
    loss = said ? loss.shard({{"", ""}}) : loss;
  }

  Decisions compiled(const CompileOptions& options) {
    const absl::StatusOr<Program> program = compile(g, loss, optim::Sgd{.lr = 0.1}, options);
    EXPECT_TRUE(program.ok()) << program.status();
    return *parseDecisions(program->decisions());
  }

  Graph g;
  Tensor loss;
};

TEST(PlanWords, PastedLinesCompileToTheSamePlan) {
  CompileOptions options;
  options.mode = Mode::kLayouts;
  options.mesh = "dp=2,tp=2";
  Layers open(false);
  const Decisions record = open.compiled(options);
  const Asked asked(open.g, open.loss, options);
  const absl::StatusOr<PlanWords> words = wordsOf(asked.problem().graphs, asked.problem().request, record);
  ASSERT_TRUE(words.ok()) << words.status();
  const std::string code = tools::codeOf(*words, **asked.problem().graphs(1));
  EXPECT_THAT(code, HasSubstr("options.mesh = \"dp=2,tp=2\";\noptions.micro = 1;\noptions.zero = 0;\n"
                              "options.recompute = \"none\";\n"
                              ".shard({{\"dp\", \"\"}, {\"\", \"tp\"}})  // plan_words_test.cc:"));
  EXPECT_THAT(code, HasSubstr(".shard({{\"\", \"\"}})                // plan_words_test.cc:"));
  EXPECT_EQ(std::count(code.begin(), code.end(), '\n'), 6) << code;
  PlanWords gathering = *words;
  gathering.options.gatherBucket = 4096;
  EXPECT_THAT(tools::codeOf(gathering, **asked.problem().graphs(1)), HasSubstr("\noptions.gatherBucket = 4096;\n"));

  CompileOptions pasted;
  pasted.mesh = "dp=2,tp=2";
  pasted.micro = 1;
  pasted.zero = 0;
  pasted.recompute = "none";
  EXPECT_TRUE(differencesOf(record, Layers(true).compiled(pasted)).none());
  EXPECT_FALSE(differencesOf(record, Layers(false).compiled(pasted)).none()) << "the words are needed";
}

// An operator that says it alone runs again, whoever reads it; the option says the same by name.
TEST(PlanWords, RecomputedAlone) {
  const auto recomputed = [](bool alone, const std::string& option) {
    Graph g;
    const Tensor x = g.input("x", {8, 16});
    Tensor h = gelu(matmul(x, g.parameter("w", {16, 16}, Init::normal(0.1)))).named("inner");
    h = alone ? h.recomputed() : h;
    const Tensor loss = mean(gelu(matmul(h, g.parameter("v", {16, 16}, Init::normal(0.1)))) * 2.0);
    const absl::StatusOr<Program> program = compile(g, loss, optim::Sgd{.lr = 0.1}, {.recompute = option});
    EXPECT_TRUE(program.ok()) << program.status();
    std::vector<std::string> names;
    const Decisions record = *parseDecisions(program->decisions());
    for (const OperatorDecision& op : record.operators) {
      if (op.recompute) {
        names.push_back(op.label);
      }
    }
    return names;
  };
  EXPECT_THAT(recomputed(true, "none"), ElementsAre("inner"));
  EXPECT_THAT(recomputed(false, "inner"), ElementsAre("inner"));
  EXPECT_THAT(recomputed(false, "none"), IsEmpty());
  Graph g;
  g.input("x", {8}).recomputed();
  EXPECT_THAT(std::string(g.status().message()), HasSubstr("has no operator to run again"));
}

// Decisions about another program are refused.
TEST(PlanWords, OfAnotherProgram) {
  Layers layers(false);
  Decisions record = layers.compiled({.mesh = "dp=2"});
  record.operators.erase(record.operators.begin());
  const Asked asked(layers.g, layers.loss, {});
  EXPECT_THAT(std::string(wordsOf(asked.problem().graphs, {}, record).status().message()),
              HasSubstr("give the program that they were made for"));
}

// A model of another kind, planned in mode auto.
struct FoundCase {
  testing::KnownModel model;
  CompileOptions options;
};

std::vector<FoundCase> foundCases() {
  const auto sizes = [](int64_t groups, int64_t experts) {
    return testing::LayerSizes{.batch = 16,
                               .tokens = 256,
                               .width = 1024,
                               .heads = 8,
                               .headWidth = 128,
                               .groups = groups,
                               .hidden = 4096,
                               .vocabulary = 32128,
                               .experts = experts};
  };
  const auto on = [](int64_t devices, const std::string& machine, int64_t memoryLimit = 0) {
    CompileOptions options = {.mode = Mode::kAuto, .devices = devices, .machine = machine};
    options.memoryLimit = memoryLimit;
    return options;
  };
  return {
      {testing::llamaModel("llama", sizes(2, 1), 2), on(8, "a100-80g")},
      {testing::llamaModel("llama_tight", sizes(2, 1), 4), on(8, "h100-80g", 1'500'000'000)},
      {testing::t5Model("t5", sizes(8, 1), 1), on(8, "a100-80g")},
      {testing::expertsModel("experts", sizes(8, 4), 2), on(8, "a100-80g")},
      {testing::unetModel("unet", {.batch = 16, .image = 64, .channels = 16, .levels = 2, .classes = 16}),
       on(4, "a100-80g")},
      {testing::wideModel("wide", {.batch = 1024, .fields = 8, .rows = 200'000, .width = 64, .hidden = {256, 128, 2}}),
       on(8, "a100-80g")},
      {testing::mlpModel("mlp", 512, {784, 2048, 2048, 10}), on(4, "cpu")},
      {testing::resnetModel("resnet", {}), on(4, "cpu")},
  };
}

class FoundPlanWordsTest : public ::testing::TestWithParam<FoundCase> {};

TEST_P(FoundPlanWordsTest, SayTheWholePlan) {
  const absl::StatusOr<std::unique_ptr<testing::ModelProblem>> model = testing::ModelProblem::create(GetParam().model);
  ASSERT_TRUE(model.ok()) << model.status();
  expectSaidWhole((*model)->graphs(), GetParam().options);
}

INSTANTIATE_TEST_SUITE_P(Models, FoundPlanWordsTest, ::testing::ValuesIn(foundCases()),
                         [](const auto& info) { return info.param.model.name; });

INSTANTIATE_TEST_SUITE_P(Plans, PlanWordsTest, ::testing::ValuesIn(cases()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace weft
