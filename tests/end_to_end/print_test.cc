// `weft print` on every state of a staged GPT: names, layouts, origins and source lines stand where they should.

#include "tools/commands/print.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "examples/gpt/model.h"
#include "tests/tools/run_command.h"
#include "weft/weft.h"

namespace weft::tools {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;
using Json = nlohmann::json;

class PrintTest : public ::testing::Test {
 protected:
  static std::filesystem::path folder() { return std::filesystem::path(::testing::TempDir()) / "weft_print_test"; }

  static void SetUpTestSuite() {
    std::filesystem::remove_all(folder());
    Graph graph;
    const examples::GptModel model = examples::buildGpt(graph, {.vocabulary = 16,
                                                                .layers = 2,
                                                                .width = 32,
                                                                .heads = 4,
                                                                .context = 8,
                                                                .batch = 4,
                                                                .stages = 2,
                                                                .parallel = {"dp", "tp"}});
    CompileOptions options;
    options.mesh = "dp=2,tp=2";
    options.schedule = "1f1b";
    options.dumpDir = folder().string();
    const absl::StatusOr<Program> program = compile(graph, model.loss, optim::Sgd{.lr = 0.1}, options);
    ASSERT_TRUE(program.ok()) << program.status();
  }
  static void TearDownTestSuite() { std::filesystem::remove_all(folder()); }

  // The dump behind a phase.
  static std::string after(const std::string& phase) {
    for (const auto& entry : std::filesystem::directory_iterator(folder())) {
      if (entry.path().stem().string().substr(3) == phase && entry.path().extension() == ".mlir") {
        return entry.path().string();
      }
    }
    ADD_FAILURE() << "no dump after " << phase;
    return "";
  }

  static std::string printed(const std::string& phase, std::vector<std::string> flags = {}) {
    flags.insert(flags.begin(), after(phase));
    const Outcome outcome = run(printCommand, flags);
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    return outcome.out;
  }

  // The rows of one function and stage, by name.
  static std::map<std::string, Json> rows(const std::string& phase, const std::string& function, int64_t stage) {
    std::map<std::string, Json> found;
    const Json table = Json::parse(printed(phase, {"--json"}));
    for (const Json& group : table["groups"]) {
      if (group["function"] == function && group["stage"] == stage) {
        for (const Json& row : group["rows"]) {
          found.emplace(row["name"], row);
        }
      }
    }
    return found;
  }
};

TEST_F(PrintTest, TheInputHasTheUsersWordsOnly) {
  const std::string text = printed("input");
  EXPECT_THAT(text, HasSubstr("state logical\n"));
  EXPECT_THAT(text, AllOf(HasSubstr("\n@forward, stage 1\n"), Not(HasSubstr("@backward")), Not(HasSubstr("layout"))));
  EXPECT_THAT(text, ContainsRegex("h0.qkv +nn.contract +f32\\[4,8,3,32\\] +gpt2.cc:[0-9]+ +user\n"));
  EXPECT_THAT(text, ContainsRegex("h0.add +nn.add +f32\\[4,8,3,32\\] +gpt2.cc:[0-9]+ +-\n"));
}

// Which stage an operator is of, if the user has not said it, is open until decide.
TEST_F(PrintTest, StagesThatAreOpenAreNotShown) {
  EXPECT_THAT(printed("input"), HasSubstr("\n@forward\nembed "));
  EXPECT_THAT(printed("build-gradients"), HasSubstr("\n@backward\n"));
  EXPECT_THAT(printed("decide"), AllOf(HasSubstr("\n@backward, stage 1\n"), HasSubstr("\n@backward, stage 0\n")));
}

TEST_F(PrintTest, DecidedAndAnnotatedStatesSayWhoDecided) {
  for (const std::string phase : {"decide", "insert-reshards"}) {
    const auto arguments = rows(phase, "", 0);
    EXPECT_EQ(arguments.at("h0.qkv.weight")["layout"], "[{},{},{tp}]") << phase;
    EXPECT_THAT(arguments.at("h0.qkv.weight")["decided_by"], HasSubstr("first reader h0.qkv")) << phase;
    EXPECT_EQ(arguments.at("h0.qkv.weight")["operator"], "parameter");
    EXPECT_EQ(rows(phase, "forward", 0).at("h0.qkv")["decided_by"], "user") << phase;
    EXPECT_EQ(rows(phase, "backward", 1).at("h1.qkv.grad")["decided_by"], "forward operator h1.qkv") << phase;
    EXPECT_EQ(rows(phase, "forward", 0).count("h1.qkv"), 0U) << phase << ": stage 1 has it";
  }
  const Json out = rows("insert-reshards", "forward", 1).at("h1.out");
  EXPECT_EQ(out["layout"], "[{dp},{},{}] partial{tp:sum}");
  EXPECT_THAT(out["source"], ContainsRegex("/gpt2.cc:[0-9]+$"));
  const Json reshard = rows("insert-reshards", "forward", 1).at("reshard");
  EXPECT_EQ(reshard["operator"], "dist.reshard");
  EXPECT_THAT(reshard["decided_by"], HasSubstr("reads operand"));
}

TEST_F(PrintTest, TheLocalStateIsGroupedBySubmesh) {
  const auto forward = rows("form-buckets", "submesh1.forward", 1);
  EXPECT_EQ(forward.at("h1.qkv")["shape"], "f32[2,8,3,16]") << "of one rank";
  EXPECT_EQ(forward.at("h1.qkv")["decided_by"], "user");
  EXPECT_EQ(forward.at("h1.qkv")["layout"], "");
  EXPECT_THAT(printed("form-buckets"), ContainsRegex("bucket of [0-9]+ +dist.all_reduce +f32.* and [0-9]+ more "));
}

TEST_F(PrintTest, TheScheduledStateIsGroupedAsTheLocalOne) {
  const auto forward = rows("plan-memory", "submesh1.forward", 1);
  EXPECT_EQ(forward.at("h1.qkv")["shape"], "f32[2,8,3,16]");
  EXPECT_EQ(forward.at("h1.qkv")["decided_by"], "user");
  EXPECT_THAT(printed("plan-memory"), HasSubstr("state scheduled, after plan-memory\n"));
}

TEST_F(PrintTest, WhatCannotBeRead) {
  EXPECT_EQ(run(printCommand, {}).status, 2);
  EXPECT_EQ(run(printCommand, {after("decide"), "--jsn"}).status, 2);
  EXPECT_THAT(run(printCommand, {"/nonexistent.mlir"}).err, HasSubstr("weft print: cannot read '/nonexistent.mlir'"));
  const std::filesystem::path alone = folder() / "alone";
  std::filesystem::create_directory(alone);
  std::filesystem::copy(after("decide"), alone / "decided.mlir");
  Outcome outcome = run(printCommand, {(alone / "decided.mlir").string()});
  EXPECT_EQ(outcome.status, 1);
  EXPECT_THAT(outcome.err, AllOf(HasSubstr("cannot read '" + (alone / "decisions.json").string()), HasSubstr("copy")));
  std::ofstream(alone / "decisions.json") << "{";
  outcome = run(printCommand, {(alone / "decided.mlir").string()});
  EXPECT_EQ(outcome.status, 1);
  EXPECT_THAT(outcome.err, HasSubstr("weft print: "));
  std::ofstream(alone / "broken.mlir") << "module {\n  oops\n}\n";
  EXPECT_THAT(run(printCommand, {(alone / "broken.mlir").string()}).err, HasSubstr("broken.mlir:2: error: "));
}

}  // namespace
}  // namespace weft::tools
