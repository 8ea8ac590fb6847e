// Evaluation over a trainer's parameters: metrics that weigh rows and tokens, batches that are not full, programs of
// other sizes on every mesh, and states of one's own (a moving average of the weights) read in place of parameters.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <optional>

#include "examples/resnet/model.h"
#include "tests/support/files.h"
#include "weft/weft.h"

namespace weft {
namespace {

using ::testing::HasSubstr;
using testing::TemporaryDirectory;

constexpr int64_t kVocabulary = 11;
constexpr int64_t kMostTokens = 8;
constexpr int32_t kIgnored = -100;

struct Setting {
  std::string name;
  int64_t stages = 1;  // 0: the model names none
  CompileOptions options = {};
  bool tied = false;  // is the head the embedding's table?
};

void PrintTo(const Setting& layout, std::ostream* out) {
  *out << layout.name;
}

TrainerOptions quiet() {
  return {.threadsPerRank = 1, .progress = false};
}

// A language model of one layer, in f64, for any batch and any context up to kMostTokens.
struct Language {
  Tensor tokens, labels, logits, losses, counted;
};

Language buildLanguage(Graph& g, int64_t batch, int64_t context, const Setting& layout) {
  g.setParameterType(kF64);
  const Init init = Init::normal(0.3);
  Language model;
  model.tokens = g.input("x", {batch, context}, kI32);
  model.labels = g.input("y", {batch, context}, kI32);
  std::optional<Scope> stage;
  if (layout.stages > 0) {
    stage.emplace(g.stage(0));
  }
  const Tensor places = slice(g.parameter("wpe", {kMostTokens, 8}, init), {0, 0}, {context, 8});
  const Tensor table = g.parameter("wte", {kVocabulary, 8}, init);
  Tensor h = embedding(table, model.tokens) + places;
  h = nn::TransformerBlock(g, "h0", 8, 2, {.init = init})(h);
  stage.reset();
  if (layout.stages > 0) {
    stage.emplace(g.stage(static_cast<int>(layout.stages) - 1));
  }
  h = nn::TransformerBlock(g, "h1", 8, 2, {.init = init})(h);
  model.logits =
      layout.tied ? matmul(h, table, {.transposeB = true}) : matmul(h, g.parameter("head", {8, kVocabulary}, init));
  model.logits = model.logits + g.parameter("bias", {kVocabulary}, init);
  model.losses = softmaxCrossEntropy(model.logits, model.labels, kIgnored);
  model.counted = compare(model.labels, kIgnored, "ne");
  return model;
}

// Row `row` of a text: some labels are ignored, more in some rows than in others.
int32_t tokenAt(int64_t row, int64_t place) {
  return static_cast<int32_t>((row * row * 5 + row + place * 3 + place * place) % kVocabulary);
}
int32_t labelAt(int64_t row, int64_t place) {
  return (row * 3 + place) % 4 < row % 3 ? kIgnored : tokenAt(row, place + 1);
}

void writeText(Feed& feed, int64_t first, int64_t rows, int64_t context) {
  std::vector<int32_t> x;
  std::vector<int32_t> y;
  for (int64_t row = first; row < first + rows; ++row) {
    for (int64_t place = 0; place < context; ++place) {
      x.push_back(tokenAt(row, place));
      y.push_back(labelAt(row, place));
    }
  }
  feed.write("x", x);
  feed.write("y", y);
}

Program evaluationOf(const Program& training, const Setting& layout, int64_t batch, int64_t context) {
  Graph g;
  const Language model = buildLanguage(g, batch, context, layout);
  metric("loss", model.losses, model.counted);
  metric("accuracy", compare(argmax(model.logits, -1), model.labels, "eq"), model.counted);
  metric("greatest", max(model.logits, {-1}));
  g.output("logits", model.logits);
  const absl::StatusOr<Program> program = compileForward(g, Tensor(), forwardOptions(training, layout.options));
  EXPECT_TRUE(program.ok()) << program.status();
  return program.ok() ? *program : Program();
}

Program trainingOf(const Setting& layout, int64_t batch = 8) {
  Graph g;
  const Language model = buildLanguage(g, batch, kMostTokens, layout);
  const absl::StatusOr<Program> program =
      compile(g, meanValid(model.losses, model.labels, kIgnored), optim::Adam{.lr = 0.05}, layout.options);
  EXPECT_TRUE(program.ok()) << program.status();
  return program.ok() ? *program : Program();
}

// Over `rows` rows, the last batch as full as it gets.
Metrics evaluate(Trainer& trainer, const Program& program, int64_t rows, int64_t batch, int64_t context) {
  const absl::StatusOr<Metrics> metrics =
      trainer.evaluate(program, (rows + batch - 1) / batch, [&](int64_t number, Feed& feed) {
        writeText(feed, number * batch, feed.rows(std::min(batch, rows - number * batch)), context);
      });
  EXPECT_TRUE(metrics.ok()) << metrics.status();
  return metrics.ok() ? *metrics : Metrics();
}

std::vector<double> logitsOf(Trainer& trainer, const Program& program, int64_t batch, int64_t context) {
  const absl::StatusOr<Executor*> executor = trainer.forward(program);
  if (!executor.ok()) {
    ADD_FAILURE() << executor.status();
    return {};
  }
  Feed feed(**executor);
  writeText(feed, 0, batch, context);
  EXPECT_TRUE(feed.status().ok()) << feed.status();
  EXPECT_TRUE((*executor)->runStep().ok());
  const std::vector<char> bytes = *(*executor)->readTensor("logits");
  std::vector<double> logits(bytes.size() / sizeof(double));
  std::memcpy(logits.data(), bytes.data(), bytes.size());
  return logits;
}

class SizesTest : public ::testing::TestWithParam<Setting> {};

// The sums of a few hundred losses of size 1 in f64, each after a few hundred operations: 1e-11 is far above what their
// order changes, and far below what one row more or less would.
void expectNear(const Metrics& actual, const Metrics& expected) {
  ASSERT_EQ(actual.size(), expected.size());
  for (const auto& [name, value] : expected) {
    EXPECT_NEAR(actual.at(name), value, 1e-11 * (1 + std::abs(value))) << name;
  }
}

// Train with batches of 8 rows of 8 tokens; evaluate with 7 x 5 and 2 x 8, generate with 1 x 3, over one store.
TEST_P(SizesTest, ProgramsOfOtherSizesAgreeWithOneRank) {
  const TemporaryDirectory dir;
  const Program training = trainingOf(GetParam());
  Trainer trainer(training, quiet());
  ASSERT_TRUE(trainer.fit(3, [](int64_t step, Feed& feed) { writeText(feed, step * 8, 8, kMostTokens); }).ok());
  ASSERT_TRUE(trainer.save(dir / "a").ok());
  const Setting alone = {"one", 1, {}, GetParam().tied};
  const Program serial = trainingOf(alone);
  Trainer one(serial, quiet());
  ASSERT_TRUE(one.load(dir / "a").ok());
  const Program single = evaluationOf(serial, alone, 1, 5);
  const Metrics expected = evaluate(one, single, 23, 1, 5);
  EXPECT_EQ(expected.size(), 3U);
  const Program seven = evaluationOf(training, GetParam(), 7, 5);
  expectNear(evaluate(trainer, seven, 23, 7, 5), expected);
  const Program two = evaluationOf(training, GetParam(), 2, 5);
  expectNear(evaluate(trainer, two, 23, 2, 5), expected);
  const Program generating = evaluationOf(training, GetParam(), 1, 3);
  const std::vector<double> actual = logitsOf(trainer, generating, 1, 3);
  const std::vector<double> logits = logitsOf(one, evaluationOf(serial, alone, 1, 3), 1, 3);
  ASSERT_EQ(actual.size(), logits.size());
  for (size_t i = 0; i < logits.size(); ++i) {
    EXPECT_NEAR(actual[i], logits[i], 1e-12 * (1 + std::abs(logits[i])));
  }
  // Training goes on, over what the others read.
  EXPECT_TRUE(trainer.fit(1, [](int64_t step, Feed& feed) { writeText(feed, step * 8, 8, kMostTokens); }).ok());
}

INSTANTIATE_TEST_SUITE_P(
    Layouts, SizesTest,
    ::testing::Values(Setting{"dp2", 1, {.mesh = "dp=2"}}, Setting{"dp3", 1, {.mesh = "dp=3"}},
                      Setting{"dp4", 1, {.mesh = "dp=4"}},
                      Setting{"dp2_zero3_micro2", 1, {.mesh = "dp=2", .micro = 2, .zero = 3}},
                      Setting{"tp2", 1, {.mode = Mode::kLayouts, .mesh = "dp=2,tp=2"}},
                      Setting{"stages2", 2, {.micro = 4, .schedule = "1f1b"}},
                      Setting{"stages2_dp2_zero3", 2, {.mesh = "dp=2", .micro = 2, .zero = 3}},
                      Setting{"stage_meshes", 2, {.stageMeshes = "dp=2;dp=1", .micro = 2}},
                      Setting{"auto4", 0, {.mode = Mode::kAuto, .devices = 4}},
                      Setting{"auto4_v", 1, {.mode = Mode::kAuto, .devices = 4, .schedule = "zb_v"}},
                      // The kind alone asks for more than one micro-batch.
                      Setting{"auto4_dualpipe_v", 1, {.mode = Mode::kAuto, .devices = 4, .schedule = "dualpipe_v"}},
                      // The first and the last stage, of one submesh, read a parameter.
                      Setting{"auto3_v_tied", 0, {.mode = Mode::kAuto, .devices = 3, .schedule = "zb_v"}, true}),
    [](const auto& info) { return info.param.name; });

// What the tests above could not see if rows that fill a batch counted.
TEST(EvaluationTest, FullBatchesCountAllRows) {
  const Setting alone = {"one"};
  const Program training = trainingOf(alone);
  Trainer trainer(training, quiet());
  const Program program = evaluationOf(training, alone, 7, 5);
  const auto rowsOf = [&](int64_t said) {
    return *trainer.evaluate(program, 1, [&](int64_t, Feed& feed) {
      if (said > 0) {
        feed.rows(said);
      }
      writeText(feed, 0, 7, 5);
    });
  };
  EXPECT_EQ(rowsOf(0), rowsOf(7));
  EXPECT_NE(rowsOf(0), rowsOf(4));
  EXPECT_EQ(rowsOf(4), evaluate(trainer, program, 4, 7, 5)) << "rows behind the real ones do not matter";
}

// A reader of files is asked for real rows alone, also by ranks that have none.
TEST(EvaluationTest, RowByRowOnlyRealRowsAreRead) {
  const Setting split = {"dp4", 1, {.mesh = "dp=4"}};
  const Program training = trainingOf(split);
  Trainer trainer(training, quiet());
  const Program program = evaluationOf(training, split, 7, 5);
  const Metrics expected = evaluate(trainer, program, 3, 7, 5);
  int64_t last = 0;
  const auto rowByRow = [&](const std::function<int32_t(int64_t, int64_t)>& at) {
    return [&, at](int64_t first, int64_t rows, int32_t* out) {
      last = std::max(last, first + rows - 1);
      for (int64_t i = 0; i < rows * 5; ++i) {
        out[i] = at(first + i / 5, i % 5);
      }
    };
  };
  const auto metrics = trainer.evaluate(program, 1, [&](int64_t, Feed& feed) {
    feed.rows(3);
    feed.writeRows<int32_t>("x", rowByRow(tokenAt));
    feed.writeRows<int32_t>("y", rowByRow(labelAt));
  });
  ASSERT_TRUE(metrics.ok()) << metrics.status();
  EXPECT_EQ(*metrics, expected);
  EXPECT_EQ(last, 2);
}

// Not the mean of the batches' means: these have other numbers of counted tokens.
TEST(EvaluationTest, TokensWeighAlike) {
  Graph g;
  const Tensor x = g.input("x", {2, 3});
  const Tensor weights = g.input("w", {2, 3});
  metric("mean", x);
  metric("chosen", x, compare(weights, 0, "gt"));
  metric("weighed", x, weights);
  Graph training;
  const absl::StatusOr<Program> trained =
      compile(training, mean(training.parameter("w1", {1})), optim::Sgd{}, {.mesh = "dp=2"});
  const absl::StatusOr<Program> program = compileForward(g, Tensor(), {.mesh = "dp=2"});
  ASSERT_TRUE(trained.ok() && program.ok()) << trained.status() << program.status();
  Trainer trainer(*trained, quiet());
  const auto metrics = trainer.evaluate(*program, 2, [](int64_t batch, Feed& feed) {
    feed.rows(batch == 0 ? 2 : 1);
    // An element that is not chosen may hold anything.
    feed.write("x", batch == 0 ? std::vector<float>{1, 2, 3, 4, 5, NAN} : std::vector<float>{7, 8, 9});
    feed.write("w", batch == 0 ? std::vector<float>{1, 0, 0, 0, 2, 0} : std::vector<float>{0, 0, 0.5});
  });
  ASSERT_TRUE(metrics.ok()) << metrics.status();
  EXPECT_TRUE(std::isnan(metrics->at("mean")));
  EXPECT_DOUBLE_EQ(metrics->at("chosen"), (1 + 5 + 9) / 3.0);
  EXPECT_TRUE(std::isnan(metrics->at("weighed"))) << "0 NaN is NaN";
}

TEST(EvaluationTest, SaysWhatIsWrong) {
  const Setting alone = {"one"};
  const Program training = trainingOf(alone);
  Trainer trainer(training, quiet());
  const Program program = evaluationOf(training, alone, 4, 5);
  const auto messageOf = [&](const Program& run, int64_t batches, const FeedFunction& feed) {
    return std::string(trainer.evaluate(run, batches, feed).status().message());
  };
  const auto text = [](int64_t, Feed& feed) { writeText(feed, 0, 4, 5); };
  EXPECT_EQ(messageOf(program, 0, text), "evaluate was asked for 0 batches; it takes 1 or more");
  for (const int64_t rows : {0, 5, -1}) {
    EXPECT_EQ(messageOf(program, 1, [&](int64_t, Feed& feed) { feed.rows(rows); }),
              "rows(" + std::to_string(rows) + "): a batch of this program has 1 to 4");
  }
  EXPECT_THAT(messageOf(program, 1,
                        [](int64_t, Feed& feed) {
                          feed.rows(3);
                          writeText(feed, 0, 2, 5);
                        }),
              HasSubstr("'x'"));
  EXPECT_THAT(std::string(trainer.fit(1, [](int64_t, Feed& feed) { feed.rows(3); }).message()),
              HasSubstr("rows(3) in a training step, whose loss would count what fills the batch"));
  Graph g;
  g.output("logits", buildLanguage(g, 4, 5, {}).logits);
  const absl::StatusOr<Program> bare = compileForward(g, Tensor(), forwardOptions(training, {}));
  ASSERT_TRUE(bare.ok()) << bare.status();
  EXPECT_THAT(messageOf(*bare, 1, text), HasSubstr("the program has no metrics; give its graph some by weft::metric"));
}

// A training step counts, too, over its micro-batches.
TEST(EvaluationTest, TrainingStepsHaveMetrics) {
  const auto countsOf = [](const CompileOptions& options) {
    Graph g;
    const Language model = buildLanguage(g, 8, kMostTokens, {});
    metric("accuracy", compare(argmax(model.logits, -1), model.labels, "eq"), model.counted);
    const auto program = compile(g, meanValid(model.losses, model.labels, kIgnored), optim::Sgd{}, options);
    EXPECT_TRUE(program.ok()) << program.status();
    Trainer trainer(*program, quiet());
    EXPECT_TRUE(trainer.fit(1, [](int64_t, Feed& feed) { writeText(feed, 0, 8, kMostTokens); }).ok());
    return std::pair(*trainer.executor().readScalar("accuracy.sum"), *trainer.executor().readScalar("accuracy.weight"));
  };
  const auto expected = countsOf({});
  EXPECT_GT(expected.second, 30);
  EXPECT_EQ(countsOf({.mesh = "dp=2", .micro = 2}), expected);
  EXPECT_EQ(countsOf({.mesh = "dp=3"}), expected);
}

// A residual network, its norms with running statistics, on images of which the last batch is not full.
TEST(EvaluationTest, ImagesAreCountedOnceOnEveryMesh) {
  const auto configOf = [](int64_t batch, int64_t stages, bool training) {
    examples::ResnetConfig config;
    config.batch = batch;
    config.rows = 8;
    config.columns = 8;
    config.classes = 5;
    config.stem = 4;
    config.widths = {4, 8};
    config.stages = stages;
    config.training = training;
    return config;
  };
  const auto write = [](Feed& feed, int64_t first, int64_t rows) {
    std::vector<float> x(rows * 64);
    std::vector<int32_t> y(rows);
    for (int64_t row = 0; row < rows; ++row) {
      for (int64_t i = 0; i < 64; ++i) {
        x[row * 64 + i] = static_cast<float>(std::sin(static_cast<double>((first + row + 1) * (i + 2))));
      }
      y[row] = static_cast<int32_t>((first + row) * 7 % 5);
    }
    feed.write("x", x);
    feed.write("y", y);
  };
  const TemporaryDirectory dir;
  const auto metricsOf = [&](const Setting& layout, int64_t batch, bool trains) {
    Graph g;
    const auto program =
        compile(g, examples::buildResnet(g, configOf(8, layout.stages, true)).loss, optim::Adam{}, layout.options);
    Graph evaluated;
    const examples::ResnetModel model = examples::buildResnet(evaluated, configOf(batch, layout.stages, false));
    metric("loss", softmaxCrossEntropy(model.logits, model.labels));
    metric("accuracy", compare(argmax(model.logits, -1), model.labels, "eq"));
    EXPECT_TRUE(program.ok()) << program.status();
    const auto evaluation = compileForward(evaluated, Tensor(), forwardOptions(*program, layout.options));
    EXPECT_TRUE(evaluation.ok()) << evaluation.status();
    Trainer trainer(*program, quiet());
    if (trains) {
      EXPECT_TRUE(trainer.fit(2, [&](int64_t step, Feed& feed) { write(feed, step * 8, 8); }).ok());
      EXPECT_TRUE(trainer.save(dir / "a", Saved::kAll).ok());
    } else {
      EXPECT_TRUE(trainer.load(dir / "a", Saved::kAll).ok());
    }
    const auto metrics = trainer.evaluate(*evaluation, (21 + batch - 1) / batch, [&](int64_t number, Feed& feed) {
      write(feed, number * batch, feed.rows(std::min(batch, 21 - number * batch)));
    });
    EXPECT_TRUE(metrics.ok()) << metrics.status();
    return metrics.ok() ? *metrics : Metrics();
  };
  metricsOf({"one"}, 8, true);
  const Metrics expected = metricsOf({"one"}, 1, false);
  for (const Setting& layout :
       {Setting{"one"}, Setting{"dp2", 1, {.mesh = "dp=2"}}, Setting{"dp4", 1, {.mesh = "dp=4"}},
        Setting{"zero3", 1, {.mesh = "dp=2", .zero = 3}}, Setting{"stages2", 2, {.micro = 2}}}) {
    SCOPED_TRACE(layout.name);
    const Metrics metrics = metricsOf(layout, 6, false);
    EXPECT_DOUBLE_EQ(metrics.at("accuracy"), expected.at("accuracy"));
    EXPECT_NEAR(metrics.at("loss"), expected.at("loss"), 1e-5) << "losses of size 1 in f32";
  }
}

// --- states of one's own ---

constexpr double kDecay = 0.75;

Program averaging(const Setting& layout) {
  Graph g;
  g.setParameterType(kF64);
  const Tensor x = g.input("x", {12, 6}, kF64);
  Tensor h;
  {
    const Scope first = g.stage(0);
    const Tensor w1 = g.parameter("w1", {6, 8}, Init::normal(0.5));
    const Tensor average = g.state("average.w1", {6, 8}, kF64, 0);
    g.assign(average, kDecay * average + (1 - kDecay) * w1);
    h = tanh(matmul(x, w1));
  }
  const Scope last = g.stage(static_cast<int>(layout.stages) - 1);
  const Tensor w2 = g.parameter("w2", {8, 4}, Init::normal(0.5));
  const Tensor average = g.state("average.w2", {8, 4}, kF64, 0);
  const Tensor y = matmul(h, w2);
  // Its old value takes part in the loss.
  const Tensor loss = mean(square(y - matmul(h, average) - 1));
  g.output("before", average);
  g.assign(average, kDecay * average + (1 - kDecay) * w2);
  const Tensor seen = g.state("seen", {}, kF64, 0);
  g.assign(seen, seen + sum(x));
  const Tensor calls = g.state("calls", {}, kI32, 0);
  g.assign(calls, calls + 1);
  const absl::StatusOr<Program> program = compile(g, loss, optim::Adam{.lr = 0.1}, layout.options);
  EXPECT_TRUE(program.ok()) << program.status();
  return program.ok() ? *program : Program();
}

// A forward program that reads the averages in place of the weights, with another batch.
Program averaged(const Program& training, const Setting& layout) {
  Graph g;
  g.setParameterType(kF64);
  const Tensor x = g.input("x", {5, 6}, kF64);
  Tensor h;
  {
    const Scope first = g.stage(0);
    h = tanh(matmul(x, g.state("average.w1", {6, 8}, kF64, 0)));
  }
  const Scope last = g.stage(static_cast<int>(layout.stages) - 1);
  const Tensor y = matmul(h, g.state("average.w2", {8, 4}, kF64, 0));
  metric("y", y);
  const absl::StatusOr<Program> program = compileForward(g, Tensor(), forwardOptions(training, layout.options));
  EXPECT_TRUE(program.ok()) << program.status();
  return program.ok() ? *program : Program();
}

void writeRows(Feed& feed, int64_t first, int64_t rows) {
  std::vector<double> x(rows * 6);
  for (size_t i = 0; i < x.size(); ++i) {
    x[i] = std::sin(0.7 * static_cast<double>(first * 6 + static_cast<int64_t>(i)));
  }
  feed.write("x", x);
}

absl::Status fit(Trainer& trainer, int64_t steps) {
  return trainer.fit(steps, [](int64_t step, Feed& feed) { writeRows(feed, step * 12, 12); });
}

// All parameters and states by name, and the outputs of the last step.
std::map<std::string, std::vector<double>> stateOf(Trainer& trainer) {
  std::map<std::string, std::vector<double>> all;
  for (const std::string name : {"w1", "w2", "average.w1", "average.w2", "before"}) {
    const std::vector<char> bytes = *trainer.executor().readTensor(name);
    all[name].resize(bytes.size() / sizeof(double));
    std::memcpy(all[name].data(), bytes.data(), bytes.size());
  }
  for (const std::string name : {"seen", "calls", "loss"}) {
    all[name] = {*trainer.executor().readScalar(name)};
  }
  return all;
}

class StateTest : public ::testing::TestWithParam<Setting> {};

TEST_P(StateTest, AMovingAverageIsThatOfOneRankAndGoesOnFromAFile) {
  const TemporaryDirectory dir;
  const Setting alone = {"one", GetParam().stages};
  const Program serial = averaging(alone);
  const Program training = averaging(GetParam());
  Trainer one(serial, quiet());
  Trainer whole(training, quiet());
  Trainer half(training, quiet());
  Trainer rest(training, quiet());
  ASSERT_TRUE(fit(one, 4).ok() && fit(whole, 4).ok());
  ASSERT_TRUE(fit(half, 2).ok() && half.save(dir / "a", Saved::kAll).ok() && rest.load(dir / "a", Saved::kAll).ok());
  ASSERT_TRUE(fit(rest, 2).ok());
  const auto expected = stateOf(one);
  EXPECT_EQ(expected.at("calls"), std::vector<double>{4});
  for (const auto& [name, values] : expected) {
    SCOPED_TRACE(name);
    const std::vector<double> actual = stateOf(whole).at(name);
    ASSERT_EQ(actual.size(), values.size());
    for (size_t i = 0; i < values.size(); ++i) {
      // Adam's step is lr g / sqrt(g^2), whatever the size of g: rounding of g by 1e-16 moves it by 1e-13 here.
      EXPECT_NEAR(actual[i], values[i], 1e-11 * (1 + std::abs(values[i])));
    }
  }
  EXPECT_EQ(stateOf(rest), stateOf(whole));
  const auto averageOf = [](Trainer& trainer, const Program& program) {
    const auto metrics = trainer.evaluate(
        program, 3, [](int64_t batch, Feed& feed) { writeRows(feed, batch * 5, feed.rows(batch == 2 ? 3 : 5)); });
    EXPECT_TRUE(metrics.ok()) << metrics.status();
    return metrics.ok() ? metrics->at("y") : NAN;
  };
  const double measured = averageOf(whole, averaged(training, GetParam()));
  EXPECT_NEAR(measured, averageOf(one, averaged(serial, alone)), 1e-11);
  EXPECT_EQ(stateOf(whole).at("calls"), std::vector<double>{4}) << "a forward program changes no state";
}

// By the definition: of the weights that each step read.
TEST(StateTest, TheAverageIsThatOfTheWeightsThatStepsRead) {
  const Program program = averaging({"one"});
  Trainer trainer(program, quiet());
  std::vector<double> average(48, 0);
  for (int64_t step = 0; step < 3; ++step) {
    const std::vector<double> weights = stateOf(trainer).at("w1");
    for (size_t i = 0; i < average.size(); ++i) {
      average[i] = kDecay * average[i] + (1 - kDecay) * weights[i];
    }
    const std::vector<double> before = stateOf(trainer).at("average.w2");
    ASSERT_TRUE(fit(trainer, 1).ok());
    EXPECT_EQ(stateOf(trainer).at("before"), before) << "an output of a state is what the step began with";
  }
  const std::vector<double> actual = stateOf(trainer).at("average.w1");
  for (size_t i = 0; i < average.size(); ++i) {
    EXPECT_NEAR(actual[i], average[i], 1e-14);
  }
}

INSTANTIATE_TEST_SUITE_P(Layouts, StateTest,
                         ::testing::Values(Setting{"micro4", 1, {.micro = 4}}, Setting{"dp2", 1, {.mesh = "dp=2"}},
                                           Setting{"dp2_zero2_micro3", 1, {.mesh = "dp=2", .micro = 3, .zero = 2}},
                                           Setting{"dp2_zero3", 1, {.mesh = "dp=2", .zero = 3}},
                                           Setting{"dp2_zero3_micro2", 1, {.mesh = "dp=2", .micro = 2, .zero = 3}},
                                           Setting{"tp2", 1, {.mode = Mode::kLayouts, .mesh = "tp=2"}},
                                           Setting{"stages2_1f1b", 2, {.micro = 4, .schedule = "1f1b"}},
                                           Setting{"stages2_dp2_zero3", 2, {.mesh = "dp=2", .micro = 2, .zero = 3}},
                                           Setting{"recompute", 1, {.micro = 2, .recompute = "full"}}),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace weft
