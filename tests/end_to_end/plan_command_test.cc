// `weft plan` on a GPT of two layers: what it says, what it writes, and that the compiler keeps to it.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "examples/gpt/model.h"
#include "tests/tools/run_command.h"
#include "tools/commands/compile.h"
#include "tools/commands/explain.h"
#include "tools/commands/explain_code.h"
#include "tools/commands/plan.h"
#include "weft/weft.h"

namespace weft::tools {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsSupersetOf;
using ::testing::Not;

std::string path(const std::string& name) {
  return ::testing::TempDir() + "/weft_plan_test_" + name;
}

double secondsOf(const json& plan) {
  return plan.at("predicted").at("step_seconds").get<double>();
}

class PlanCommand : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    Graph graph;
    const examples::GptModel model =
        examples::buildGpt(graph, {.vocabulary = 64, .layers = 2, .width = 64, .heads = 4, .context = 16, .batch = 8});
    CompileOptions options;
    options.dumpDir = path("dump");
    const absl::StatusOr<Program> program = compile(graph, model.loss, optim::Sgd{.lr = 0.1}, options);
    ASSERT_TRUE(program.ok()) << program.status();
  }

  static std::string model() { return path("dump") + "/00-input.mlir"; }

  static Outcome plan(std::vector<std::string> flags) {
    flags.insert(flags.begin(), model());
    return run(planCommand, flags);
  }

  static json planned(std::vector<std::string> flags) {
    flags.emplace_back("--json");
    const Outcome outcome = plan(flags);
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    return json::parse(outcome.out, nullptr, false);
  }

  static std::string refusal(std::vector<std::string> flags) {
    const Outcome outcome = plan(std::move(flags));
    EXPECT_NE(outcome.status, 0);
    EXPECT_EQ(outcome.out, "");
    return outcome.err;
  }
};

TEST_F(PlanCommand, BeginsFromSavedDecisions) {
  const std::vector<std::string> asked = {"--machine", "a100-80g", "--devices", "8"};
  const auto with = [&](const std::vector<std::string>& flags) {
    std::vector<std::string> all = asked;
    all.insert(all.end(), flags.begin(), flags.end());
    return all;
  };
  const std::string record = path("from.json");
  const json cold = planned(with({"--output", record}));
  const json warm = planned(with({"--from", record}));
  EXPECT_EQ(warm.at("predicted"), cold.at("predicted"));
  EXPECT_LT(warm.at("search").at("ticks").get<int64_t>(), cold.at("search").at("ticks").get<int64_t>());
  const Outcome pinned = plan(with({"--from", record, "--micro", "8"}));
  EXPECT_EQ(pinned.status, 0) << pinned.err;
  EXPECT_THAT(pinned.out, HasSubstr("from the record, dropped: micro-batches"));
  EXPECT_THAT(refusal({"--from", record, "--mode", "semi"}), HasSubstr("mode semi"));
  std::ofstream(path("broken.json")) << "{}";
  EXPECT_THAT(refusal(with({"--from", path("broken.json")})), HasSubstr("broken.json"));
}

TEST_F(PlanCommand, JsonHasTheAgreedFields) {
  const json out = planned({"--machine", "a100-80g", "--devices", "8"});
  int64_t ranks = 0;
  std::vector<std::string> layers;
  for (const json& stage : out.at("stages")) {
    ranks += stage.at("ranks").get<int64_t>();
    EXPECT_TRUE(stage.at("mesh").is_string());
    for (const json& layer : stage.at("layers")) {
      layers.push_back(layer.get<std::string>());
    }
  }
  // A layer that is cut stands in two stages; ranks have as many stages as there are virtual ones.
  layers.erase(std::unique(layers.begin(), layers.end()), layers.end());
  EXPECT_EQ(ranks, 8 * out.at("virtual").get<int64_t>());
  EXPECT_EQ(layers, (std::vector<std::string>{"wte", "wpe", "h0", "h1", "lnf", "head"}));
  EXPECT_GE(out.at("micro").get<int64_t>(), 1);
  EXPECT_GE(out.at("virtual").get<int64_t>(), 1);
  EXPECT_TRUE(out.at("schedule").is_string() && out.at("recompute").is_string());
  EXPECT_TRUE(out.at("zero").is_number_integer());
  const json& predicted = out.at("predicted");
  EXPECT_GT(predicted.at("state_bytes").get<int64_t>(), 0);
  EXPECT_GT(predicted.at("activation_bytes").get<int64_t>(), 0);
  EXPECT_GE(predicted.at("peak_bytes").get<int64_t>(),
            predicted.at("state_bytes").get<int64_t>() + predicted.at("activation_bytes").get<int64_t>());
  const auto seconds = predicted.at("step_seconds").get<double>();
  const auto bound = out.at("bound_seconds").get<double>();
  EXPECT_GT(bound, 0);
  EXPECT_LE(bound, seconds);
  EXPECT_NEAR(out.at("gap").get<double>(), seconds / bound - 1, 1e-12);
  EXPECT_GT(out.at("search").at("ticks").get<int64_t>(), 8);
  EXPECT_EQ(out.at("search").at("compilations"), 0);
}

TEST_F(PlanCommand, TextForPeople) {
  const Outcome outcome = plan({"--mesh", "dp=2,tp=2", "--mode", "layouts", "--micro", "2"});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  for (const char* part : {"0      dp=2,tp=2  4 ", "h*.qkv.weight   2 ", "micro-batches  2\n",
                           "ms predicted for a step", "on the rank that needs most: ", "searched in "}) {
    EXPECT_THAT(outcome.out, HasSubstr(part));
  }
}

// The decisions compile to the plan that was printed, and mode auto of the compiler finds the same.
TEST_F(PlanCommand, TheCompilerKeepsToWhatIsWritten) {
  const std::vector<std::string> asked = {"--machine", "a100-80g", "--devices", "4", "--memory-limit", "2m"};
  std::vector<std::string> flags = asked;
  flags.insert(flags.end(), {"-o", path("decisions.json")});
  const json searched = planned(flags);
  EXPECT_EQ(run(compileCommand, {model(), "--decisions", path("decisions.json"), "-o", path("kept.plan")}).status, 0);
  flags = {model(), "-o", path("auto.plan"), "--mode", "auto"};
  flags.insert(flags.end(), asked.begin(), asked.end());
  EXPECT_EQ(run(compileCommand, flags).status, 0);
  for (const std::string file : {"kept.plan", "auto.plan"}) {
    const json compiled = json::parse(run(explainCommand, {path(file), "--json"}).out, nullptr, false);
    for (const char* key : {"stages", "weights", "micro", "schedule", "virtual", "zero", "recompute"}) {
      EXPECT_EQ(compiled.at(key), searched.at(key)) << file;
    }
    EXPECT_LE(compiled.at("predicted").at("peak_bytes").get<int64_t>(), 2000000);
  }
}

// Two ranks, of which the second has a fourth of the speed and less memory.
std::string twoKinds() {
  std::ofstream(path("kinds.txt")) << "memory_bandwidth = 1e13\nnetwork_bandwidth = 1e12\nnetwork_latency = 1e-9\n"
                                      "launch_latency = 1e-9\ndevices_per_node = 1\n"
                                      "[kind fast]\nflops = 4e10\nmemory = 8e6\nnodes = 1\n"
                                      "[kind slow]\nflops = 1e10\nmemory = 2e6\nnodes = 1\n";
  return path("kinds.txt");
}

// Stages are named with the kind of their ranks, by the planner and of the compiled plan, which keeps the machine.
TEST_F(PlanCommand, NamesTheKindOfEachStage) {
  const std::vector<std::string> asked = {"--machine", twoKinds(), "--mesh", "dp=1", "--devices", "2", "--micro", "4"};
  std::vector<std::string> flags = asked;
  flags.insert(flags.end(), {"--without", "virtual-stages", "-o", path("kinds.json")});
  const json searched = planned(flags);
  ASSERT_EQ(searched.at("stages").size(), 2U) << searched.dump(1);
  EXPECT_EQ(searched.at("stages")[0].at("kind"), "fast");
  EXPECT_EQ(searched.at("stages")[1].at("kind"), "slow");
  const double seconds = secondsOf(searched);
  EXPECT_LE(searched.at("bound_seconds").get<double>(), seconds);
  const Outcome text = plan(flags);
  EXPECT_THAT(text.out, AllOf(HasSubstr("stage  mesh  ranks  kind"), HasSubstr("  slow")));
  const Outcome compiled = run(
      compileCommand, {model(), "-o", path("kinds.plan"), "--decisions", path("kinds.json"), "--machine", twoKinds()});
  ASSERT_EQ(compiled.status, 0) << compiled.err;
  const json explained = json::parse(run(explainCommand, {path("kinds.plan"), "--json"}).out, nullptr, false);
  EXPECT_EQ(explained.at("stages"), searched.at("stages"));
  EXPECT_NEAR(secondsOf(explained), seconds, 0.02 * seconds) << "the compiler's own prices are those of each kind";
  EXPECT_THAT(plan({"--machine", "a100-80g", "--devices", "4"}).out, Not(HasSubstr("kind")));
}

// A rank of the small kind counts against its own memory, when planning and when compiling.
TEST_F(PlanCommand, LimitsAreThoseOfTheKinds) {
  std::ofstream(path("tiny.txt")) << std::ifstream(twoKinds()).rdbuf() << "memory = 1000\n";
  const std::string error = refusal(
      {"--machine", path("tiny.txt"), "--mesh", "dp=1", "--devices", "2", "--micro", "4", "--recompute", "none"});
  EXPECT_THAT(error, HasSubstr("no plan fits in 8000000 (fast), 1000 (slow) bytes per rank"));
  const Outcome fitting =
      plan({"--machine", twoKinds(), "--mesh", "dp=1", "--devices", "2", "--micro", "4", "-o", path("kinds.json")});
  ASSERT_EQ(fitting.status, 0) << fitting.err;
  const Outcome compiled = run(compileCommand, {model(), "-o", path("tiny.plan"), "--decisions", path("kinds.json"),
                                                "--machine", path("tiny.txt")});
  EXPECT_NE(compiled.status, 0);
  EXPECT_THAT(compiled.err, HasSubstr("8000000 (fast), 1000 (slow)"));
}

// What is said on the command line is not searched.
TEST_F(PlanCommand, KeepsToItsFlags) {
  const json staged = planned({"--mesh", "dp=1", "--devices", "2", "--micro", "4", "--schedule", "interleaved",
                               "--virtual-stages", "2", "--recompute", "full"});
  EXPECT_EQ(staged.at("schedule"), "interleaved");
  EXPECT_EQ(staged.at("virtual"), 2);
  EXPECT_NE(staged.at("recompute").dump(), planned({"--mesh", "dp=1", "--recompute", "none"}).at("recompute").dump());
  EXPECT_THAT(refusal({"--schedule", "1f1c"}), AllOf(HasSubstr("1f1c"), HasSubstr("1f1b")));
  EXPECT_EQ(planned({"--mesh", "dp=2", "--zero", "3", "--regather"}).at("zero"), 3);
}

// Seen wherever a plan is: in the table, as JSON, as code, compiled, and against another plan.
TEST_F(PlanCommand, LevelsOfZeroByParameter) {
  const std::vector<std::string> asked = {"--mesh", "dp=2", "--zero", "1", "--zero-of", "h*.fc.weight=3,h1.*=2,wte=0"};
  std::vector<std::string> flags = asked;
  flags.insert(flags.end(), {"--as-code", "-o", path("mixed.json")});
  const Outcome text = plan(flags);
  EXPECT_EQ(text.status, 0) << text.err;
  EXPECT_THAT(text.out, AllOf(HasSubstr("options.zero = 1;\n"), HasSubstr("{\"h*.fc.weight\", 3}"),
                              HasSubstr("{\"wte\", 0}"), Not(HasSubstr("no word says"))));
  const json levels = planned(asked).at("zero");
  EXPECT_EQ(levels.at("*"), 1);
  EXPECT_EQ(levels.at("wte"), 0);
  EXPECT_EQ(levels.at("h*.fc.weight"), 3);
  EXPECT_EQ(levels.at("h1.qkv.weight"), 2);
  EXPECT_FALSE(levels.contains("h0.qkv.weight"));
  EXPECT_EQ(run(compileCommand, {model(), "--decisions", path("mixed.json"), "-o", path("mixed.plan")}).status, 0);
  const Outcome table = run(explainCommand, {path("mixed.plan")});
  EXPECT_THAT(table.out, AllOf(HasSubstr("layout      ZeRO\n"), HasSubstr("level 1 (")));
  const json compiled = json::parse(run(explainCommand, {path("mixed.plan"), "--json"}).out, nullptr, false);
  EXPECT_EQ(compiled.at("zero"), levels);
  const Outcome code = run(explainWithCodeCommand, {path("mixed.plan"), "--as-code", "--module", model()});
  EXPECT_THAT(code.out, AllOf(HasSubstr("{\"h*.fc.weight\", 3}"), Not(HasSubstr("no word says")))) << code.err;
  EXPECT_EQ(run(compileCommand, {model(), "--mesh", "dp=2", "--zero", "1", "-o", path("level.plan")}).status, 0);
  EXPECT_THAT(run(explainCommand, {"--diff", path("mixed.plan"), path("level.plan")}).out, HasSubstr("ZeRO level"));
  EXPECT_THAT(refusal({"--zero-of", "h*.fc.wieght=3"}),
              AllOf(HasSubstr("zeroOf: no parameter matches 'h*.fc.wieght'"), HasSubstr("fc.weight'")));
  EXPECT_THAT(refusal({"--zero-of", "wte=4"}), HasSubstr("zeroOf: 'wte' = 4; the ZeRO level is 0, 1, 2 or 3"));
  EXPECT_THAT(refusal({"--zero-of", "wte"}), HasSubstr("'wte' is not PATTERN=LEVEL"));
}

// Likewise, with the price of none.
TEST_F(PlanCommand, BucketsOfGathers) {
  const std::vector<std::string> asked = {"--mesh", "dp=2", "--zero", "3", "--regather"};
  const auto with = [&](const std::vector<std::string>& flags) {
    std::vector<std::string> all = asked;
    all.insert(all.end(), flags.begin(), flags.end());
    return all;
  };
  const json alone = planned(with({"--output", path("alone.json")}));
  const json joined = planned(with({"--gather-bucket", "1mi", "--prices"}));
  EXPECT_FALSE(alone.contains("gather_bucket"));
  EXPECT_EQ(joined.at("gather_bucket"), 1 << 20);
  EXPECT_LT(secondsOf(joined), secondsOf(alone));
  const json& runnerUps = joined.at("runner_up");
  const auto runnerUp = std::find_if(runnerUps.begin(), runnerUps.end(),
                                     [](const json& line) { return line.at("what") == "bucket of gathers"; });
  ASSERT_NE(runnerUp, runnerUps.end());
  EXPECT_NEAR(runnerUp->at("costs_seconds").get<double>(), secondsOf(alone) - secondsOf(joined), 1e-12);
  const Outcome text = plan(with({"--gather-bucket", "1mi", "--as-code", "--output", path("joined.json")}));
  EXPECT_THAT(text.out, AllOf(HasSubstr("options.gatherBucket = 1048576;\n"), Not(HasSubstr("no word says"))));
  EXPECT_EQ(run(compileCommand, {model(), "--decisions", path("joined.json"), "-o", path("joined.plan")}).status, 0);
  EXPECT_THAT(run(explainCommand, {path("joined.plan")}).out, HasSubstr("in each call in buckets of up to 1.00 MiB"));
  EXPECT_THAT(run(explainCommand, {"--diff", path("alone.json"), path("joined.json")}).out,
              HasSubstr("bucket of gathers"));
  EXPECT_THAT(refusal(with({"--gather-bucket", "much"})), HasSubstr("--gather-bucket takes bytes (40g, 512mi)"));
}

// 16-bit values take less memory and time; they cannot be compiled yet.
TEST_F(PlanCommand, PricesSixteenBits) {
  const std::vector<std::string> asked = {"--machine", "a100-80g", "--mesh", "dp=2", "--micro", "2", "--zero", "0"};
  const json wide = planned(asked);
  std::vector<std::string> flags = asked;
  flags.insert(flags.end(), {"--precision", "bf16", "-o", path("narrow.json")});
  const json narrow = planned(flags);
  EXPECT_LT(narrow.at("predicted").at("activation_bytes"), wide.at("predicted").at("activation_bytes"));
  EXPECT_LT(narrow.at("predicted").at("step_seconds"), wide.at("predicted").at("step_seconds"));
  const Outcome compiled =
      run(compileCommand, {model(), "--decisions", path("narrow.json"), "-o", path("narrow.plan")});
  EXPECT_NE(compiled.status, 0);
  EXPECT_THAT(compiled.err, AllOf(HasSubstr("found bf16"), HasSubstr("plan it without --precision")));
  EXPECT_THAT(refusal({"--precision", "f8"}), AllOf(HasSubstr("'f8'"), HasSubstr("bf16 or f16")));
}

void expectPartsAddUp(const json& plan) {
  double sum = 0;
  for (const auto& [part, seconds] : plan.at("predicted").at("seconds_by_part").items()) {
    EXPECT_GE(seconds.get<double>(), 0) << part;
    sum += seconds.get<double>();
  }
  EXPECT_NEAR(sum, secondsOf(plan), 1e-9 * secondsOf(plan));
}

// Collectives beside computation: never slower, and what is hidden of them is said. They cannot be compiled yet.
TEST_F(PlanCommand, OverlapHidesCommunication) {
  const std::vector<std::vector<std::string>> requests = {
      {"--mesh", "dp=4", "--micro", "1", "--zero", "0"},
      {"--mesh", "dp=4", "--micro", "2", "--zero", "3", "--mode", "layouts"},
      {"--mesh", "dp=2,tp=2", "--micro", "2", "--zero", "1", "--mode", "layouts"},
      {"--devices", "4", "--micro", "1", "--max-stages", "1"}};
  for (std::vector<std::string> flags : requests) {
    flags.insert(flags.end(), {"--machine", "a100-80g"});
    const json alone = planned(flags);
    flags.emplace_back("--overlap");
    const json beside = planned(flags);
    EXPECT_LE(secondsOf(beside), secondsOf(alone)) << flags[1];
    EXPECT_TRUE(beside.at("overlap").get<bool>());
    EXPECT_EQ(alone.count("overlap"), 0);
    EXPECT_EQ(alone.at("predicted").at("hidden_communication_seconds"), 0);
    expectPartsAddUp(alone);
    expectPartsAddUp(beside);
  }
}

TEST_F(PlanCommand, OverlapIsKeptAndShown) {
  const std::vector<std::string> asked = {"--machine", "a100-80g", "--mesh", "dp=4", "--micro", "1", "--zero", "0"};
  std::vector<std::string> flags = asked;
  flags.insert(flags.end(), {"--overlap", "--prices", "--trace", path("beside"), "-o", path("beside.json")});
  const json beside = planned(flags);
  EXPECT_LT(secondsOf(beside), secondsOf(planned(asked)));
  EXPECT_GT(beside.at("predicted").at("hidden_communication_seconds"), 0);
  const json& runnerUps = beside.at("runner_up");
  EXPECT_TRUE(std::any_of(runnerUps.begin(), runnerUps.end(), [](const json& line) {
    return line.at("what") == "overlap" && line.at("costs_seconds").get<double>() > 0;
  }));
  double end = 0;
  int collectives = 0;
  const json trace = json::parse(std::ifstream(path("beside")), nullptr, false);
  for (const json& event : trace.at("traceEvents")) {
    end = std::max(end, event.at("ph") == "X" ? event.at("ts").get<double>() + event.at("dur").get<double>() : 0);
    collectives += event.value("cat", "") == "collective" && event.at("tid") == 1 ? 1 : 0;
  }
  EXPECT_GT(collectives, 0) << "on a row of their own";
  EXPECT_NEAR(end, 1e6 * secondsOf(beside), 1e-3);
  const Outcome compiled =
      run(compileCommand, {model(), "--decisions", path("beside.json"), "-o", path("beside.plan")});
  EXPECT_NE(compiled.status, 0);
  EXPECT_THAT(compiled.err, AllOf(HasSubstr("overlap: found true"), HasSubstr("plan it without --overlap")));
  flags = asked;
  flags[1] = "cpu";
  const json one = planned(flags);
  flags.emplace_back("--overlap");
  EXPECT_EQ(secondsOf(planned(flags)), secondsOf(one));
  EXPECT_THAT(plan(flags).out, AllOf(HasSubstr("machine 'cpu' has 1 queue"), HasSubstr("time by part   computation ")));
}

// The optimizer's state leaves the device for the copies' time; it cannot be compiled yet. SGD without momentum has
// none.
TEST_F(PlanCommand, OffloadIsKeptAndShown) {
  Graph graph;
  const examples::GptModel adam =
      examples::buildGpt(graph, {.vocabulary = 64, .layers = 2, .width = 64, .heads = 4, .context = 16, .batch = 8});
  CompileOptions options;
  options.dumpDir = path("adam");
  ASSERT_TRUE(compile(graph, adam.loss, optim::AdamW{}, options).ok());
  const std::string module = path("adam") + "/00-input.mlir";
  const std::vector<std::string> asked = {module,    "--machine", "a100-80g", "--mesh", "dp=2",
                                          "--micro", "1",         "--zero",   "1"};
  const auto answer = [&](std::vector<std::string> more) {
    more.insert(more.begin(), asked.begin(), asked.end());
    const Outcome outcome = run(planCommand, more);
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    return outcome.out;
  };
  const json device = json::parse(answer({"--json", "-o", path("device.json")}));
  const json host = json::parse(answer({"--json", "--offload", "state", "--prices", "-o", path("host.json")}));
  const auto predicted = [](const json& plan, const char* key) { return plan.at("predicted").at(key).get<double>(); };
  EXPECT_EQ(host.at("offload"), "state");
  EXPECT_EQ(device.count("offload"), 0);
  EXPECT_GT(predicted(host, "host_bytes"), 0);
  EXPECT_LT(predicted(host, "peak_bytes"), predicted(device, "peak_bytes"));
  EXPECT_LT(predicted(host, "state_bytes"), predicted(device, "state_bytes"));
  EXPECT_NEAR(secondsOf(host) - secondsOf(device), predicted(host, "once_offload_seconds"), 1e-12);
  EXPECT_NEAR(predicted(host, "once_offload_seconds"), 2 * predicted(host, "host_bytes") / 2.5e10, 1e-12);
  expectPartsAddUp(host);
  const json& runnerUps = host.at("runner_up");
  EXPECT_TRUE(std::any_of(runnerUps.begin(), runnerUps.end(), [](const json& line) {
    return line.at("what") == "offload" && line.at("costs_seconds").get<double>() < 0;
  }));
  EXPECT_THAT(answer({"--offload", "state"}), AllOf(HasSubstr("offload        the optimizer's state"),
                                                    HasSubstr("; on the host "), HasSubstr(", offload ")));
  EXPECT_THAT(answer({"--offload", "auto"}), HasSubstr("note: offload: none; the best plan with it takes"));
  EXPECT_THAT(answer({"--offload", "state", "--as-code"}), HasSubstr("options.offload = weft::Offload::kState;"));
  EXPECT_THAT(run(explainCommand, {"--diff", path("device.json"), path("host.json")}).out, HasSubstr("offload"));
  const Outcome compiled = run(compileCommand, {module, "--decisions", path("host.json"), "-o", path("host.plan")});
  EXPECT_NE(compiled.status, 0);
  EXPECT_THAT(compiled.err, AllOf(HasSubstr("offload: found state"), HasSubstr("plan it with --offload none")));
}

TEST_F(PlanCommand, OffloadNeedsAWayToTheHost) {
  EXPECT_THAT(refusal({"--machine", "cpu", "--offload", "state"}),
              AllOf(HasSubstr("offload = state on machine 'cpu'"), HasSubstr("host_bandwidth")));
  EXPECT_THAT(refusal({"--machine", "a100-80g", "--offload", "stat"}), HasSubstr("did you mean 'state'"));
}

// The lines are those of the plan that is written beside them, whoever prints them.
TEST_F(PlanCommand, AsCode) {
  const Outcome code = plan({"--mesh", "dp=2,tp=2", "--mode", "layouts", "--as-code", "-o", path("code.json")});
  EXPECT_EQ(code.status, 0) << code.err;
  EXPECT_THAT(code.out, AllOf(HasSubstr("options.mesh = \"dp=2,tp=2\";\n"), HasSubstr("// model.cc:"),
                              Not(HasSubstr("no word says"))));
  EXPECT_EQ(run(compileCommand, {model(), "--decisions", path("code.json"), "-o", path("code.plan")}).status, 0);
  const Outcome again = run(explainWithCodeCommand, {path("code.plan"), "--as-code", "--module", model()});
  EXPECT_EQ(again.out, code.out) << again.err;
  EXPECT_EQ(planned({"--mesh", "dp=2,tp=2", "--mode", "layouts", "--as-code"}).at("code"), code.out);
}

TEST_F(PlanCommand, Prices) {
  const json out =
      planned({"--mesh", "dp=2,tp=1", "--micro", "2", "--zero", "0", "--prices", "--trace", path("trace")});
  const auto seconds = out.at("predicted").at("step_seconds").get<double>();
  std::set<std::string> decisions;
  for (const json& line : out.at("runner_up")) {
    decisions.insert(line.at("what"));
    EXPECT_NEAR(line.at("step_seconds").get<double>() - seconds, line.at("costs_seconds").get<double>(), 1e-12);
    EXPECT_NE(line.at("chosen"), line.at("other"));
  }
  EXPECT_THAT(decisions, IsSupersetOf({"mesh", "micro-batches", "ZeRO level", "recomputation"}));
  std::set<std::string> pins;
  for (const json& line : out.at("pins")) {
    pins.insert(line.at("what"));
    EXPECT_LE(line.at("costs_seconds").get<double>(), 1e-12) << "a plan without a pin is no longer";
  }
  EXPECT_EQ(pins, (std::set<std::string>{"mesh dp=2,tp=1", "micro-batches 2", "ZeRO level 0"}));
  EXPECT_TRUE(out.at("margins").is_array());
  const json trace = json::parse(std::ifstream(path("trace")), nullptr, false);
  double end = 0;
  for (const json& event : trace.at("traceEvents")) {
    end = std::max(end, event.at("ph") == "X" ? event.at("ts").get<double>() + event.at("dur").get<double>() : 0);
  }
  EXPECT_NEAR(end, 1e6 * seconds, 1e-3);
}

// What was asked for stands in the record, and so in the plan.
TEST_F(PlanCommand, FrontierIsKept) {
  const json out =
      planned({"--mesh", "dp=2,tp=1", "--micro", "1", "--zero", "0", "--frontier", "-o", path("kept.json")});
  const json& frontier = out.at("frontier");
  ASSERT_GT(frontier.size(), 1U) << "recomputation saves memory";
  EXPECT_EQ(frontier.front().at("step_seconds"), out.at("predicted").at("step_seconds"));
  for (size_t i = 1; i < frontier.size(); ++i) {
    EXPECT_LT(frontier[i].at("peak_bytes"), frontier[i - 1].at("peak_bytes"));
    EXPECT_GE(frontier[i].at("step_seconds"), frontier[i - 1].at("step_seconds"));
    EXPECT_LE(frontier[i].at("peak_bytes"), frontier[i].at("limit"));
  }
  EXPECT_EQ(run(compileCommand, {model(), "--decisions", path("kept.json"), "-o", path("frontier.plan")}).status, 0);
  const json explained = json::parse(run(explainCommand, {path("frontier.plan"), "--json"}).out, nullptr, false);
  EXPECT_EQ(explained.at("frontier"), frontier);
  EXPECT_THAT(run(explainCommand, {path("frontier.plan")}).out,
              HasSubstr(frontier.back().at("plan").get<std::string>() + "\n"));
}

// The plan departs from the words that cost most; the record keeps what it departs from.
TEST_F(PlanCommand, Departures) {
  const std::vector<std::string> said = {"--devices", "2", "--micro", "8", "--zero", "0", "--max-stages", "1"};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.begin(), said.begin(), said.end());
    return more;
  };
  const json out = planned(with({"--departures", "1", "-o", path("departed.json")}));
  const json& departed = out.at("departed");
  EXPECT_EQ(departed.at("from"), json({"micro-batches 8"}));
  EXPECT_EQ(departed.at("words"), 3);
  EXPECT_EQ(departed.at("exact"), true);
  EXPECT_DOUBLE_EQ(departed.at("own_step_seconds").get<double>(),
                   planned(said).at("predicted").at("step_seconds").get<double>());
  EXPECT_LT(out.at("predicted").at("step_seconds"), departed.at("own_step_seconds"));
  EXPECT_EQ(out.at("zero"), 0) << "what is not departed from is kept";
  ASSERT_EQ(out.at("departures").size(), 3U);
  EXPECT_EQ(out.at("departures")[0].at("what"), "micro-batches 8");
  EXPECT_LT(out.at("departures")[0].at("costs_seconds"), 0);

  const Outcome text = plan(with({"--departures", "1"}));
  EXPECT_THAT(text.out, AllOf(HasSubstr("of your 3 words"), HasSubstr("departing from it alone"),
                              HasSubstr("4 sets of words planned, all there are")));
  const Outcome compiled =
      run(compileCommand, {model(), "--decisions", path("departed.json"), "-o", path("departed.plan")});
  EXPECT_EQ(compiled.status, 0) << compiled.err;
  EXPECT_THAT(run(explainCommand, {path("departed.plan")}).out, HasSubstr("departing from it alone"));

  EXPECT_THAT(plan({"--devices", "2", "--departures", "2"}).out,
              HasSubstr("you said nothing that a plan could depart"));
  EXPECT_EQ(planned(with({"--departures", "0"})).count("departed"), 0U);
  EXPECT_THAT(refusal(with({"--departures", "-1"})), AllOf(HasSubstr("departures = -1"), HasSubstr("from 0")));
  EXPECT_THAT(refusal({"--departures", "1", "--mode", "semi"}),
              AllOf(HasSubstr("departures = 1 in mode semi"), HasSubstr("mode auto")));
}

TEST_F(PlanCommand, FreedomsAloneAndTheirPrices) {
  const json out = planned({"--devices", "4", "--freedoms"});
  const double best = out.at("predicted").at("step_seconds").get<double>();
  std::set<std::string> names;
  for (const json& line : out.at("freedoms")) {
    names.insert(line.at("what").get<std::string>());
    EXPECT_DOUBLE_EQ(line.at("costs_seconds").get<double>(), line.at("step_seconds").get<double>() - best);
  }
  EXPECT_THAT(names, IsSupersetOf({"zero", "recompute", "pipeline", "tensor-splits"}));
  const json without = planned({"--devices", "4", "--without", "zero,pipeline"});
  EXPECT_EQ(without.at("zero"), 0);
  EXPECT_EQ(without.at("stages").size(), 1U);
  EXPECT_THAT(refusal({"--without", "zeros"}), AllOf(HasSubstr("'zeros'"), HasSubstr("did you mean 'zero'?")));
  EXPECT_THAT(refusal({"--without", "zero", "--mode", "semi"}),
              AllOf(HasSubstr("without = 'zero' in mode semi"), HasSubstr("ask for that mode")));
}

TEST_F(PlanCommand, RefusesWithARemedy) {
  EXPECT_THAT(refusal({"--memory-limit", "1k"}), AllOf(HasSubstr("1000 bytes"), HasSubstr("allow as much")));
  const std::string tight = refusal({"--devices", "2", "--memory-limit", "300k", "--zero", "0", "--max-stages", "1"});
  EXPECT_THAT(tight, AllOf(HasSubstr("no plan fits in 300000 bytes per rank; the least that was found needs "),
                           HasSubstr("allow as much")));
  EXPECT_THAT(refusal({"--machine", "a100-81g"}), AllOf(HasSubstr("a100-81g"), HasSubstr("a100-80g")));
  EXPECT_THAT(refusal({"--mode", "atuo"}), AllOf(HasSubstr("atuo"), HasSubstr("'auto'")));
  EXPECT_THAT(refusal({"--mesh", "dp=3", "--devices", "4"}), AllOf(HasSubstr("devices = 4"), HasSubstr("'dp=3'")));
  EXPECT_THAT(refusal({"-o", "/nowhere/decisions.json"}), HasSubstr("/nowhere"));
  EXPECT_THAT(run(planCommand, {}).err, HasSubstr("a module file is missing"));
  EXPECT_THAT(run(planCommand, {path("absent.mlir")}).err, HasSubstr("absent.mlir"));
  std::ofstream(path("half.mlir")) << [] {
    std::ostringstream text;
    text << std::ifstream(model()).rdbuf();
    return text.str().substr(0, text.str().size() / 2);
  }();
  EXPECT_THAT(run(planCommand, {path("half.mlir")}).err, HasSubstr("half.mlir:"));
}

}  // namespace
}  // namespace weft::tools
