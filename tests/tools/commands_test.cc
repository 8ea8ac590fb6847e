#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>

#include "runtime/base/names.h"
#include "tests/tools/run_command.h"
#include "tools/commands/flags.h"
#include "tools/commands/layout.h"
#include "tools/commands/reshard.h"

namespace weft::tools {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

TEST(ReshardCommandTest, JsonHasTheAgreedFields) {
  Outcome outcome = run(reshardCommand, {"--mesh", "x=2,y=2", "--shape", "16,32", "--from", "[{x},{}]", "--to",
                                         "[{},{x}]", "--dtype", "bf16", "--json"});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  json out = json::parse(outcome.out);
  ASSERT_EQ(out["steps"].size(), 1u);
  json step = out["steps"][0];
  EXPECT_EQ(step["collective"], "all_to_all");
  EXPECT_EQ(step["groups"], json::parse("[[0,2],[1,3]]"));
  EXPECT_EQ(step["layout"], "[{},{x}]");
  EXPECT_EQ(step["local_shape"], json::parse("[16,16]"));
  EXPECT_EQ(step["bytes_received_per_rank"], 16 * 32 * 2 / 2 / 2);
  EXPECT_FALSE(step.contains("source"));
  EXPECT_EQ(out["cost"], step["cost"]);
}

TEST(ReshardCommandTest, PermuteNamesSourcesAndCycles) {
  Outcome outcome =
      run(reshardCommand, {"--mesh=x=2,y=2", "--shape=4,4", "--from=[{x},{y}]", "--to=[{y},{x}]", "--json"});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  json step = json::parse(outcome.out)["steps"][0];
  EXPECT_EQ(step["collective"], "permute");
  EXPECT_EQ(step["source"], json::parse("[0,2,1,3]"));
  EXPECT_EQ(step["groups"], json::parse("[[1,2]]"));
}

TEST(ReshardCommandTest, TargetMayBeWrittenOnAnotherMesh) {
  Outcome outcome = run(reshardCommand, {"--mesh", "a=3,b=2", "--shape", "36,36", "--from", "[{a},{b}]", "--to",
                                         "[{y},{x}]", "--to-mesh", "x=2,y=3", "--json"});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(json::parse(outcome.out)["steps"][0]["layout"], "[{all:(2)3},{all:(1)2}]");
  outcome =
      run(reshardCommand, {"--mesh", "a=3", "--shape", "6", "--from", "[{a}]", "--to", "[{}]", "--to-mesh", "x=2"});
  EXPECT_EQ(outcome.status, 1);
  EXPECT_THAT(outcome.err, HasSubstr("has 2 ranks, --mesh a=3 has 3"));
}

TEST(ReshardCommandTest, TableForPeople) {
  Outcome outcome = run(reshardCommand, {"--mesh", "tp=4", "--shape", "16", "--from", "[{tp}]", "--to", "[{}]"});
  EXPECT_EQ(outcome.status, 0);
  EXPECT_THAT(outcome.out, AllOf(HasSubstr("all_gather"), HasSubstr("48 B"), HasSubstr("on cpu\n")));
  outcome = run(reshardCommand, {"--mesh", "tp=4", "--shape", "16", "--from", "[{tp}]", "--to", "[{tp}]"});
  EXPECT_THAT(outcome.out, HasSubstr("Nothing to do"));
}

TEST(ReshardCommandTest, MachineFileSetsThePrices) {
  std::string path = ::testing::TempDir() + "/weft_commands_test.machine";
  std::ofstream(path) << "name = slow\nlink_bandwidth = 1\nlink_latency = 0\nlaunch_latency = 0\n";
  Outcome outcome = run(reshardCommand, {"--mesh", "tp=2", "--shape", "16", "--from", "[{tp}]", "--to", "[{}]",
                                         "--machine", path, "--json"});
  std::remove(path.c_str());
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(json::parse(outcome.out)["cost"], 32.0);
}

TEST(ReshardCommandTest, StatusTwoForWrongUse) {
  Outcome outcome = run(reshardCommand, {"--mehs", "tp=2"});
  EXPECT_EQ(outcome.status, 2);
  EXPECT_THAT(outcome.err, HasSubstr("unknown flag '--mehs'; did you mean '--mesh'?"));
  outcome = run(reshardCommand, {"--mesh", "tp=2"});
  EXPECT_EQ(outcome.status, 2);
  EXPECT_THAT(outcome.err, HasSubstr("flag '--shape' is missing"));
  EXPECT_EQ(run(reshardCommand, {"--mesh"}).status, 2);
  EXPECT_EQ(run(reshardCommand, {"--json=1"}).status, 2);
  EXPECT_EQ(run(reshardCommand, {"mesh"}).status, 2);
  EXPECT_EQ(run(reshardCommand, {"--help"}).status, 0);
}

TEST(ReshardCommandTest, StatusOneForWrongValues) {
  auto status = [](const std::string& mesh, const std::string& shape, const std::string& from, const std::string& to) {
    Outcome outcome = run(reshardCommand, {"--mesh", mesh, "--shape", shape, "--from", from, "--to", to});
    EXPECT_EQ(outcome.out, "");
    EXPECT_NE(outcome.err, "");
    return outcome.status;
  };
  EXPECT_EQ(status("tp=0", "16", "[{}]", "[{}]"), 1);
  EXPECT_EQ(status("tp=2", "16,x", "[{}]", "[{}]"), 1);
  EXPECT_EQ(status("tp=2", "16", "[{dp}]", "[{}]"), 1);
  EXPECT_EQ(status("tp=2", "15", "[{}]", "[{tp}]"), 1);
  EXPECT_EQ(status("tp=2", "16", "[{}]", "[{}] partial{tp:sum}"), 1);
  EXPECT_EQ(run(reshardCommand, {"--mesh", "tp=2", "--shape", "16", "--from", "[{}]", "--to", "[{}]", "--dtype", "f8"})
                .status,
            1);
  EXPECT_EQ(run(reshardCommand,
                {"--mesh", "tp=2", "--shape", "16", "--from", "[{}]", "--to", "[{}]", "--machine", "/nonexistent/file"})
                .status,
            1);
}

TEST(LayoutCommandTest, JsonHasTheAgreedFields) {
  Outcome outcome = run(layoutCommand, {"--mesh", "dp=2,tp=2", "--shape", "16,32", "--layout", "[{dp},{}]", "--json"});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  json out = json::parse(outcome.out);
  EXPECT_EQ(out["local_shape"], json::parse("[8,32]"));
  EXPECT_EQ(out["replica_groups"], json::parse("[[0,1],[2,3]]"));
  EXPECT_EQ(out["slices"].size(), 4u);
  EXPECT_EQ(out["slices"][3], json::parse(R"({"rank":3,"offset":[8,0],"size":[8,32]})"));
}

TEST(LayoutCommandTest, MicroBatchesAndPads) {
  Outcome outcome =
      run(layoutCommand, {"--mesh", "dp=2,micro=2", "--shape", "7", "--layout", "[{dp,micro}] pad{0:8}", "--json"});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(json::parse(outcome.out)["slices"][3],
            json::parse(R"({"rank":1,"micro_batch":1,"offset":[6],"size":[2],"valid":[1]})"));
}

TEST(LayoutCommandTest, Errors) {
  Outcome outcome = run(layoutCommand, {"--mesh", "dp=2", "--shape", "5", "--layout", "[{dp}]"});
  EXPECT_EQ(outcome.status, 1);
  EXPECT_THAT(outcome.err, HasSubstr("nearest sizes that do: 4 and 6"));
}

TEST(FlagsTest, Nearest) {
  EXPECT_EQ(similarName("reshrad", {"layout", "reshard"}), "reshard");
  EXPECT_EQ(similarName("zzzzzz", {"layout", "reshard"}), "");
}

}  // namespace
}  // namespace weft::tools
