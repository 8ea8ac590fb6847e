// recompute = "auto" on whole programs: against an exhaustive comparison of compiled plans, against full recomputation
// of some layers, and that nothing of the results changes.

#include <gmock/gmock.h>
#include <google/protobuf/util/message_differencer.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "examples/gpt/model.h"
#include "planner/cost/plan_time.h"
#include "planner/decisions.h"
#include "runtime/plan/statistics.h"
#include "weft/weft.h"

namespace weft {
namespace {

using ::testing::HasSubstr;

struct Measured {
  double seconds = 0;
  int64_t peakBytes = 0;
  int64_t activationBytes = 0;
};

Measured measured(const Program& program) {
  return {*stepSeconds(program.plan, Machine()), program.plan.memory().peak_bytes(),
          statisticsOf(program.plan).memory.at("activation")};
}

// Two layers of four operators each that a pattern may name: "l0.fc", "l0.bias", "l0.gelu", "l0.drop".
absl::StatusOr<Program> compileLayers(const std::string& recompute, int64_t memoryLimit) {
  Graph g;
  Tensor x = g.input("x", {32, 16});
  const Tensor y = g.input("y", {32}, kI32);
  for (int layer = 0; layer < 2; ++layer) {
    const std::string name = "l" + std::to_string(layer);
    Tensor h = matmul(x, g.parameter(name + ".fc.weight", {16, 64})).named(name + ".fc");
    h = add(h, g.parameter(name + ".fc.bias", {64})).named(name + ".bias");
    h = dropout(gelu(h).named(name + ".gelu"), 0.3).named(name + ".drop");
    x = add(x, matmul(h, g.parameter(name + ".out.weight", {64, 16})));
  }
  const Tensor loss = mean(softmaxCrossEntropy(x, y));
  CompileOptions options;
  options.micro = 2;
  options.recompute = recompute;
  options.memoryLimit = memoryLimit;
  return compile(g, loss, optim::Sgd{.lr = 0.1}, options);
}

// Whatever else is recomputed, nothing that keeps as little is shorter. (What runs again takes transient memory
// as well, which the choice sees only by measuring: of two choices that keep the same bytes it takes the shorter.)
TEST(RecomputeTest, IsTheShortestOfAllThatKeepAsLittle) {
  std::vector<std::string> names;
  for (const char* layer : {"l0", "l1"}) {
    for (const char* op : {".fc", ".bias", ".gelu", ".drop"}) {
      names.push_back(std::string(layer) + op);
    }
  }
  std::vector<Measured> all;
  std::vector<int64_t> limits;
  for (unsigned subset = 0; subset < 1U << names.size(); ++subset) {
    std::string patterns = "none";
    for (size_t i = 0; i < names.size(); ++i) {
      patterns += (subset >> i & 1) != 0 ? "," + names[i] : "";
    }
    const absl::StatusOr<Program> program = compileLayers(patterns, 0);
    ASSERT_TRUE(program.ok()) << program.status();
    all.push_back(measured(*program));
    limits.push_back(all.back().peakBytes);
  }
  std::sort(limits.begin(), limits.end());
  limits.erase(std::unique(limits.begin(), limits.end()), limits.end());
  ASSERT_GE(limits.size(), 5U);
  std::set<int64_t> kept;
  for (const int64_t limit : limits) {
    const absl::StatusOr<Program> program = compileLayers("auto", limit);
    ASSERT_TRUE(program.ok()) << program.status();
    EXPECT_LE(program->plan.memory().peak_bytes(), limit);
    const Measured chosen = measured(*program);
    kept.insert(chosen.activationBytes);
    for (const Measured& one : all) {
      EXPECT_TRUE(one.activationBytes > chosen.activationBytes || one.seconds >= chosen.seconds * (1 - 1e-12))
          << "limit " << limit << ": " << one.seconds << " s instead of " << chosen.seconds;
    }
  }
  EXPECT_GE(kept.size(), 3U);
}

struct GptRequest {
  std::string recompute = "auto";
  int64_t memoryLimit = 0;
  int64_t stages = 1;
  std::string schedule = "1f1b";
  std::string mesh;
  std::string decisions;
  int64_t fullLayers = 0;  // the first so many layers as a whole, by Graph::recompute, as other frameworks do
};

examples::GptConfig gptConfig(const GptRequest& request) {
  examples::GptConfig config;
  config.layers = 4;
  config.width = 32;
  config.heads = 4;
  config.context = 16;
  config.batch = 16;
  config.vocabulary = 64;
  config.dropout = 0.2;
  config.stages = request.stages;
  config.recomputeLayers = request.fullLayers;
  if (request.mesh == "tp=2") {
    config.parallel = {"", "tp", true};
  }
  return config;
}

absl::StatusOr<Program> compileGpt(const GptRequest& request) {
  Graph g;
  const examples::GptModel model = examples::buildGpt(g, gptConfig(request));
  CompileOptions options;
  options.micro = 4;
  options.mesh = request.mesh;
  options.schedule = request.schedule;
  options.recompute = request.recompute;
  options.memoryLimit = request.memoryLimit;
  options.decisions = request.decisions;
  return compile(g, model.loss, optim::AdamW{.lr = 1e-2}, options);
}

int64_t activationBytes(const Program& program) {
  return statisticsOf(program.plan).memory.at("activation");
}

// Losses and parameters after four steps.
std::vector<char> trained(const Program& program) {
  Trainer trainer(program, {.threadsPerRank = 1});
  EXPECT_TRUE(trainer.status().ok()) << trainer.status();
  const absl::Status fitted = trainer.fit(4, [](int64_t step, Feed& feed) {
    std::vector<int32_t> x(16 * 16);
    std::vector<int32_t> y(16 * 16);
    for (size_t i = 0; i < x.size(); ++i) {
      x[i] = static_cast<int32_t>((i * 7 + step * 3) % 64);
      y[i] = static_cast<int32_t>((i * 5 + step) % 64);
    }
    feed.write("x", x);
    feed.write("y", y);
  });
  EXPECT_TRUE(fitted.ok()) << fitted;
  std::vector<char> bytes;
  const auto* losses = reinterpret_cast<const char*>(trainer.losses().data());
  bytes.assign(losses, losses + trainer.losses().size() * sizeof(double));
  for (const plan::NamedTensor& tensor : program.plan.tensors()) {
    if (tensor.kind() == plan::TENSOR_PARAMETER) {
      const absl::StatusOr<std::vector<char>> value = trainer.executor().readTensor(tensor.name());
      EXPECT_TRUE(value.ok()) << value.status();
      bytes.insert(bytes.end(), value->begin(), value->end());
    }
  }
  return bytes;
}

struct Setting {
  std::string name;
  GptRequest request;
  std::vector<int> percents = {75, 50, 35};  // of the activations
};

void PrintTo(const Setting& setting, std::ostream* stream) {
  *stream << setting.name;
}

class RecomputeGptTest : public testing::TestWithParam<Setting> {};

TEST_P(RecomputeGptTest, FitsAndChangesNothing) {
  GptRequest request = GetParam().request;
  const absl::StatusOr<Program> plain = compileGpt(request);
  ASSERT_TRUE(plain.ok()) << plain.status();
  const std::vector<char> expected = trained(*plain);
  const int64_t peak = plain->plan.memory().peak_bytes();
  for (const int percent : GetParam().percents) {
    request.memoryLimit = peak - activationBytes(*plain) * (100 - percent) / 100;
    const absl::StatusOr<Program> program = compileGpt(request);
    ASSERT_TRUE(program.ok()) << program.status();
    EXPECT_LE(program->plan.memory().peak_bytes(), request.memoryLimit);
    EXPECT_TRUE(trained(*program) == expected) << percent << " % of the activations";
    // The record says it all: given back without a limit it makes the same plan.
    GptRequest given = GetParam().request;
    given.decisions = program->decisions();
    const absl::StatusOr<Program> again = compileGpt(given);
    ASSERT_TRUE(again.ok()) << again.status();
    EXPECT_TRUE(google::protobuf::util::MessageDifferencer::Equals(again->plan, program->plan)) << percent << " %";
  }
}

TEST_P(RecomputeGptTest, IsNoLongerThanFullLayersInTheirMemory) {
  GptRequest request = GetParam().request;
  for (int64_t layers = 1; layers <= 4; ++layers) {
    request.fullLayers = layers;
    request.memoryLimit = 0;
    const absl::StatusOr<Program> full = compileGpt(request);
    ASSERT_TRUE(full.ok()) << full.status();
    request.fullLayers = 0;
    request.memoryLimit = full->plan.memory().peak_bytes();
    const absl::StatusOr<Program> program = compileGpt(request);
    ASSERT_TRUE(program.ok()) << program.status();
    EXPECT_LE(measured(*program).seconds, measured(*full).seconds * (1 + 1e-12)) << layers << " layers";
  }
}

TEST_P(RecomputeGptTest, NamesTheLeastOfAllChoices) {
  GptRequest request = GetParam().request;
  request.memoryLimit = 1000;
  const absl::StatusOr<Program> none = compileGpt(request);
  ASSERT_FALSE(none.ok());
  const std::string error(none.status().message());
  EXPECT_THAT(error, HasSubstr("the limit is 1000"));
  const std::string before = "needs at least ";
  ASSERT_THAT(error, HasSubstr(before));
  const int64_t least = std::stoll(error.substr(error.find(before) + before.size()));
  request.memoryLimit = least;
  EXPECT_TRUE(compileGpt(request).ok());
  // Nearer to it other choices are tried, too: the least may come out a little less.
  request.memoryLimit = least * 97 / 100;
  const std::string nearer(compileGpt(request).status().message());
  ASSERT_THAT(nearer, HasSubstr(before));
  EXPECT_LE(std::stoll(nearer.substr(nearer.find(before) + before.size())), least);
}

INSTANTIATE_TEST_SUITE_P(Settings, RecomputeGptTest,
                         testing::Values(Setting{"OneRank", {}}, Setting{"TwoStages", {.stages = 2}},
                                         Setting{
                                             "TwoStagesSplitBackward", {.stages = 2, .schedule = "zb_h1"}, {90, 75}},
                                         Setting{"SequenceSplit", {.mesh = "tp=2"}},
                                         Setting{"TwoStagesSequenceSplitBackward",
                                                 {.stages = 2, .schedule = "zb_h1", .mesh = "tp=2"},
                                                 {95, 90, 80}}),
                         [](const testing::TestParamInfo<Setting>& info) { return info.param.name; });

// A gather on the way to a kept value is kept or repeated for itself.
TEST(RecomputeTest, CollectivesAreItems) {
  GptRequest request = {.mesh = "tp=2"};
  const absl::StatusOr<Program> plain = compileGpt(request);
  ASSERT_TRUE(plain.ok()) << plain.status();
  int repeated = 0;
  int without = 0;
  for (const int percent : {80, 60, 40}) {
    request.memoryLimit = plain->plan.memory().peak_bytes() - activationBytes(*plain) * (100 - percent) / 100;
    const absl::StatusOr<Program> program = compileGpt(request);
    ASSERT_TRUE(program.ok()) << program.status();
    const absl::StatusOr<Decisions> record = parseDecisions(program->decisions());
    ASSERT_TRUE(record.ok()) << record.status();
    for (const ReshardDecision& reshard : record->reshards) {
      repeated += reshard.recompute ? 1 : 0;
      EXPECT_GT(reshard.recomputePrice.time + (reshard.recompute ? 0 : 1), 0);
    }
    const auto gathers = [](const Program& of) { return statisticsOf(of.plan).collectives.at("all_gather").calls; };
    without += gathers(*program) == gathers(*plain) ? 1 : 0;
  }
  EXPECT_GT(repeated, 0);
  EXPECT_GT(without, 0);  // cheaper ones first
}

// What gradients of activations and of weights read gathered is gathered for each, where they run apart, memory is
// short and that is expected to take less than to recompute instead.
TEST(RecomputeTest, GradientsAreGatheredAgainForWeights) {
  GptRequest request = {.stages = 2, .schedule = "zb_h1", .mesh = "tp=2"};
  const absl::StatusOr<Program> plain = compileGpt(request);
  ASSERT_TRUE(plain.ok()) << plain.status();
  request.memoryLimit = plain->plan.memory().peak_bytes() - activationBytes(*plain) / 10;
  const absl::StatusOr<Program> program = compileGpt(request);
  ASSERT_TRUE(program.ok()) << program.status();
  const absl::StatusOr<Decisions> record = parseDecisions(program->decisions());
  ASSERT_TRUE(record.ok()) << record.status();
  for (const ReshardDecision& reshard : record->reshards) {
    const OperatorDecision* maker = record->find(reshard.id);
    EXPECT_TRUE(reshard.recompute && maker != nullptr && maker->runsIn == RunsIn::kBackward) << reshard.label;
    EXPECT_GT(reshard.recomputePrice.time, 0);
    EXPECT_GT(reshard.recomputePrice.bytes, 0);
  }
  EXPECT_EQ(record->reshards.size(), 8U);  // of each layer two weights are split along their rows
  for (const OperatorDecision& op : record->operators) {
    EXPECT_FALSE(op.recompute) << op.label;
  }
  const auto gathers = [](const Program& of) { return statisticsOf(of.plan).collectives.at("all_gather").tensors; };
  EXPECT_GT(gathers(*program), gathers(*plain));
  EXPECT_LT(activationBytes(*program), activationBytes(*plain));
  EXPECT_LE(program->plan.memory().peak_bytes(), request.memoryLimit);
  EXPECT_EQ(record->prediction->most(), program->plan.memory().peak_bytes());
  EXPECT_TRUE(trained(*program) == trained(*plain));
  // Little is saved more cheaply by operators that run again.
  request.memoryLimit = plain->plan.memory().peak_bytes() - 1;
  const absl::StatusOr<Program> little = compileGpt(request);
  ASSERT_TRUE(little.ok()) << little.status();
  EXPECT_EQ(gathers(*little), gathers(*plain));
}

// With the schedule open too, a kind that does not fit as it is may win by recomputing.
TEST(RecomputeTest, TogetherWithTheSchedule) {
  GptRequest request = {.stages = 2, .schedule = "auto"};
  const absl::StatusOr<Program> plain = compileGpt(request);
  ASSERT_TRUE(plain.ok()) << plain.status();
  for (const int percent : {70, 40}) {
    request.schedule = "auto";
    request.memoryLimit = plain->plan.memory().peak_bytes() - activationBytes(*plain) * (100 - percent) / 100;
    const absl::StatusOr<Program> program = compileGpt(request);
    ASSERT_TRUE(program.ok()) << program.status();
    EXPECT_LE(program->plan.memory().peak_bytes(), request.memoryLimit);
    for (const char* kind : {"gpipe", "1f1b", "zb_h1", "zb_h2"}) {
      request.schedule = kind;
      const absl::StatusOr<Program> fixed = compileGpt(request);
      if (fixed.ok()) {
        EXPECT_LE(measured(*program).seconds, measured(*fixed).seconds * (1 + 1e-12)) << kind << ", " << percent;
      }
    }
  }
}

}  // namespace
}  // namespace weft
