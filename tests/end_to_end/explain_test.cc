// `weft explain` on a GPT of three equal layers: they fold, and nothing of the price is lost.

#include "tools/commands/explain.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "examples/gpt/model.h"
#include "runtime/plan/plan_file.h"
#include "tests/tools/run_command.h"
#include "weft/weft.h"

namespace weft::tools {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

class ExplainTest : public ::testing::Test {
 protected:
  // A plan of three layers, split over dp and tp and recomputed.
  static void SetUpTestSuite() {
    Graph graph;
    const examples::GptModel model = examples::buildGpt(graph, {.vocabulary = 16,
                                                                .layers = 3,
                                                                .width = 32,
                                                                .heads = 4,
                                                                .context = 8,
                                                                .batch = 4,
                                                                .recomputeLayers = 3,
                                                                .parallel = {"dp", "tp"}});
    CompileOptions options;
    options.mesh = "dp=2,tp=2";
    options.micro = 2;
    const absl::StatusOr<Program> program = compile(graph, model.loss, optim::Sgd{.lr = 0.1}, options);
    ASSERT_TRUE(program.ok()) << program.status();
    ASSERT_TRUE(writePlan(program->plan, path()).ok());
  }

  static std::string path() { return ::testing::TempDir() + "/weft_explain_test.plan"; }
  static std::string explained(std::vector<std::string> flags = {}) {
    flags.insert(flags.begin(), path());
    const Outcome outcome = run(explainCommand, flags);
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    return outcome.out;
  }
};

TEST_F(ExplainTest, EqualLayersAreOneLine) {
  const std::string text = explained();
  EXPECT_THAT(text, HasSubstr("@forward  all_reduce of h0..h2.proj, 3 x, groups [0,1] [2,3]\n"
                              "    why    h0..h2.add reads operand 0: "));
  EXPECT_THAT(text, AllOf(HasSubstr(" s each; all 3: "), Not(HasSubstr("of h1.proj"))));
  EXPECT_THAT(text, AllOf(HasSubstr("\n    source model.cc:"), Not(HasSubstr("/model.cc"))));
  EXPECT_THAT(text, HasSubstr("h0..h2.gelu, 3 x, recomputed in the backward pass\n"));
  const std::string all = explained({"--all"});
  EXPECT_THAT(all, AllOf(HasSubstr("of h1.proj, groups"), Not(HasSubstr(" x, groups")), Not(HasSubstr("h0..h2"))));
  EXPECT_LT(2 * text.size(), all.size());
}

// Both forms end with the same totals, which are the sums of the entries of the JSON.
TEST_F(ExplainTest, TotalsAreTheSums) {
  int64_t bytes = 0;
  int64_t count = 0;
  int64_t saved = 0;
  const nlohmann::json json = nlohmann::json::parse(explained({"--json"}));
  for (const auto& entry : json.at("lines")) {
    count += entry.count("collective") > 0 ? 1 : 0;
    bytes += entry.value("bytes_received_per_rank", int64_t{0});
    saved += entry.value("bytes_saved", int64_t{0});
  }
  EXPECT_GT(count, 6);
  const std::string total = std::to_string(count) +
                            " collectives and sends, in one call of each function: " + std::to_string(bytes) +
                            " bytes received per rank, ";
  EXPECT_THAT(explained(), AllOf(HasSubstr(total), HasSubstr(" 2 times\n")));
  EXPECT_THAT(explained({"--all"}), HasSubstr(total));
  EXPECT_THAT(explained(), HasSubstr(" operators recomputed: " + std::to_string(saved) + " bytes less, "));
}

// Each figure of the difference is that of the two plans, and a plan does not differ from itself.
TEST_F(ExplainTest, DiffSaysWhatDiffers) {
  const std::string other = ::testing::TempDir() + "/weft_explain_test_other.plan";
  Graph graph;
  const examples::GptModel model = examples::buildGpt(
      graph, {.vocabulary = 16, .layers = 3, .width = 32, .heads = 4, .context = 8, .batch = 4, .stages = 2});
  const absl::StatusOr<Program> program =
      compile(graph, model.loss, optim::Sgd{.lr = 0.1}, {.mesh = "dp=2", .micro = 2, .schedule = "gpipe"});
  ASSERT_TRUE(program.ok()) << program.status();
  ASSERT_TRUE(writePlan(program->plan, other).ok());
  const Outcome text = run(explainCommand, {"--diff", path(), other});
  EXPECT_THAT(text.out, ContainsRegex("mesh +dp=2,tp=2 +dp=2\n"));
  EXPECT_THAT(text.out, ContainsRegex("weights h\\*.fc.weight +\\[\\{\\},\\{tp\\}\\] 3 x +\\[\\{\\},\\{\\}\\] 3 x\n"));
  EXPECT_THAT(text.out, HasSubstr("\nthe same: micro-batches, stages on each submesh, ZeRO level, weights wte, "));
  const nlohmann::json differs =
      nlohmann::json::parse(run(explainCommand, {"--diff", path(), other, "--json"}).out).at("differs");
  const auto find = [&](const std::string& what) -> nlohmann::json {
    for (const nlohmann::json& line : differs) {
      if (line.at("what") == what) {
        return line;
      }
    }
    return {};
  };
  const auto peakOf = [](const std::string& plan) {
    return nlohmann::json::parse(run(explainCommand, {plan, "--json"}).out).at("predicted").at("peak_bytes");
  };
  EXPECT_EQ(find("stages").at("b"), 2);
  EXPECT_EQ(find("schedule").at("b"), "gpipe");
  EXPECT_EQ(find("memory: peak").at("a"), peakOf(path()));
  EXPECT_EQ(find("memory: peak").at("b"), peakOf(other));
  EXPECT_EQ(run(explainCommand, {"--diff", other, other}).out, "the same: everything\n");
}

// The rows of the trace end when the step is predicted to end, and hold every action of the schedule.
TEST_F(ExplainTest, TraceOfThePredictedStep) {
  const std::string file = ::testing::TempDir() + "/weft_explain_test_trace.json";
  EXPECT_EQ(explained({"--trace", file}), "");
  const nlohmann::json trace = nlohmann::json::parse(std::ifstream(file));
  double end = 0;
  std::multiset<std::string> names;
  for (const nlohmann::json& event : trace.at("traceEvents")) {
    names.insert(event.at("name"));
    if (event.at("ph") == "X") {
      EXPECT_GE(event.at("dur").get<double>(), 0);
      end = std::max(end, event.at("ts").get<double>() + event.at("dur").get<double>());
    }
  }
  const nlohmann::json json = nlohmann::json::parse(explained({"--json"}));
  EXPECT_NEAR(end, 1e6 * json.at("predicted").at("step_seconds").get<double>(), 1e-3);
  for (const char* action : {"0F0", "0B0", "0F1", "0B1", "update"}) {
    EXPECT_EQ(names.count(action), 1U) << action;
  }
}

// Decisions alone are compared by what they say.
TEST_F(ExplainTest, DiffTakesDecisions) {
  const std::string file = ::testing::TempDir() + "/weft_explain_test_decisions.json";
  std::ofstream(file) << readPlan(path())->decisions();
  EXPECT_EQ(run(explainCommand, {"--diff", path(), file}).out, "the same: everything\n");
  EXPECT_EQ(run(explainCommand, {"--diff", file, file}).out, "the same: everything\n");
  std::ofstream(file) << "{\"mesh\": 3}";
  EXPECT_THAT(run(explainCommand, {"--diff", path(), file}).err, HasSubstr("weft_explain_test_decisions.json: "));
}

TEST_F(ExplainTest, WrongUse) {
  EXPECT_THAT(run(explainCommand, {path(), "--as-code"}).err, HasSubstr("--module"));
  EXPECT_THAT(run(explainCommand, {"--diff", path()}).err, HasSubstr("--diff takes two files"));
  EXPECT_EQ(run(explainCommand, {}).status, 2);
  EXPECT_EQ(run(explainCommand, {path(), "--al"}).status, 2);
  EXPECT_THAT(run(explainCommand, {"/nonexistent.plan"}).err, HasSubstr("weft explain: "));
}

}  // namespace
}  // namespace weft::tools
