// A program with operators from outside, in the tools, which know nothing of them but what the module says: compiled
// again from every dump, explained with the user's line, planned.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "absl/strings/str_cat.h"
#include "runtime/plan/plan_file.h"
#include "tests/support/files.h"
#include "tests/support/own_operators.h"
#include "tests/tools/run_command.h"
#include "tools/commands/compile.h"
#include "tools/commands/explain.h"
#include "tools/commands/plan.h"

namespace weft::tools {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using weft::testing::contentsOf;
using weft::testing::namesIn;
using weft::testing::TemporaryDirectory;

int gateLine = 0;

// Two ranks, an operator that is split and one that is recomputed, in stages of one and the same operator on other
// shapes.
Tensor buildNet(Graph& g) {
  const Tensor x = g.input("x", {8, 6});
  const auto product = [&](const Tensor& a, const char* name, int64_t columns) {
    return matmul(a, g.parameter(name, {a.shape()[1], columns}, Init::normal(0.5)));
  };
  gateLine = __LINE__ + 1;
  const Tensor wide = apply(testing::gate(), {product(x, "a", 8), product(x, "b", 8)}).front().shard({{"", "tp"}});
  const Tensor rows = apply(testing::addRow(), {wide}, {{"k", 0.5}}).front().recomputed();
  const Tensor narrow = apply(testing::gate(), {product(rows, "c", 4), product(wide, "d", 4)}).front();
  return mean(narrow * narrow);
}

absl::StatusOr<Program> compiled(const std::string& dumpDir, const std::string& mesh = "tp=2") {
  Graph g;
  CompileOptions options;
  options.mesh = mesh;
  options.micro = 2;
  options.dumpDir = dumpDir;
  return compile(g, buildNet(g), optim::AdamW{.lr = 0.01}, options);
}

TEST(OwnOperatorTools, EveryDumpIsCompiledToTheSameBytes) {
  const TemporaryDirectory dumps;
  const TemporaryDirectory plans;
  const absl::StatusOr<Program> program = compiled(dumps.path());
  ASSERT_TRUE(program.ok()) << program.status();
  const std::string bytes = *serializePlan(program->plan);
  int compilations = 0;
  for (const std::string& name : namesIn(dumps.path())) {
    if (std::filesystem::path(name).extension() != ".mlir") {
      continue;
    }
    const std::string path = plans / (name + ".plan");
    const Outcome outcome = run(compileCommand, {dumps / name, "-o", path});
    EXPECT_EQ(outcome.status, 0) << name << ": " << outcome.err;
    EXPECT_EQ(contentsOf(path), bytes) << name;
    ++compilations;
  }
  EXPECT_EQ(compilations, 22);  // the input and 21 phases
}

// The gradient stands in the module until it is built.
TEST(OwnOperatorTools, ItsGradientIsAFunctionOfTheLogicalModule) {
  const TemporaryDirectory dumps;
  ASSERT_TRUE(compiled(dumps.path()).ok());
  const std::string input = contentsOf(dumps / "00-input.mlir");
  EXPECT_THAT(input, AllOf(HasSubstr("func.func private @gate_gradient("), HasSubstr("@gate_gradient_2("),
                           HasSubstr("@add_row_gradient("), HasSubstr("gradient = @gate_gradient_2")));
  EXPECT_THAT(contentsOf(dumps / "03-build-update.mlir"), AllOf(HasSubstr("\"gate\""), Not(HasSubstr("_gradient"))));
}

// An operator that nothing reads is dropped before its gradient's function: what is dumped then goes on, too.
TEST(OwnOperatorTools, AFunctionWhoseOperatorIsGone) {
  const TemporaryDirectory dumps;
  Graph g;
  const Tensor x = matmul(g.input("x", {8, 6}), g.parameter("w", {6, 4}, Init::normal(0.5)));
  (void)apply(testing::gate(), {x, x});
  CompileOptions options;
  options.dumpDir = dumps.path();
  const absl::StatusOr<Program> program = compile(g, mean(x * x), optim::Sgd{.lr = 0.1}, options);
  ASSERT_TRUE(program.ok()) << program.status();
  for (const std::string& name : namesIn(dumps.path())) {
    if (name.rfind("00", 0) == 0 || name.rfind("01", 0) == 0 || name.rfind("02", 0) == 0) {
      const Outcome outcome = run(compileCommand, {dumps / name, "-o", dumps / "again.plan"});
      EXPECT_EQ(outcome.status, 0) << name << ": " << outcome.err;
      EXPECT_EQ(contentsOf(dumps / "again.plan"), *serializePlan(program->plan)) << name;
    }
  }
}

// Searched for other ranks than the program's, in a process that has none of its functions.
TEST(OwnOperatorTools, ADumpIsPlannedForOtherRanks) {
  const TemporaryDirectory dumps;
  ASSERT_TRUE(compiled(dumps.path()).ok());
  const Outcome searched =
      run(compileCommand, {dumps / "00-input.mlir", "-o", dumps / "auto.plan", "--mode", "auto", "--devices", "4"});
  EXPECT_EQ(searched.status, 0) << searched.err;
  const Outcome planned = run(planCommand, {dumps / "00-input.mlir", "--mode", "auto", "--devices", "2"});
  EXPECT_EQ(planned.status, 0) << planned.err;
}

TEST(OwnOperatorTools, IsExplainedWithTheUsersLine) {
  const TemporaryDirectory folder;
  const absl::StatusOr<Program> program = compiled("");
  ASSERT_TRUE(program.ok()) << program.status();
  ASSERT_TRUE(writePlan(program->plan, folder / "own.plan").ok());
  const Outcome outcome = run(explainCommand, {folder / "own.plan"});
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_THAT(outcome.out,
              AllOf(HasSubstr("gate reads operand 0: "), HasSubstr("add_row, recomputed in the backward pass"),
                    HasSubstr(absl::StrCat("own_operator_tools_test.cc:", gateLine + 2))));
}

// What a module says wrongly of a gradient is refused at its place.
TEST(OwnOperatorTools, WrongGradientsInModules) {
  const TemporaryDirectory dumps;
  ASSERT_TRUE(compiled(dumps.path()).ok());
  const std::string input = contentsOf(dumps / "00-input.mlir");
  using Change = std::pair<std::string, std::string>;
  const auto error = [&](const std::vector<Change>& changes) {
    std::string text = input;
    for (const auto& [from, to] : changes) {
      const size_t at = text.find(from);
      EXPECT_NE(at, std::string::npos) << from;
      text.replace(at, from.size(), to);
    }
    std::ofstream(dumps / "wrong.mlir") << text;
    const Outcome outcome = run(compileCommand, {dumps / "wrong.mlir", "-o", dumps / "wrong.plan"});
    EXPECT_NE(outcome.status, 0);
    return outcome.err;
  };
  EXPECT_THAT(error({{"func.func private @add_row_gradient", "func.func @add_row_gradient"}}),
              HasSubstr("func.func has no place beside @step, @init and the private gradients of own operators"));
  EXPECT_THAT(error({{"gradient = @gate_gradient,", "gradient = @other,"},
                     {"gradient = @gate_gradient_2,", "gradient = @gate_gradient,"},
                     {"gradient = @other,", "gradient = @gate_gradient_2,"}}),
              HasSubstr("does not take its operands, results and gradients of results"));
  EXPECT_THAT(error({{"gradient = @gate_gradient_2", "gradient = @none"}}),
              HasSubstr("gate: its gradient, @none, is no function of the module"));
  EXPECT_THAT(error({{"gradient_of = array<i64: 0, 1>", "gradient_of = array<i64: 0>"}}),
              HasSubstr("does not return one gradient for each operand of gradient_of"));
  EXPECT_THAT(error({{"gradient_of = array<i64: 0, 1>", "gradient_of = array<i64: 0, 7>"}}),
              HasSubstr("nn.custom (7): "));
}

}  // namespace
}  // namespace weft::tools
