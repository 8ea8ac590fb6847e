// Submeshes with meshes of their own give the one-rank answer.
//
//   weft_stage_meshes_test              seeds 1 to 30
//   weft_stage_meshes_test --all        seeds 1 to 300
//   weft_stage_meshes_test --seed=17    one seed, its module on the standard output

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <iostream>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "examples/gpt/model.h"
#include "planner/explain/plan_summary.h"
#include "runtime/base/status.h"
#include "runtime/plan/plan_file.h"
#include "tests/equivalence/training_step.h"
#include "tests/support/seeds.h"
#include "weft/weft.h"

namespace weft::testing {

SeedRange seeds = {1, 30};

namespace {

using ::testing::HasSubstr;

constexpr int64_t kVocabulary = 18;

// Two matrix products on two stages; over f64, so that only wrong sums differ by more than rounding.
absl::StatusOr<std::string> twoMatmuls(const CompileOptions& options, int64_t batch) {
  Graph g;
  Tensor x = g.input("x", {batch, 8});
  Tensor hidden;
  {
    auto first = g.stage(0);
    hidden = relu(matmul(x, g.parameter("w0", {8, 12})));
  }
  Tensor loss;
  {
    auto second = g.stage(1);
    const Tensor y = g.input("y", {batch, 4});
    const Tensor error = sub(matmul(hidden, g.parameter("w1", {12, 4})), y);
    loss = mean(mul(error, error));
  }
  WEFT_ASSIGN_OR_RETURN(const std::string text,
                        logicalModule(g, loss, optim::AdamW{.lr = 0.1, .epsilon = 0.01}, options));
  return absl::StrReplaceAll(text, {{"f32", "f64"}});
}

NamedTensors randomFor(const plan::Plan& plan) {
  std::mt19937_64 generator(5);
  NamedTensors made;
  for (const plan::NamedTensor& tensor : plan.tensors()) {
    if (tensor.kind() == plan::TENSOR_INPUT || tensor.kind() == plan::TENSOR_PARAMETER) {
      const bool ids = tensor.type() == plan::I32;
      HostTensor value(ids ? DType::kI32 : DType::kF64, {tensor.shape().begin(), tensor.shape().end()});
      for (int64_t i = 0; ids && i < value.elements(); ++i) {
        const bool ignored = tensor.name() == "y" && generator() % 5 == 0;
        value.data<int32_t>()[i] = ignored ? -1 : static_cast<int32_t>(generator() % kVocabulary);
      }
      for (int64_t i = 0; !ids && i < value.elements(); ++i) {
        value.data<double>()[i] = static_cast<double>(generator() >> 11) * 0x1p-53 - 0.5;
      }
      made[tensor.name()] = std::move(value);
    }
  }
  return made;
}

// Two products on so many rows: those of one rank, on any meshes of the two stages.
void expectTwoMatmuls(const std::string& meshes, int64_t micro, int64_t batch) {
  SCOPED_TRACE(absl::StrCat(meshes, ", micro ", micro, ", ", batch, " rows"));
  CompileOptions options;
  options.gradientOutputs = true;
  const absl::StatusOr<std::string> serial = twoMatmuls(options, batch);
  ASSERT_TRUE(serial.ok()) << serial.status();
  absl::StatusOr<plan::Plan> onePlan = compileText(absl::StrReplaceAll(*serial, {{"nn.stage = 1", "nn.stage = 0"}}));
  ASSERT_TRUE(onePlan.ok()) << onePlan.status();
  const NamedTensors arguments = randomFor(*onePlan);
  const absl::StatusOr<NamedTensors> one = runPlan(*std::move(onePlan), arguments);
  ASSERT_TRUE(one.ok()) << one.status();
  options.stageMeshes = meshes;
  options.micro = micro;
  const absl::StatusOr<std::string> text = twoMatmuls(options, batch);
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_EQ(differenceFromOneRank(*text, *one, arguments), "");
}

TEST(StageMeshesTest, TwoMatmuls) {
  for (const char* meshes : {"dp=2;dp=1", "dp=1;dp=2", "dp=2;dp=3", "2;3", "dp=4;tp=2"}) {
    for (const int64_t micro : {1, 2, 3}) {
      expectTwoMatmuls(meshes, micro, 72);
    }
  }
}

// 10 rows are stored as 12 for 2 stripes of 3 micro-batches; the second submesh has both stripes, and the pad ends
// inside of each: a mask fills runs of rows.
TEST(StageMeshesTest, APadInsideOfARanksRows) {
  for (const int64_t batch : {7, 9, 10, 11}) {
    expectTwoMatmuls("dp=2;dp=1", 3, batch);
    expectTwoMatmuls("dp=4;dp=2", 2, batch);
    expectTwoMatmuls("dp=1;dp=3", 2, batch);
  }
}

// Five products, of which the first stage has four: on four ranks mode auto gives it three of them.
Tensor fourProductsAndOne(Graph& g) {
  Tensor hidden = g.input("x", {48, 24});
  for (int i = 0; i < 4; ++i) {
    auto first = g.stage(0);
    hidden = relu(matmul(hidden, g.parameter(absl::StrCat("w", i), {24, 24}, Init::normal(0.3))));
  }
  auto second = g.stage(1);
  const Tensor error = sub(matmul(hidden, g.parameter("last", {24, 24}, Init::normal(0.3))), g.input("y", {48, 24}));
  return mean(mul(error, error));
}

CompileOptions autoOnFour() {
  CompileOptions options;
  options.mode = Mode::kAuto;
  options.devices = 4;
  options.machine =
      "flops = 8e8\nmemory_bandwidth = 2e10\nlink_bandwidth = 1e10\nlink_latency = 1.2e-10\nlaunch_latency = 6e-11";
  return options;
}

TEST(StageMeshesTest, ModeAutoFindsUnlikeMeshes) {
  const auto moduleOf = [](const CompileOptions& options) {
    Graph g;
    const Tensor loss = fourProductsAndOne(g);
    return absl::StrReplaceAll(*logicalModule(g, loss, optim::AdamW{.lr = 0.1, .epsilon = 0.01}, options),
                               {{"f32", "f64"}});
  };
  CompileOptions serial;
  serial.gradientOutputs = true;
  absl::StatusOr<plan::Plan> onePlan =
      compileText(absl::StrReplaceAll(moduleOf(serial), {{"nn.stage = 1", "nn.stage = 0"}}));
  ASSERT_TRUE(onePlan.ok()) << onePlan.status();
  const NamedTensors arguments = randomFor(*onePlan);
  const absl::StatusOr<NamedTensors> one = runPlan(*std::move(onePlan), arguments);
  ASSERT_TRUE(one.ok()) << one.status();
  CompileOptions options = autoOnFour();
  options.gradientOutputs = true;
  const absl::StatusOr<plan::Plan> plan = compileText(moduleOf(options));
  ASSERT_TRUE(plan.ok()) << plan.status();
  const absl::StatusOr<Decisions> record = parseDecisions(plan->decisions());
  ASSERT_TRUE(record.ok()) << record.status();
  ASSERT_EQ(record->stageMeshes.size(), 2U) << plan->decisions();
  EXPECT_EQ(record->stageMeshes[0].ranks(), 3);
  EXPECT_EQ(record->stageMeshes[1].ranks(), 1);
  const PlanSummary summary = summaryOf(*record, {});
  for (size_t stage = 0; stage < 2; ++stage) {  // as the table and JSON of `weft plan` have them
    EXPECT_EQ(summary.stages.at(stage).mesh, record->stageMeshes[stage].ofRanks().print());
    EXPECT_EQ(summary.stages[stage].ranks, record->stageMeshes[stage].ranks());
  }
  EXPECT_EQ(differenceFromOneRank(moduleOf(options), *one, arguments), "");
}

// A GPT, every submesh on a random mesh of 1 to 4 ranks.
struct GptCase {
  examples::GptConfig config;
  CompileOptions options;
  std::string name;
};

absl::StatusOr<std::string> gptModule(const examples::GptConfig& config, const CompileOptions& options) {
  Graph g;
  const examples::GptModel model = examples::buildGpt(g, config);
  WEFT_ASSIGN_OR_RETURN(const std::string text,
                        logicalModule(g, model.loss, optim::AdamW{.lr = 0.1, .epsilon = 0.01}, options));
  return absl::StrReplaceAll(text, {{"f32", "f64"}});
}

GptCase gptCase(uint64_t seed) {
  std::mt19937_64 generator(seed);
  const auto below = [&](int64_t n) { return static_cast<int64_t>(generator() % static_cast<uint64_t>(n)); };
  GptCase made;
  CompileOptions& options = made.options;
  options.micro = 1 + below(4);
  made.config = {.vocabulary = kVocabulary, .layers = 4, .width = 12, .heads = 6, .context = 6};
  made.config.stages = 2 + below(3);
  const std::vector<std::string> kinds = {"gpipe", "1f1b", "zb_h1", "zb_h2", "interleaved", "zb_v"};
  options.schedule = kinds[below(made.config.stages % 2 == 0 ? 6 : 4)];
  const bool twice = options.schedule == "interleaved" || options.schedule == "zb_v";
  options.virtualStages = options.schedule == "interleaved" ? 2 : 0;
  int64_t stripes = 1;
  for (int64_t submesh = 0; submesh < made.config.stages / (twice ? 2 : 1); ++submesh) {
    const int64_t dp = 1 + below(4);
    const int64_t tp = 1 + below(std::min<int64_t>(4 / dp, 3));
    stripes = std::lcm(stripes, dp);
    absl::StrAppend(&options.stageMeshes, submesh == 0 ? "" : ";", "dp=", dp, tp > 1 ? absl::StrCat(",tp=", tp) : "");
  }
  // Without micro-batches the batch may be padded.
  made.config.batch = options.microBatches() == 1 ? 10 + below(8) : stripes * options.microBatches() * (1 + below(2));
  made.config.tiedHead = below(2) == 0;
  made.config.dropout = below(2) == 0 ? 0.1 : 0.0;
  made.config.recomputeLayers = below(3) == 0 ? made.config.layers : 0;
  if (below(2) == 0 && options.stageMeshes.find("tp") != std::string::npos) {
    made.config.parallel = {"dp", "tp", below(2) == 0};
  }
  options.zero = static_cast<int>(below(4));
  options.regather = below(2) == 0;
  options.clipNorm = 0.5;
  options.gradientOutputs = true;
  made.name = absl::StrCat("seed ", seed, ", meshes ", options.stageMeshes, ", stages ", made.config.stages, " ",
                           options.schedule, ", micro ", options.microBatches(), ", zero ", options.zeroLevel(),
                           ", batch ", made.config.batch, made.config.tiedHead ? ", tied" : "",
                           made.config.dropout > 0 ? ", dropout" : "", made.config.parallel.any() ? ", tp" : "");
  return made;
}

TEST(StageMeshesTest, Gpt) {
  for (uint64_t seed = seeds.first; seed <= seeds.last; ++seed) {
    const GptCase made = gptCase(seed);
    SCOPED_TRACE(made.name);
    examples::GptConfig config = made.config;
    config.stages = 1;
    config.parallel = {};
    CompileOptions alone;
    alone.clipNorm = made.options.clipNorm;
    alone.gradientOutputs = true;
    const absl::StatusOr<std::string> serial = gptModule(config, alone);
    ASSERT_TRUE(serial.ok()) << serial.status();
    absl::StatusOr<plan::Plan> onePlan = compileText(*serial);
    ASSERT_TRUE(onePlan.ok()) << onePlan.status();
    const NamedTensors arguments = randomFor(*onePlan);
    const absl::StatusOr<NamedTensors> one = runPlan(*std::move(onePlan), arguments);
    ASSERT_TRUE(one.ok()) << one.status();
    const absl::StatusOr<std::string> text = gptModule(made.config, made.options);
    ASSERT_TRUE(text.ok()) << text.status();
    if (seeds.isOne()) {
      std::cout << *text << "\n";
    }
    EXPECT_EQ(differenceFromOneRank(*text, *one, arguments), "");
  }
}

// Three stages; stage 2 reads what stage 0 makes, and an input that stage 0 reads too.
absl::StatusOr<std::string> skipping(const CompileOptions& options, bool stages) {
  Graph g;
  const auto stage = [&](int number) { return g.stage(stages ? number : 0); };
  const Tensor x = g.input("x", {48, 8});
  const Tensor weight = g.input("weight", {48, 1});
  Tensor first;
  Tensor second;
  Tensor loss;
  {
    const auto scope = stage(0);
    first = mul(relu(matmul(x, g.parameter("w0", {8, 12}))), weight);
  }
  {
    const auto scope = stage(1);
    second = relu(matmul(first, g.parameter("w1", {12, 12})));
  }
  {
    const auto scope = stage(2);
    const Tensor out = matmul(dropout(add(second, first), 0.25), g.parameter("w2", {12, 4}));
    loss = mean(mul(mul(out, out), weight));
  }
  WEFT_ASSIGN_OR_RETURN(const std::string text, logicalModule(g, loss, optim::Sgd{.lr = 0.1}, options));
  return absl::StrReplaceAll(text, {{"f32", "f64"}});
}

TEST(StageMeshesTest, SkipConnectionsAndInputsOfSeveralSubmeshes) {
  CompileOptions alone;
  alone.gradientOutputs = true;
  absl::StatusOr<plan::Plan> onePlan = compileText(*skipping(alone, false));
  ASSERT_TRUE(onePlan.ok()) << onePlan.status();
  const NamedTensors arguments = randomFor(*onePlan);
  const absl::StatusOr<NamedTensors> one = runPlan(*std::move(onePlan), arguments);
  ASSERT_TRUE(one.ok()) << one.status();
  for (const char* meshes : {"dp=2;dp=1;dp=3", "dp=4;dp=2;dp=1", "dp=1;dp=2,tp=2;dp=2", "dp=2;dp=4;dp=2"}) {
    for (const int64_t micro : {1, 2, 4}) {
      SCOPED_TRACE(absl::StrCat(meshes, ", micro ", micro));
      CompileOptions options = alone;
      options.stageMeshes = meshes;
      options.micro = micro;
      EXPECT_EQ(differenceFromOneRank(*skipping(options, true), *one, arguments), "");
    }
  }
}

// Two stages of one submesh read what another makes, the later of them first in the program.
absl::StatusOr<std::string> readByTheLaterStageFirst(const CompileOptions& options, bool staged) {
  Graph g;
  const auto stage = [&](int64_t number) { return g.stage(staged ? number : 0); };
  const Tensor x = g.input("x", {12, 8});
  Tensor made, later, earlier, out;
  {
    const auto scope = stage(0);
    made = relu(matmul(x, g.parameter("w0", {8, 8})));
  }
  {
    const auto scope = stage(2);
    later = matmul(made, g.parameter("w2", {8, 8}));
  }
  {
    const auto scope = stage(1);
    earlier = gelu(matmul(made, g.parameter("w1", {8, 8})));
  }
  {
    const auto scope = stage(2);
    out = mul(earlier, later);
  }
  const auto scope = stage(3);
  WEFT_ASSIGN_OR_RETURN(const std::string text,
                        logicalModule(g, mean(matmul(out, g.parameter("w3", {8, 4}))), optim::Sgd{.lr = 0.1}, options));
  return absl::StrReplaceAll(text, {{"f32", "f64"}});
}

TEST(StageMeshesTest, TheLaterOfTwoStagesReadsFirst) {
  CompileOptions options;
  options.gradientOutputs = true;
  absl::StatusOr<plan::Plan> onePlan = compileText(*readByTheLaterStageFirst(options, false));
  ASSERT_TRUE(onePlan.ok()) << onePlan.status();
  const NamedTensors arguments = randomFor(*onePlan);
  const absl::StatusOr<NamedTensors> one = runPlan(*std::move(onePlan), arguments);
  ASSERT_TRUE(one.ok()) << one.status();
  options.virtualStages = 2;
  options.schedule = "zb_v";
  options.micro = 2;
  for (const char* meshes : {"dp=1;dp=1", "dp=2;dp=2", "dp=2;dp=1", "dp=1;dp=3"}) {
    SCOPED_TRACE(meshes);
    options.stageMeshes = meshes;
    EXPECT_EQ(differenceFromOneRank(*readByTheLaterStageFirst(options, true), *one, arguments), "");
  }
}

// What the second submesh receives in its forward pass.
plan::Transfer& activation(plan::Plan& plan) {
  for (plan::Function& function : *plan.mutable_submeshes(1)->mutable_functions()) {
    for (plan::Instruction& instruction : *function.mutable_instructions()) {
      if (function.kind() == plan::FORWARD && instruction.has_transfer()) {
        return *instruction.mutable_transfer();
      }
    }
  }
  ADD_FAILURE() << "the second submesh receives nothing";
  static plan::Transfer none;
  return none;
}

// The comparison sees a part that comes from the wrong rank, and validation what is no whole tensor.
TEST(StageMeshesTest, WrongPartsAreFound) {
  CompileOptions options;
  options.stageMeshes = "dp=2;dp=1";
  const absl::StatusOr<plan::Plan> plan = compileText(*twoMatmuls(options, 24));
  ASSERT_TRUE(plan.ok()) << plan.status();
  const NamedTensors arguments = randomFor(*plan);
  const absl::StatusOr<NamedTensors> right = runPlan(*plan, arguments);
  ASSERT_TRUE(right.ok()) << right.status();

  plan::Plan swapped = *plan;
  plan::Transfer& received = activation(swapped);
  ASSERT_EQ(received.boxes_size(), 2);
  received.mutable_boxes(0)->set_source(1);
  received.mutable_boxes(1)->set_source(0);
  ASSERT_TRUE(validatePlan(swapped).ok());
  const absl::StatusOr<NamedTensors> wrong = runPlan(swapped, arguments);
  ASSERT_TRUE(wrong.ok()) << wrong.status();
  EXPECT_NE(difference(*right, *wrong), "");

  const auto refusal = [&](const std::function<void(plan::Transfer&)>& damage) {
    plan::Plan damaged = *plan;
    damage(activation(damaged));
    return std::string(validatePlan(damaged).message());
  };
  EXPECT_THAT(refusal([](plan::Transfer& t) { t.mutable_boxes()->RemoveLast(); }), HasSubstr("sends 144 of the 288"));
  EXPECT_THAT(refusal([](plan::Transfer& t) { t.mutable_boxes(0)->set_source(2); }), HasSubstr("outside of the ranks"));
  EXPECT_THAT(refusal([](plan::Transfer& t) { t.mutable_boxes(0)->set_target(-1); }),
              HasSubstr("boxes[0].target is -1, outside"));
  EXPECT_THAT(refusal([](plan::Transfer& t) { t.mutable_boxes(0)->set_size(1, 13); }), HasSubstr("outside"));
  EXPECT_THAT(refusal([](plan::Transfer& t) { t.mutable_boxes(0)->add_size(1); }), HasSubstr("outside"));
  EXPECT_THAT(refusal([](plan::Transfer& t) { t.mutable_boxes(0)->set_source_offset(0, INT64_MAX); }),
              HasSubstr("outside"));
  EXPECT_THAT(refusal([](plan::Transfer& t) { t.mutable_boxes(1)->set_target_offset(0, 0); }), HasSubstr("overlap"));
  EXPECT_THAT(refusal([](plan::Transfer& t) { t.mutable_boxes(1)->set_source(0); }), HasSubstr("two boxes"));
  EXPECT_THAT(refusal([](plan::Transfer& t) { t.clear_boxes(); }), HasSubstr("no receiver that fits"));
}

// Each rank of the reader's submesh receives its local tensor, no more.
TEST(StageMeshesTest, NoElementIsSentTwiceToARank) {
  CompileOptions options;
  options.stageMeshes = "dp=4;dp=3";
  absl::StatusOr<plan::Plan> plan = compileText(*twoMatmuls(options, 24));
  ASSERT_TRUE(plan.ok()) << plan.status();
  // Rows 0:6, 6:12, 12:18, 18:24 go to rows 0:8, 8:16, 16:24.
  EXPECT_EQ(activation(*plan).boxes_size(), 6);
}

// The same meshes written one by one: nothing changes, to the byte.
TEST(StageMeshesTest, EqualMeshesAreOne) {
  const auto planOf = [](const std::string& mesh, const std::string& meshes) {
    CompileOptions options;
    options.mesh = mesh;
    options.stageMeshes = meshes;
    options.micro = 2;
    const absl::StatusOr<plan::Plan> plan = compileText(*twoMatmuls(options, 24));
    return plan.ok() ? *serializePlan(*plan) : plan.status().ToString();
  };
  EXPECT_TRUE(planOf("", "dp=2;dp=2") == planOf("dp=2", ""));
}

TEST(StageMeshesTest, ARecordOfDecisionsGivesTheSamePlan) {
  const GptCase made = gptCase(3);
  Graph g;
  const examples::GptModel model = examples::buildGpt(g, made.config);
  const absl::StatusOr<Program> first = compile(g, model.loss, optim::AdamW{}, made.options);
  ASSERT_TRUE(first.ok()) << first.status();
  CompileOptions again = made.options;
  again.decisions = first->decisions();
  const absl::StatusOr<Program> second = compile(g, model.loss, optim::AdamW{}, again);
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_TRUE(*serializePlan(first->plan) == *serializePlan(second->plan));
}

examples::GptConfig twoTiedLayers() {
  return {.vocabulary = kVocabulary, .layers = 2, .width = 12, .heads = 6, .context = 6, .batch = 12, .tiedHead = true};
}

// The forward program finds the parameters in the training program's store.
void expectForwardReads(Graph& g, const Tensor& loss, const CompileOptions& options) {
  const absl::StatusOr<Program> training = compile(g, loss, optim::AdamW{}, options);
  ASSERT_TRUE(training.ok()) << training.status();
  const absl::StatusOr<Program> forward = compileForward(g, loss, forwardOptions(*training, options));
  ASSERT_TRUE(forward.ok()) << forward.status();
  Trainer trainer(*training);
  ASSERT_TRUE(trainer.status().ok()) << trainer.status();
  const absl::StatusOr<Executor*> reader = trainer.forward(*forward);
  EXPECT_TRUE(reader.ok()) << reader.status();
}

void expectForwardReads(const examples::GptConfig& config, const CompileOptions& options) {
  Graph g;
  const examples::GptModel model = examples::buildGpt(g, config);
  expectForwardReads(g, model.loss, options);
}

// On the meshes that mode auto found for the training program.
TEST(StageMeshesTest, TheForwardProgramHasTheMeshesThatWereFound) {
  Graph g;
  const Tensor loss = fourProductsAndOne(g);
  expectForwardReads(g, loss, autoOnFour());
}

// Three heads over two ranks: padding them would pay in the forward program, but the weights are not stored so.
TEST(StageMeshesTest, TheForwardProgramPadsNoStoredParameter) {
  examples::GptConfig config = twoTiedLayers();
  config.layers = 3;
  config.stages = 3;
  config.width = 12;
  config.heads = 3;
  config.context = 12;
  config.batch = 4;
  CompileOptions options;
  options.mesh = "dp=2";
  options.zero = 3;
  expectForwardReads(config, options);
}

// A forward program shares the parameters, on the meshes where they lie.
TEST(StageMeshesTest, TheForwardProgramReadsTheSameParameters) {
  examples::GptConfig config = twoTiedLayers();
  config.stages = 2;
  config.parallel = {"dp", "tp", false};
  CompileOptions options;
  options.stageMeshes = "dp=3;dp=1,tp=2";
  options.zero = 3;
  expectForwardReads(config, options);
}

std::vector<double> lossesOf(examples::GptConfig config, const CompileOptions& options) {
  Graph g;
  const examples::GptModel model = examples::buildGpt(g, config);
  const absl::StatusOr<Program> program = compile(g, model.loss, optim::AdamW{.lr = 0.05}, options);
  EXPECT_TRUE(program.ok()) << program.status();
  if (!program.ok()) {
    return {};
  }
  TrainerOptions quiet;
  quiet.progress = false;
  Trainer trainer(*program, quiet);
  const absl::Status status = trainer.fit(4, [&](int64_t step, Feed& feed) {
    std::vector<int32_t> x(config.batch * config.context);
    std::vector<int32_t> y(x.size());
    for (size_t i = 0; i < x.size(); ++i) {
      x[i] = static_cast<int32_t>((i * 7 + static_cast<size_t>(step)) % kVocabulary);
      y[i] = static_cast<int32_t>((i * 5 + 3) % kVocabulary);
    }
    feed.write("x", x);
    feed.write("y", y);
  });
  EXPECT_TRUE(status.ok()) << status;
  return trainer.losses();
}

// The new value of a parameter reaches every submesh that holds it: the losses of later steps are those of one rank.
// f32: the losses, about 3, agree to 1e-4, that is 300 roundings; a head that keeps its first weights is off by 0.03
// and more.
TEST(StageMeshesTest, LaterStepsSeeTheNewParameters) {
  examples::GptConfig config = twoTiedLayers();
  config.deviation = 0.3;
  const std::vector<double> one = lossesOf(config, {});
  ASSERT_EQ(one.size(), 4U);
  config.stages = 2;
  for (const char* meshes : {"dp=2;dp=1", "dp=1;dp=3", "dp=2,tp=2;dp=2"}) {
    for (const int zero : {0, 3}) {
      SCOPED_TRACE(absl::StrCat(meshes, ", zero ", zero));
      CompileOptions options;
      options.stageMeshes = meshes;
      options.zero = zero;
      options.micro = 2;
      const std::vector<double> many = lossesOf(config, options);
      ASSERT_EQ(many.size(), 4U);
      for (size_t step = 0; step < 4; ++step) {
        EXPECT_NEAR(many[step], one[step], 1e-4) << "step " << step;
      }
    }
  }
}

std::string errorOf(const CompileOptions& options, int64_t batch) {
  const absl::StatusOr<std::string> text = twoMatmuls(options, batch);
  return std::string(text.ok() ? compileText(*text).status().message() : text.status().message());
}

TEST(StageMeshesTest, BadMeshesAreRefused) {
  CompileOptions options;
  options.schedule = "1f1b";
  options.stageMeshes = "dp=2;dp=1;dp=2";
  EXPECT_THAT(errorOf(options, 24), HasSubstr("there are 3 stage meshes (dp=2;dp=1;dp=2) for 2 submeshes"));
  options.stageMeshes = "dp=2";
  EXPECT_THAT(errorOf(options, 24), HasSubstr("there are 1 stage meshes (dp=2) for 2 submeshes"));
  options.stageMeshes = "dp=2;dp=0";
  EXPECT_THAT(errorOf(options, 24), HasSubstr("'0'"));
  options.stageMeshes = "dp=2;;";
  EXPECT_NE(errorOf(options, 24), "");
  options.stageMeshes = "dp=2;dp=1,micro=2";
  EXPECT_THAT(errorOf(options, 24), HasSubstr("not in 'dp=1,micro=2'"));
  options.stageMeshes = "dp=2;dp=1";
  options.devices = 4;
  EXPECT_THAT(errorOf(options, 24), HasSubstr("have 3 ranks together, but devices = 4"));
  options.devices = 3;
  EXPECT_EQ(errorOf(options, 24), "");
  options.mesh = "dp=2";
  EXPECT_THAT(errorOf(options, 24), HasSubstr("are both given"));
}

}  // namespace
}  // namespace weft::testing

int main(int argc, char** argv) {
  return weft::testing::runSeeded(argc, argv, weft::testing::seeds, 300);
}
