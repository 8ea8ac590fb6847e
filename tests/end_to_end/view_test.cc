// `weft view` on compiled programs: the document against the plan, the other commands and the simulator; a recorded
// run; the page in a browser.
#include "tools/commands/view/view.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "examples/gpt/model.h"
#include "runtime/plan/plan_file.h"
#include "runtime/plan/statistics.h"
#include "tests/tools/run_command.h"
#include "tools/analysis/simulate_plan.h"
#include "tools/commands/memory.h"
#include "tools/commands/schedule.h"
#include "weft/weft.h"

namespace weft {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;
using tools::run;

constexpr int64_t kSteps = 3;

struct Case {
  std::string name;
  std::string mesh;
  int64_t stages = 1;
  std::string schedule = "1f1b";
  int64_t micro = 1;
};

absl::StatusOr<Program> compileCase(const Case& c) {
  Graph g;
  examples::GptConfig config;
  config.layers = 4;
  config.width = 32;
  config.heads = 4;
  config.context = 16;
  config.batch = 16;
  config.vocabulary = 32;
  config.stages = c.stages;
  const examples::GptModel model = examples::buildGpt(g, config);
  CompileOptions options;
  options.mesh = c.mesh;
  options.schedule = c.schedule;
  options.micro = c.micro;
  return compile(g, model.loss, optim::AdamW{.lr = 1e-3}, options);
}

void PrintTo(const Case& c, std::ostream* out) {
  *out << c.name;
}

// A program with its plan and a recorded run in files.
class Recorded {
 public:
  explicit Recorded(const Case& c) : stem_(::testing::TempDir() + "/weft_view_" + c.name) {
    const absl::StatusOr<Program> program = compileCase(c);
    EXPECT_TRUE(program.ok()) << program.status();
    plan_ = program->plan;
    EXPECT_TRUE(writePlan(plan_, planPath()).ok());
    Trainer trainer(*program, {.profile = true});
    EXPECT_TRUE(trainer.status().ok()) << trainer.status();
    const std::vector<int32_t> tokens(16 * 16, 3);
    const absl::Status trained = trainer.fit(kSteps, [&](int64_t, Feed& feed) {
      feed.write("x", tokens);
      feed.write("y", tokens);
    });
    EXPECT_TRUE(trained.ok()) << trained;
    EXPECT_TRUE(trainer.executor().writeTrace(tracePath()).ok());
  }
  ~Recorded() {
    for (const std::string& path : {planPath(), tracePath(), pagePath()}) {
      std::remove(path.c_str());
    }
  }

  const plan::Plan& plan() const { return plan_; }
  std::string planPath() const { return stem_ + ".plan"; }
  std::string tracePath() const { return stem_ + ".json"; }
  std::string pagePath() const { return stem_ + ".html"; }

  json document() const {
    const tools::Outcome outcome = run(tools::viewCommand, {planPath(), "--json", "--profile", tracePath()});
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    return json::parse(outcome.out);
  }

 private:
  std::string stem_;
  plan::Plan plan_;
};

// The staged one has more instructions in a step than its memory curve has points.
const Case kCases[] = {{"serial", "1"},
                       {"sharded", "dp=2,tp=2", 1, "1f1b", 2},
                       {"staged", "1", 2, "1f1b", 16},
                       {"split", "dp=2", 2, "zb_h1", 4}};

class ViewTest : public ::testing::TestWithParam<Case> {};

// Every instruction of the plan once, in its place, with its name and source line.
TEST_P(ViewTest, EveryOperatorWithItsSourceLine) {
  const Recorded recorded(GetParam());
  const json doc = recorded.document();
  const std::vector<const plan::Plan*> submeshes = submeshesOf(recorded.plan());
  ASSERT_EQ(doc["submeshes"].size(), submeshes.size());
  int known = 0;
  for (size_t b = 0; b < submeshes.size(); ++b) {
    const json& functions = doc["submeshes"][b]["functions"];
    ASSERT_EQ(static_cast<int>(functions.size()), submeshes[b]->functions_size());
    for (int f = 0; f < submeshes[b]->functions_size(); ++f) {
      const plan::Function& function = submeshes[b]->functions(f);
      EXPECT_EQ(functions[f]["name"], function.name());
      const json& ops = functions[f]["ops"];
      ASSERT_EQ(static_cast<int>(ops.size()), function.instructions_size());
      for (int i = 0; i < function.instructions_size(); ++i) {
        const plan::Instruction& instruction = function.instructions(i);
        const plan::Location& place = submeshes[b]->locations(static_cast<int>(instruction.location()));
        EXPECT_EQ(ops[i]["label"], instruction.label());
        // What the compiler adds on its own account, such as the step count, has no line.
        const int source = ops[i]["source"];
        EXPECT_EQ(source < 0, place.file().empty());
        if (source >= 0) {
          ++known;
          EXPECT_EQ(doc["sources"][source], place.file() + ":" + std::to_string(place.line()));
        }
        EXPECT_EQ(ops[i].contains("moved"), instruction.has_collective() || instruction.has_transfer());
        EXPECT_EQ(ops[i].contains("measured"), function.kind() != plan::INIT);
      }
    }
  }
  EXPECT_GT(known, 0);
}

// The same figures as `weft memory` and the statistics: peaks, regions, collectives.
TEST_P(ViewTest, AgreesWithMemoryAndStatistics) {
  const Recorded recorded(GetParam());
  const json doc = recorded.document();
  const tools::Outcome outcome = run(tools::memoryCommand, {recorded.planPath(), "--json"});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const json memory = json::parse(outcome.out);
  for (size_t b = 0; b < doc["submeshes"].size(); ++b) {
    const json& submesh = doc["submeshes"][b];
    const json& other = memory.contains("submeshes") ? memory["submeshes"][b] : memory;
    EXPECT_EQ(submesh["peak_bytes"], other["peak_bytes_per_rank"]);
    EXPECT_EQ(submesh["memory"]["peak_bytes"], other["step_peak"]["bytes"]);
    EXPECT_EQ(submesh["memory"]["operator"], other["step_peak"]["operator"]);
    EXPECT_EQ(submesh["memory"]["tensors"][0]["name"], other["step_peak"]["tensors"][0]["name"]);
    int64_t planned = 0;
    for (size_t r = 0; r < submesh["regions"].size(); ++r) {
      EXPECT_EQ(submesh["regions"][r]["bytes"], other["regions"][r]["bytes"]);
      planned += submesh["regions"][r]["bytes"].get<int64_t>() * submesh["regions"][r]["slots"].get<int64_t>();
    }
    EXPECT_EQ(planned, submesh["peak_bytes"]);
    int64_t most = 0;
    for (const json& point : submesh["memory"]["curve"]) {
      most = std::max(most, point[1].get<int64_t>() + point[2].get<int64_t>());
    }
    EXPECT_EQ(most + submesh["memory"]["staying"].get<int64_t>(), submesh["memory"]["peak_bytes"]);
  }
  const PlanStatistics statistics = statisticsOf(recorded.plan());
  EXPECT_EQ(doc["predicted"]["peak_bytes"], statistics.peakBytes);
  EXPECT_EQ(doc["predicted"]["flops"], statistics.flops);
  ASSERT_EQ(doc["predicted"]["collectives"].size(), statistics.collectives.size());
  for (const auto& [kind, count] : statistics.collectives) {
    EXPECT_EQ(doc["predicted"]["collectives"][kind]["bytes"], count.bytesReceived) << kind;
  }
}

TEST_P(ViewTest, TimelineIsTheSimulation) {
  const Recorded recorded(GetParam());
  const json doc = recorded.document();
  const absl::StatusOr<schedule::PlanSimulation> simulated =
      schedule::simulatePlan(recorded.plan(), schedule::predictedTimes(recorded.plan(), Machine()));
  ASSERT_TRUE(simulated.ok()) << simulated.status();
  EXPECT_EQ(doc["predicted"]["step"], simulated->seconds);
  EXPECT_EQ(doc["predicted"]["bubble"], simulated->bubbleRatio);
  for (const json& submesh : doc["submeshes"]) {
    const schedule::RankRun& rank = simulated->ranks[submesh["first_rank"].get<size_t>()];
    ASSERT_EQ(submesh["calls"].size(), rank.starts.size());
    for (size_t i = 0; i < rank.starts.size(); ++i) {
      EXPECT_EQ(submesh["calls"][i][2], rank.starts[i]);
      EXPECT_EQ(submesh["calls"][i][3], rank.ends[i]);
    }
  }
  // With a profile, `weft schedule` simulates with the measured times, and so does the page.
  const tools::Outcome outcome =
      run(tools::scheduleCommand, {"--plan", recorded.planPath(), "--profile", recorded.tracePath(), "--json"});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr(doc["executed"]["simulated"].dump()));
}

TEST_P(ViewTest, ExecutedStepHasEveryCallOfEveryRank) {
  const Recorded recorded(GetParam());
  const json executed = recorded.document()["executed"];
  EXPECT_EQ(executed["step_seconds"].size(), static_cast<size_t>(kSteps));
  EXPECT_GE(executed["shown"], 1);
  ASSERT_EQ(static_cast<int64_t>(executed["ranks"].size()), recorded.plan().ranks());
  int rank = 0;
  for (const plan::Plan* submesh : submeshesOf(recorded.plan())) {
    for (const plan::RankSchedule& schedule : submesh->schedules()) {
      const json& calls = executed["ranks"][rank++];
      ASSERT_EQ(static_cast<int>(calls.size()), schedule.step_size());
      for (int i = 0; i < schedule.step_size(); ++i) {
        EXPECT_EQ(calls[i][0], schedule.step(i).function());
        EXPECT_EQ(calls[i][1], schedule.step(i).micro_batch());
        EXPECT_LE(calls[i][2], calls[i][3]);
        EXPECT_LE(i > 0 ? calls[i - 1][3] : json(0), calls[i][2]);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, ViewTest, ::testing::ValuesIn(kCases),
                         [](const auto& info) { return info.param.name; });

TEST(ViewTraceTest, OfAnotherProgramIsRefused) {
  const Recorded staged(kCases[2]);
  const Recorded split(kCases[3]);
  const Recorded serial(kCases[0]);
  const auto view = [](const Recorded& plan, const Recorded& trace) {
    const tools::Outcome outcome = run(tools::viewCommand, {plan.planPath(), "--json", "--profile", trace.tracePath()});
    EXPECT_EQ(outcome.status, 1);
    return outcome.err;
  };
  EXPECT_THAT(view(staged, split), HasSubstr("it has a rank 2, the plan 2 ranks"));
  EXPECT_THAT(view(serial, staged), HasSubstr("another plan"));
  EXPECT_THAT(view(staged, serial), HasSubstr("another plan"));
}

// ---- in a browser

std::string browser() {
  std::stringstream path(std::getenv("PATH") == nullptr ? "" : std::getenv("PATH"));
  for (std::string directory; std::getline(path, directory, ':');) {
    for (const char* name : {"chromium", "chromium-browser", "google-chrome"}) {
      if (std::ifstream(directory + "/" + name).good()) {
        return directory + "/" + name;
      }
    }
  }
  return "";
}

struct Opened {
  int status = 0;
  std::string dom;
  std::string messages;
};

std::string readAll(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  std::remove(path.c_str());
  return text.str();
}

Opened open(const std::string& page) {
  const std::string dom = page + ".dom";
  const std::string messages = page + ".messages";
  // Scripts see eight seconds pass; a hanging browser is ended after two minutes.
  const std::string command = "timeout 120 '" + browser() +
                              "' --headless --no-sandbox --disable-gpu --window-size=1280,900 "
                              "--virtual-time-budget=8000 --enable-logging=stderr --dump-dom 'file://" +
                              page + "' > '" + dom + "' 2> '" + messages + "'";
  Opened opened;
  opened.status = std::system(command.c_str());
  opened.dom = readAll(dom);
  opened.messages = readAll(messages);
  return opened;
}

int64_t count(const std::string& text, const std::string& part) {
  int64_t found = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
    ++found;
  }
  return found;
}

// Has the page tell how far it is wider than the window.
void addProbe(const std::string& page) {
  std::string text = readAll(page);
  const std::string last = "start();\n</script>";
  const size_t at = text.rfind(last);
  ASSERT_NE(at, std::string::npos);
  text.insert(at + last.find('\n'),
              "\ndocument.body.dataset.overflow = document.documentElement.scrollWidth - "
              "document.documentElement.clientWidth;");
  std::ofstream(page) << text;
}

class ViewPageTest : public ::testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    if (browser().empty()) {
      GTEST_SKIP() << "no chromium, chromium-browser or google-chrome on PATH";
    }
  }
};

TEST_P(ViewPageTest, DrawsItselfWithoutErrors) {
  const Recorded recorded(GetParam());
  const tools::Outcome outcome =
      run(tools::viewCommand, {recorded.planPath(), "-o", recorded.pagePath(), "--profile", recorded.tracePath()});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  addProbe(recorded.pagePath());
  const json doc = recorded.document();
  const Opened opened = open(recorded.pagePath());
  ASSERT_EQ(opened.status, 0) << opened.messages;
  EXPECT_THAT(opened.messages, Not(HasSubstr("CONSOLE"))) << "the console is silent";
  int64_t bars = 0;
  int64_t operators = 0;
  for (const json& submesh : doc["submeshes"]) {
    bars += static_cast<int64_t>(submesh["calls"].size() + submesh["measured_calls"].size());
    for (const json& function : submesh["functions"]) {
      operators += function["calls"] > 0 ? static_cast<int64_t>(function["ops"].size()) : 0;
    }
  }
  for (const json& rank : doc["executed"]["ranks"]) {
    bars += static_cast<int64_t>(rank.size());
  }
  EXPECT_THAT(opened.dom, HasSubstr("data-overflow=\"0\"")) << "nothing stands out of a page 1280 pixels wide";
  EXPECT_EQ(count(opened.dom, "class=\"bar "), bars);
  EXPECT_THAT(opened.dom, HasSubstr("Show all " + std::to_string(operators) + "</button>"));
  EXPECT_EQ(count(opened.dom, "class=\"peak-dot\""), static_cast<int64_t>(doc["submeshes"].size()));
  EXPECT_EQ(count(opened.dom, "class=\"card function "), [&] {
    int64_t functions = 0;
    for (const json& submesh : doc["submeshes"]) {
      functions += static_cast<int64_t>(submesh["functions"].size());
    }
    return functions;
  }());
}

INSTANTIATE_TEST_SUITE_P(Cases, ViewPageTest, ::testing::Values(kCases[1], kCases[3]),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace weft
