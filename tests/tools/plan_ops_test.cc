#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/tools/run_command.h"
#include "tools/commands/plan.h"

namespace weft::tools {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

constexpr char kGraph[] = R"({"problem":{"nodes":{"intervals":[[0,2],[1,3]],"costs":[[3,1],[0,2]],
  "usages":[[4,9],[2,2]]},"edges":{"nodes":[[0,1]],"costs":[[0,5,5,0]]},"usage_limit":)";

// `weft plan --ops` of the graph with this limit.
Outcome solve(const std::string& limit, std::vector<std::string> flags) {
  const std::string path = ::testing::TempDir() + "/weft_plan_ops_test.json";
  std::ofstream(path) << kGraph << limit << "}}";
  flags.insert(flags.begin(), {"--ops", path});
  return run(planCommand, flags);
}

TEST(PlanOps, JsonHasTheAgreedFields) {
  const Outcome outcome = solve("10", {"--json"});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const json out = json::parse(outcome.out);
  EXPECT_EQ(out["feasible"], true);
  EXPECT_EQ(out["cost"], 3);
  EXPECT_EQ(out["bound"], 3);
  EXPECT_EQ(out["gap"], 0);
  EXPECT_EQ(out["strategies"], json({0, 0}));
  EXPECT_GT(out["ticks"], 0);
}

TEST(PlanOps, WithoutJsonATable) {
  const Outcome outcome = solve("10", {"--effort", "0.5"});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("usage  6         of 10\n"));
  EXPECT_THAT(outcome.out, HasSubstr("No choice costs less."));
}

TEST(PlanOps, WhatCannotBeIsAnErrorAndAnAnswer) {
  const Outcome outcome = solve("5", {"--json"});
  EXPECT_EQ(outcome.status, 1);
  const json out = json::parse(outcome.out);
  EXPECT_EQ(out["feasible"], false);
  EXPECT_EQ(out["proven"], true);
  EXPECT_THAT(outcome.err, HasSubstr("there is no choice of strategies within usage_limit 5"));
}

TEST(PlanOps, ErrorsNameTheFileAndThePlace) {
  const Outcome outcome = solve("-5", {});
  EXPECT_EQ(outcome.status, 1);
  EXPECT_THAT(outcome.err, HasSubstr("weft_plan_ops_test.json: usage_limit: found -5"));
  EXPECT_THAT(run(planCommand, {"--ops", "/nowhere"}).err, HasSubstr("/nowhere"));
}

TEST(PlanOps, OtherFlagsAreRefused) {
  const Outcome machine = solve("10", {"--devices", "4"});
  EXPECT_EQ(machine.status, 2);
  EXPECT_THAT(machine.err, HasSubstr("--devices says nothing of the graph of --ops"));
  EXPECT_THAT(run(planCommand, {"model.mlir", "--ops", "graph.json"}).err, HasSubstr("both a module, 'model.mlir'"));
  EXPECT_THAT(run(planCommand, {"model.mlir", "--effort", "2"}).err, HasSubstr("--effort is for a graph of --ops"));
  EXPECT_THAT(solve("10", {"--effort", "-1"}).err, HasSubstr("--effort"));
}

}  // namespace
}  // namespace weft::tools
