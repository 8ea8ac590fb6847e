// The advice of `weft advise`, followed: each line is compiled, and what it promised compared with the plan's bytes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "examples/gpt/model.h"
#include "planner/advise/advise_memory.h"
#include "planner/cost/plan_time.h"
#include "planner/decisions.h"
#include "weft/weft.h"

namespace weft {
namespace {

// What the model does not follow, as a share of the peak: all_reduces that a slice behind them turns into
// reduce_scatters (ZeRO 1), and a tighter packing.
constexpr double kBytes = 0.01;
constexpr double kTime = 1e-6;

struct Case {
  std::string name;
  std::string mesh;
  int64_t stages = 1;
  int64_t virtualStages = 0;
  std::string schedule = "1f1b";
  int64_t micro = 1;
  std::vector<std::string> kinds;  // that must be among the advice
};

// Builds the model of a case, and compiles it or asks for advice.
template <typename Made>
absl::StatusOr<Made> made(const Case& c, const CompileOptions& options,
                          absl::StatusOr<Made> (*make)(Graph&, const Tensor&, const Optimizer&,
                                                       const CompileOptions&)) {
  Graph g;
  examples::GptConfig config;
  config.layers = 4;
  config.width = 64;
  config.heads = 4;
  config.context = 32;
  config.batch = 16;
  config.vocabulary = 64;
  config.stages = c.stages;
  const examples::GptModel model = examples::buildGpt(g, config);
  return make(g, model.loss, optim::AdamW{.lr = 1e-3}, options);
}

absl::StatusOr<Program> compileCase(const Case& c, const CompileOptions& options) {
  return made<Program>(c, options, compile);
}

absl::StatusOr<MemoryAdvice> adviceFor(const Case& c, const CompileOptions& options) {
  return made<MemoryAdvice>(c, options, advise);
}

CompileOptions optionsOf(const Case& c) {
  CompileOptions options;
  options.mesh = c.mesh;
  options.schedule = c.schedule;
  options.virtualStages = c.virtualStages;
  options.micro = c.micro;
  return options;
}

// As the tools read "--recompute a,b" and "--zero 3 --regather".
void follow(const std::string& set, CompileOptions& options) {
  const std::vector<std::string> words = absl::StrSplit(set, ' ');
  ASSERT_GE(words.size(), 2u) << set;
  int64_t number = 0;
  const bool isNumber = absl::SimpleAtoi(words[1], &number);
  if (words[0] == "--recompute") {
    options.recompute = words[1];
  } else if (words[0] == "--schedule") {
    options.schedule = words[1];
  } else {
    ASSERT_TRUE(isNumber) << set;
    options.micro = words[0] == "--micro" ? number : options.micro;
    options.zero = words[0] == "--zero" ? static_cast<int>(number) : options.zero;
  }
  options.regather = words.size() > 2 && words[2] == "--regather";
}

class MemoryAdviceTest : public testing::TestWithParam<Case> {};

TEST_P(MemoryAdviceTest, HoldsWhatItPromises) {
  const Case& c = GetParam();
  const absl::StatusOr<Program> program = compileCase(c, optionsOf(c));
  ASSERT_TRUE(program.ok()) << program.status();
  const auto peak = static_cast<double>(program->plan.memory().peak_bytes());
  const absl::StatusOr<MemoryAdvice> advice = adviceFor(c, optionsOf(c));
  ASSERT_TRUE(advice.ok()) << advice.status();
  EXPECT_NEAR(static_cast<double>(advice->peakBytes) / peak, 1, kBytes);
  std::map<std::string, int> kinds;
  for (const AdviceLine& line : advice->lines) {
    ++kinds[line.kind];
    CompileOptions options = optionsOf(c);
    follow(line.set, options);
    const absl::StatusOr<Program> followed = compileCase(c, options);
    ASSERT_TRUE(followed.ok()) << line.set << ": " << followed.status();
    EXPECT_GT(line.savedBytes, 0);
    EXPECT_EQ(line.peakBytes + line.savedBytes, advice->peakBytes);
    const auto real = static_cast<double>(followed->plan.memory().peak_bytes());
    EXPECT_NEAR(static_cast<double>(line.peakBytes) / real, 1, kBytes) << line.set;
    const double time = *stepSeconds(followed->plan, Machine()) / *stepSeconds(program->plan, Machine());
    EXPECT_NEAR(line.timeFactor / time, 1, kTime) << line.set;
  }
  for (const std::string& kind : c.kinds) {
    EXPECT_GT(kinds[kind], 0) << "no advice of kind " << kind;
  }
}

INSTANTIATE_TEST_SUITE_P(Gpt, MemoryAdviceTest,
                         testing::Values(Case{"one_rank", "", 1, 0, "1f1b", 1, {"recompute", "micro"}},
                                         Case{"micro", "", 1, 0, "1f1b", 4, {"recompute", "micro"}},
                                         Case{"data_parallel", "dp=2", 1, 0, "1f1b", 2, {"recompute", "micro", "zero"}},
                                         Case{"gpipe", "", 4, 0, "gpipe", 8, {"recompute", "schedule"}},
                                         Case{"one_f_one_b", "", 2, 0, "1f1b", 4, {"recompute", "micro"}},
                                         Case{"zb_h2", "", 4, 0, "zb_h2", 8, {"schedule", "micro"}},
                                         Case{"breadth_first", "", 4, 2, "breadth_first", 8, {"recompute", "schedule"}},
                                         Case{"zb_v", "", 4, 2, "zb_v", 8, {"recompute", "schedule"}},
                                         Case{"both", "dp=2", 2, 0, "gpipe", 4, {"recompute", "schedule", "zero"}}),
                         [](const testing::TestParamInfo<Case>& info) { return info.param.name; });

// Each line of recomputation holds the ones before, saves more, and takes longer.
TEST(MemoryAdvice, RecomputationIsNotCountedTwice) {
  const Case c{"", "", 2, 0, "gpipe", 4, {}};
  const MemoryAdvice advice = *adviceFor(c, optionsOf(c));
  const AdviceLine* before = nullptr;
  for (const AdviceLine& line : advice.lines) {
    if (line.kind == "recompute" && before != nullptr) {
      EXPECT_GT(line.savedBytes, before->savedBytes);
      EXPECT_GE(line.timeFactor, before->timeFactor);
    }
    before = line.kind == "recompute" ? &line : before;
  }
  ASSERT_NE(before, nullptr);
  EXPECT_GT(before->timeFactor, 1);
}

// What the request leaves open is found first; the advice is about what it became.
TEST(MemoryAdvice, AnOpenRequestIsClosedFirst) {
  const Case c{"", "dp=?,tp=?", 1, 0, "1f1b", 1, {}};
  CompileOptions open = optionsOf(c);
  open.devices = 4;
  open.zero = kFindZero;
  const absl::StatusOr<Program> program = compileCase(c, open);
  ASSERT_TRUE(program.ok()) << program.status();
  const absl::StatusOr<Decisions> decisions = parseDecisions(program->decisions());
  ASSERT_TRUE(decisions.ok()) << decisions.status();
  CompileOptions closed = optionsOf(c);
  closed.mesh = decisions->mesh.print();
  closed.zero = decisions->zero;
  const absl::StatusOr<MemoryAdvice> found = adviceFor(c, open);
  const absl::StatusOr<MemoryAdvice> given = adviceFor(c, closed);
  ASSERT_TRUE(found.ok()) << found.status();
  ASSERT_TRUE(given.ok()) << given.status();
  ASSERT_EQ(found->lines.size(), given->lines.size());
  for (size_t i = 0; i < found->lines.size(); ++i) {
    EXPECT_EQ(found->lines[i].set, given->lines[i].set);
    EXPECT_EQ(found->lines[i].peakBytes, given->lines[i].peakBytes);
  }
}

// What the request itself cannot be is an error, not an empty advice.
TEST(MemoryAdvice, RefusesWhatTheCompilerRefuses) {
  const Case c{"", "dp=2", 2, 0, "1f1b", 4, {}};
  CompileOptions options = optionsOf(c);
  options.layouts = {{"*", "[{nowhere},{}]"}};
  const absl::StatusOr<MemoryAdvice> advice = adviceFor(c, options);
  ASSERT_FALSE(advice.ok());
  EXPECT_EQ(advice.status().message(), compileCase(c, options).status().message());
}

}  // namespace
}  // namespace weft
