// `weft strategy` as a user meets it: every operator there is, with and without its attributes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>

#include "ir/nn/operator_interface.h"
#include "mlir/IR/MLIRContext.h"
#include "passes/pipeline.h"
#include "tests/tools/run_command.h"
#include "tools/commands/operator_attributes.h"
#include "tools/commands/operator_examples.h"
#include "tools/commands/strategy.h"

namespace weft::tools {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

std::vector<std::string> wordsOf(const OperatorExample& line, bool complete) {
  std::vector<std::string> words = {line.op, "--shapes", line.shapes, "--strategy", line.strategy, "--devices", "2"};
  const size_t space = line.more.rfind("--", 0) == 0 ? line.more.find(' ') : std::string::npos;
  if (complete && !line.more.empty()) {
    words.push_back(line.more.substr(0, space));
  }
  if (complete && space != std::string::npos) {
    words.push_back(line.more.substr(space + 1));
  }
  return words;
}

TEST(StrategyCommand, EveryOperatorIsInTheTable) {
  mlir::DialectRegistry dialects;
  registerWeftDialects(dialects);
  mlir::MLIRContext context(dialects);
  context.loadAllAvailableDialects();
  std::set<std::string> known;
  for (mlir::RegisteredOperationName name : context.getRegisteredOperations()) {
    if (name.hasInterface<ir::OperatorInterface>()) {
      known.insert(name.stripDialect().str());
    }
  }
  std::set<std::string> tested;
  for (const OperatorExample& line : operatorExamples()) {
    tested.insert(line.op);
  }
  EXPECT_EQ(tested, known);
}

// What an operator declares can be written.
TEST(StrategyCommand, EveryAttributeIsKnown) {
  const std::set<std::string> forms = {"value", "linear", "pad_fill", "reduce", "gradient", "gradient_of"};
  mlir::DialectRegistry dialects;
  registerWeftDialects(dialects);
  mlir::MLIRContext context(dialects);
  context.loadAllAvailableDialects();
  for (mlir::RegisteredOperationName name : context.getRegisteredOperations()) {
    for (const mlir::StringAttr attribute :
         name.hasInterface<ir::OperatorInterface>() ? name.getAttributeNames() : llvm::ArrayRef<mlir::StringAttr>()) {
      OperatorRequest request;
      const std::string error(addAttribute(attribute.str() + "=?", request).message());
      if (forms.count(attribute.str()) == 0) {
        EXPECT_THAT(error, Not(HasSubstr("no operator has an attribute"))) << name.getStringRef().str();
      }
    }
  }
}

TEST(StrategyCommand, EveryOperatorIsAccepted) {
  for (const OperatorExample& line : operatorExamples()) {
    const Outcome outcome = run(strategyCommand, wordsOf(line, true));
    EXPECT_EQ(outcome.status, 0) << line.op << ": " << outcome.err;
    EXPECT_THAT(outcome.out, HasSubstr("mesh 2, computed")) << line.op;
  }
}

TEST(StrategyCommand, WhatDoesNotFollowIsAskedFor) {
  for (const OperatorExample& line : operatorExamples()) {
    if (!line.more.empty()) {
      const Outcome outcome = run(strategyCommand, wordsOf(line, false));
      EXPECT_EQ(outcome.status, 1) << line.op << ": " << outcome.out;
      EXPECT_THAT(outcome.err, AllOf(HasSubstr("refused: " + line.op + ": "), HasSubstr(line.asks)));
    }
  }
}

// What follows from the shape of the result need not be said.
TEST(StrategyCommand, AttributesFollowFromResults) {
  const std::vector<std::vector<std::string>> cases = {
      {"sum", "--shapes", "8,4", "--strategy", "(2,1)", "--results", "8"},
      {"mean", "--shapes", "8,4", "--strategy", "(2,1)", "--results", "8,1"},
      {"max", "--shapes", "8", "--strategy", "(2)"},
      {"transpose", "--shapes", "8,4", "--strategy", "(2,1)"},
      {"transpose", "--shapes", "8,4,6", "--strategy", "(2,1,1)", "--results", "6,4,8"},
      {"slice", "--shapes", "8,4", "--strategy", "(2,1)", "--results", "8,2"},
      {"pad", "--shapes", "8,4", "--strategy", "(2,1)", "--results", "8,6"},
      {"concat", "--shapes", "8,4:8,2", "--strategy", "(2,1),(2,1)"},
      {"embedding_grad", "--shapes", "8:8,4", "--strategy", "(2),(2,1)", "--results", "10,4"},
      {"max_pool2d", "--shapes", "8,3,6,6", "--strategy", "(2,1,1,1)", "--results", "8,3,3,3"},
  };
  for (std::vector<std::string> words : cases) {
    words.insert(words.end(), {"--devices", "2"});
    const Outcome outcome = run(strategyCommand, words);
    EXPECT_EQ(outcome.status, 0) << words[0] << ": " << outcome.err;
  }
  EXPECT_THAT(
      run(strategyCommand, {"sum", "--shapes", "4,4", "--strategy", "(2,1)", "--results", "4", "--devices", "2"}).err,
      HasSubstr("'dims' does not follow from the shapes; write dims=[1]"));
}

TEST(StrategyCommand, NamesMeanWhatShardMeans) {
  const auto layouts = [](const std::string& strategy, const std::string& shapes) {
    const Outcome outcome =
        run(strategyCommand, {"matmul", "--shapes", shapes, "--strategy", strategy, "--mesh", "dp=2,tp=4", "--json"});
    EXPECT_EQ(outcome.status, 0) << outcome.out;
    const json out = json::parse(outcome.out);
    return out["operands"].dump() + " -> " + out["results"].dump() + " x" + out["repeats"].dump();
  };
  EXPECT_EQ(layouts("(dp,),(,tp)", "16,32:32,16"), R"(["[{dp},{}]","[{},{tp}]"] -> ["[{dp},{tp}]"] x1)");
  EXPECT_EQ(layouts("(dp+tp,),(,)", "16,32:32,16"), R"(["[{dp,tp},{}]","[{},{}]"] -> ["[{dp,tp},{}]"] x1)");
  EXPECT_EQ(layouts("(,tp),(tp,)", "16,32:32,16"), R"(["[{},{tp}]","[{tp},{}]"] -> ["[{},{}]"] x2)");
}

TEST(StrategyCommand, ErrorsSayWhatToWrite) {
  const auto error = [](std::vector<std::string> words) {
    const Outcome outcome = run(strategyCommand, std::move(words));
    EXPECT_NE(outcome.status, 0) << outcome.out;
    return outcome.err;
  };
  EXPECT_THAT(error({"matmul", "--shapes", "16,32:32,16", "--strategy", "(dp,),(,pt)", "--mesh", "dp=2,tp=4"}),
              HasSubstr("unknown axis 'pt'; the mesh dp=2,tp=4 has: dp, tp, all"));
  EXPECT_THAT(error({"matmul", "--shapes", "16,32:32,16", "--strategy", "(dp,2),(,)", "--mesh", "dp=2,tp=4"}),
              HasSubstr("'2' stands beside axis names; write numbers of parts in all entries or names of axes"));
  EXPECT_THAT(error({"matmul", "--shapes", "16,32:32,16", "--strategy", "(,dp),(tp,)", "--mesh", "dp=2,tp=4"}),
              HasSubstr("write the same axes in both"));
  EXPECT_THAT(error({"matmul", "--shapes", "16,32:32,16", "--strategy", "(2,1),(1,1)"}),
              HasSubstr("--devices N, or --mesh dp=2,tp=4"));
  EXPECT_THAT(error({"sun", "--shapes", "8,4", "--strategy", "(2,1)", "--devices", "2"}),
              HasSubstr("there is no operator 'sun'; did you mean 'sum'?"));
  EXPECT_THAT(error({"sum", "dims=1", "--shapes", "8,4", "--strategy", "(2,1)", "--devices", "2"}),
              HasSubstr("attribute dims=1: it is a list; write for instance dims=[1]"));
  EXPECT_THAT(error({"sum", "dim=[1]", "--shapes", "8,4", "--strategy", "(2,1)", "--devices", "2"}),
              HasSubstr("attribute dim=[1]: '[1]' is not an integer of 64 bits; write for instance dim=0"));
  EXPECT_THAT(error({"sum", "dimms=[1]", "--shapes", "8,4", "--strategy", "(2,1)", "--devices", "2"}),
              HasSubstr("no operator has an attribute 'dimms'; did you mean 'dims'?"));
  EXPECT_THAT(error({"add", "--shapes", "9223372036854775807:4", "--strategy", "(1),(1)", "--devices", "2"}),
              HasSubstr("'9223372036854775807' is not an integer from 1 to"));
  EXPECT_THAT(error({"embedding", "rows=9223372036854775808", "--shapes", "8,4:2", "--strategy", "(1,1),(1)",
                     "--devices", "2"}),
              HasSubstr("'9223372036854775808' is not an integer of 64 bits"));
  EXPECT_THAT(error({"strategy"}), HasSubstr("weft strategy: flag '--shapes' is missing"));
}

}  // namespace
}  // namespace weft::tools
