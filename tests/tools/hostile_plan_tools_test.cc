// The commands that read a plan, on plans that lie: an error line and status 1, or an answer; never a crash.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>

#include "runtime/plan/plan_file.h"
#include "tests/runtime/hostile/hostile_plan.h"
#include "tests/runtime/plan_builder.h"
#include "tests/tools/run_command.h"
#include "tools/commands/explain.h"
#include "tools/commands/memory.h"
#include "tools/commands/schedule.h"
#include "tools/commands/stats.h"
#include "tools/commands/view/view.h"

namespace weft::tools {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

struct Command {
  std::string name;
  int (*run)(int, char**);
  std::vector<std::string> before;  // the plan's path
  std::vector<std::string> after;
};

const std::vector<Command>& commands() {
  static const std::vector<Command> list = {{"stats", statsCommand, {}, {}},
                                            {"stats --json", statsCommand, {}, {"--json"}},
                                            {"explain", explainCommand, {}, {}},
                                            {"explain --json", explainCommand, {}, {"--json"}},
                                            {"memory", memoryCommand, {}, {}},
                                            {"memory --json", memoryCommand, {}, {"--json"}},
                                            {"view", viewCommand, {}, {"--json"}},
                                            {"schedule", scheduleCommand, {"--plan"}, {}},
                                            {"schedule --json", scheduleCommand, {"--plan"}, {"--json"}},
                                            {"explain --all", explainCommand, {}, {"--all"}}};
  return list;
}

// Of the plan in a file with a right checksum.
Outcome runOn(const Command& command, const plan::Plan& plan) {
  const std::string path = ::testing::TempDir() + "/weft_hostile_tools.plan";
  EXPECT_TRUE(writePlan(plan, path).ok());
  std::vector<std::string> words = command.before;
  words.push_back(path);
  words.insert(words.end(), command.after.begin(), command.after.end());
  Outcome outcome = run(command.run, words);
  std::remove(path.c_str());
  return outcome;
}

TEST(HostilePlanTools, EndWithAnErrorOrAnAnswer) {
  // Of each sort of lie every n-th.
  for (const auto& [cases, stride] :
       std::vector<std::pair<std::vector<hostile::Case>, size_t>>{{hostile::numberCases(), 31},
                                                                  {hostile::structureCases(), 5},
                                                                  {hostile::channelCases(), 5},
                                                                  {hostile::kernelCases(), 40}}) {
    for (size_t i = 0; i < cases.size(); i += stride) {
      const bool valid = validatePlan(cases[i].plan).ok();
      for (const Command& command : commands()) {
        const Outcome outcome = runOn(command, cases[i].plan);
        EXPECT_EQ(outcome.status, valid ? 0 : 1) << command.name << " on " << cases[i].name << "\n" << outcome.err;
        EXPECT_EQ(outcome.err.empty(), valid) << command.name << " on " << cases[i].name;
      }
    }
  }
}

TEST(HostilePlanTools, ShowPlansBetweenDifferentMeshes) {
  for (const Command& command : commands()) {
    const Outcome outcome = runOn(command, hostile::boxedPlan());
    EXPECT_EQ(outcome.status, 0) << command.name << "\n" << outcome.err;
  }
}

TEST(HostilePlanTools, ReadAnyDecisions) {
  const std::string deep(100'000, '[');
  for (const std::string& text : std::vector<std::string>{
           "x", "7", "null", "\"text\"", "[]", "{}", "{\"operators\":7}", "{\"operators\":[7]}",
           "{\"operators\":[{\"recompute\":\"yes\"}]}", "{\"recompute\":[]}",
           "{\"operators\":[{\"recompute\":true,\"label\":3}]}", deep, deep + std::string(100'000, ']')}) {
    plan::Plan plan = hostile::wholePlan();
    plan.set_decisions(text);
    for (const Command& command : {commands()[2], commands()[3], commands()[6]}) {
      const Outcome outcome = runOn(command, plan);
      EXPECT_EQ(outcome.status, 1) << command.name << " on " << text.substr(0, 60);
      EXPECT_THAT(outcome.err, HasSubstr("decisions: ")) << command.name << " on " << text.substr(0, 60);
    }
  }
}

// Records that are well formed, and place what is not there.
TEST(HostilePlanTools, ReadDecisionsOfOtherPrograms) {
  const std::string head = R"({"mesh":"dp=2","zero":)";
  const std::string tail = R"(,"rewrites":[],"arguments":[],"operators":[],"conflicts":[]})";
  const auto record = [&](const std::string& zero, const std::string& more) { return head + zero + more + tail; };
  const std::string entry = R"({"mesh":"dp=2","zero":0,"rewrites":[],"arguments":[],"conflicts":[],)"
                            R"("operators":[{"id":0,"label":"x","runs_in":"forward","axes":{},"stage":-1}]})";
  for (const std::string& text : std::vector<std::string>{
           record("-9223372036854775808", ""), record("4", ""),
           record("0", R"(,"schedule":{"kind":"1f1b","virtual":0,"submeshes":[0,1]})"),
           record("0", R"(,"schedule":{"kind":"1f1b","virtual":1,"submeshes":[]})"),
           record("0", R"(,"schedule":{"kind":"1f1b","virtual":1,"submeshes":[0,9223372036854775807]})"),
           record("0", R"(,"schedule":{"kind":"1f1b","virtual":1,"submeshes":[-1,0]})"), entry}) {
    plan::Plan plan = hostile::wholePlan();
    plan.set_decisions(text);
    for (const Command& command : {commands()[2], commands()[3], commands()[6]}) {
      EXPECT_EQ(runOn(command, plan).status, 1) << command.name << " on " << text;
    }
  }
}

TEST(HostilePlanTools, ExplainDoesWithoutLocations) {
  plan::Plan plan = hostile::wholePlan();
  plan.clear_locations();
  const Outcome outcome = runOn(commands()[2], plan);
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("source not in the plan"));
}

TEST(HostilePlanTools, RefuseAHugeStage) {
  for (const int64_t stage : {int64_t{-1}, int64_t{1} << 14, int64_t{1} << 40, INT64_MAX}) {
    plan::Plan plan = hostile::wholePlan();
    plan.mutable_functions(1)->set_stage(stage);
    const Outcome outcome = runOn(commands()[7], plan);
    EXPECT_EQ(outcome.status, 1);
    EXPECT_THAT(outcome.err, HasSubstr("functions[1].stage"));
  }
}

TEST(HostilePlanTools, RefuseTracesThatAreNone) {
  const std::string path = ::testing::TempDir() + "/weft_hostile_tools.trace.json";
  for (const std::string& text : std::vector<std::string>{
           "", "7", "[]", "{}", R"({"traceEvents":7})", R"({"traceEvents":[7]})", R"({"traceEvents":[{"ph":"X"}]})",
           R"({"traceEvents":[{"ph":"X","ts":0,"dur":1,"cat":"action","tid":-1,"name":"f","args":{}}]})",
           R"({"traceEvents":[{"ph":"X","ts":0,"dur":1,"cat":"action","tid":1e300,"name":"f","args":{}}]})",
           R"({"traceEvents":[{"ph":"X","ts":0,"dur":1,"cat":"action","tid":0,"name":"f","args":[]}]})",
           R"({"traceEvents":[{"ph":"X","ts":1e308,"dur":1e308,"cat":"step","tid":2,"name":"step"}]})",
           R"({"traceEvents":[{"ph":"X","ts":0,"dur":1,"cat":"action","tid":0,"name":"f",)"
           R"("args":{"function":"f","micro_batch":1e300}}]})"}) {
    std::ofstream(path) << text;
    for (Command command : {commands()[6], commands()[7]}) {
      command.after.insert(command.after.end(), {"--profile", path});
      const Outcome outcome = runOn(command, hostile::wholePlan());
      EXPECT_EQ(outcome.status, 1) << command.name << " with " << text;
      EXPECT_FALSE(outcome.err.empty());
    }
  }
  std::remove(path.c_str());
}

}  // namespace
}  // namespace weft::tools
