// schedule = "auto" takes what an exhaustive comparison takes: of all kinds compiled one by one, the shortest that
// fits.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "examples/gpt/model.h"
#include "planner/cost/plan_time.h"
#include "planner/decisions.h"
#include "planner/schedule/generate.h"
#include "weft/weft.h"

namespace weft {
namespace {

struct Choice {
  std::string kind;
  Picoseconds time = 0;  // rounded: sums of seconds in another order differ
  int64_t peakBytes = 0;
};

absl::StatusOr<Program> compileGpt(const std::string& kind, int64_t virtualStages, int64_t memoryLimit) {
  Graph g;
  examples::GptConfig config;
  config.layers = 4;
  config.width = 32;
  config.heads = 4;
  config.context = 16;
  config.batch = 16;
  config.vocabulary = 64;
  config.stages = 4;
  const examples::GptModel model = examples::buildGpt(g, config);
  CompileOptions options;
  options.micro = 8;
  options.schedule = kind;
  options.recompute = "none";
  options.virtualStages = virtualStages;
  options.memoryLimit = memoryLimit;
  return compile(g, model.loss, optim::AdamW{.lr = 1e-3}, options);
}

std::vector<Choice> allChoices(int64_t virtualStages) {
  std::vector<Choice> choices;
  for (const schedule::Kind kind : schedule::allKinds()) {
    const std::string name = schedule::kindName(kind);
    // With one stage on each rank the interleaved kinds are 1f1b, gpipe and zb_h1 under other names.
    const bool loops = name == "interleaved" || name == "breadth_first" || name == "zb_interleaved";
    if (virtualStages == 1 && loops) {
      continue;
    }
    const absl::StatusOr<Program> program = compileGpt(name, virtualStages, 0);
    if (program.ok() && program->plan.submeshes_size() == 4 / virtualStages) {
      choices.push_back(
          {name, picosecondsOf(*stepSeconds(program->plan, Machine())), program->plan.memory().peak_bytes()});
    }
  }
  return choices;
}

class ScheduleChoiceTest : public testing::TestWithParam<int64_t> {};

TEST_P(ScheduleChoiceTest, IsThatOfAnExhaustiveComparison) {
  const std::vector<Choice> choices = allChoices(GetParam());
  ASSERT_GE(choices.size(), 4U);
  std::vector<int64_t> limits = {0};
  for (const Choice& choice : choices) {
    limits.push_back(choice.peakBytes);
  }
  for (const int64_t limit : limits) {
    const Choice* best = nullptr;
    for (const Choice& choice : choices) {
      const auto rank = [](const Choice& c) { return std::make_pair(c.time, c.peakBytes); };
      if ((limit == 0 || choice.peakBytes <= limit) && (best == nullptr || rank(choice) < rank(*best))) {
        best = &choice;
      }
    }
    const absl::StatusOr<Program> program = compileGpt("auto", GetParam(), limit);
    ASSERT_TRUE(program.ok()) << program.status();
    const absl::StatusOr<Decisions> decisions = parseDecisions(program->decisions());
    ASSERT_TRUE(decisions.ok()) << decisions.status();
    EXPECT_EQ(decisions->schedule.kind, best->kind) << "limit " << limit;
    EXPECT_EQ(program->plan.memory().peak_bytes(), best->peakBytes);
    EXPECT_THAT(decisions->schedule.considered, testing::HasSubstr(best->kind));
  }
  const int64_t least = std::min_element(choices.begin(), choices.end(), [](const Choice& a, const Choice& b) {
                          return a.peakBytes < b.peakBytes;
                        })->peakBytes;
  const absl::StatusOr<Program> none = compileGpt("auto", GetParam(), least - 1);
  ASSERT_FALSE(none.ok());
  EXPECT_THAT(std::string(none.status().message()), testing::HasSubstr("the least is " + std::to_string(least)));
}

INSTANTIATE_TEST_SUITE_P(StagesOnARank, ScheduleChoiceTest, testing::Values(1, 2));

}  // namespace
}  // namespace weft
