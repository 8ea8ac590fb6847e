// `weft strategy` as a user meets it: every operator there is, with and without its attributes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>

#include "ir/nn/operator_interface.h"
#include "mlir/IR/MLIRContext.h"
#include "passes/pipeline.h"
#include "tests/tools/run_command.h"
#include "tools/commands/strategy.h"

namespace weft::tools {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;

struct OperatorLine {
  std::string op;
  std::string shapes;
  std::string strategy;
  std::string more = "";  // what does not follow: an attribute, or --results and a shape
  std::string asks = "";  // what the message without it says to write
};

// Two ranks; the first dimension that may be split is split.
const std::vector<OperatorLine>& lines() {
  static const std::vector<OperatorLine> all = {
      {"neg", "8,4", "(2,1)"},
      {"exp", "8,4", "(2,1)"},
      {"log", "8,4", "(2,1)"},
      {"sqrt", "8,4", "(2,1)"},
      {"rsqrt", "8,4", "(2,1)"},
      {"tanh", "8,4", "(2,1)"},
      {"relu", "8,4", "(2,1)"},
      {"gelu", "8,4", "(2,1)"},
      {"constrain", "8,4", "(2,1)"},
      {"stop_gradient", "8,4", "(2,1)"},
      {"cast", "8,4", "(2,1)"},
      {"relu_grad", "8,4:8,4", "(2,1),(2,1)"},
      {"gelu_grad", "8,4:8,4", "(2,1),(2,1)"},
      {"tanh_grad", "8,4:8,4", "(2,1),(2,1)"},
      {"add", "8,4:4", "(2,1),(1)"},
      {"sub", "8,4:4", "(2,1),(1)"},
      {"mul", "8,4:", "(2,1),()"},
      {"div", "8,4:4", "(2,1),(1)"},
      {"maximum", "8,4:4", "(2,1),(1)"},
      {"minimum", "8,4:4", "(2,1),(1)"},
      {"compare", "8,4:4", "(2,1),(1)"},
      {"select", "8,4:8,4:4", "(2,1),(2,1),(1)"},
      {"matmul", "8,4:4,6", "(2,1),(1,1)"},
      {"contract", "8,4:4,6", "(2,1),(1,1)", "spec=m k, k n -> m n", "write spec='m k, k n -> m n'"},
      {"conv2d", "8,3,6,6:4,3,3,3", "(2,1,1,1),(1,1,1,1)"},
      {"conv2d_input_grad", "8,4,4,4:4,3,3,3", "(2,1,1,1),(1,1,1,1)"},
      {"conv2d_weight_grad", "8,3,6,6:8,4,4,4", "(2,1,1,1),(2,1,1,1)"},
      {"max_pool2d", "8,3,6,6", "(2,1,1,1)", "window=[2,2]", "write window=[2,2]"},
      {"avg_pool2d", "8,3,6,6", "(2,1,1,1)", "window=[3,3]", "write window=[2,2]"},
      {"max_pool2d_grad", "8,3,6,6:8,3,3,3", "(2,1,1,1),(2,1,1,1)"},
      {"avg_pool2d_grad", "8,3,3,3", "(2,1,1,1)", "window=[2,2]", "write window=[2,2]"},
      {"softmax", "8,4", "(2,1)"},
      {"softmax_grad", "8,4:8,4", "(2,1),(2,1)"},
      {"layer_norm", "8,4:4:4", "(2,1),(1),(1)"},
      {"layer_norm_grad", "8,4:4:8:8:8,4", "(2,1),(1),(2),(2),(2,1)"},
      {"rms_norm", "8,4:4", "(2,1),(1)"},
      {"rms_norm_grad", "8,4:4:8:8,4", "(2,1),(1),(2),(2,1)"},
      {"batch_norm", "8,4,3:4:4", "(2,1,1),(1),(1)"},
      {"batch_norm_grad", "8,4,3:4:1,4:1,4:1,4:8,4,3", "(2,1,1),(1),(1,1),(1,1),(1,1),(2,1,1)"},
      {"channel_sum", "8,4,3", "(2,1,1)"},
      {"channel_dot", "8,4,3:8,4,3:1,4", "(2,1,1),(2,1,1),(1,1)"},
      {"channel_affine", "8,4,3:1,4:1,4", "(2,1,1),(1,1),(1,1)"},
      {"sum", "8,4", "(2,1)", "dims=[1]", "write dims=[1]"},
      {"mean", "8,4", "(2,1)", "dims=[0,1]", "write dims=[1]"},
      {"max", "8,4", "(2,1)", "dims=[0]", "write dims=[1]"},
      {"abs", "8,4", "(2,1)"},
      {"sign", "8,4", "(2,1)"},
      {"floor", "8,4", "(2,1)"},
      {"ceil", "8,4", "(2,1)"},
      {"erf", "8,4", "(2,1)"},
      {"sin", "8,4", "(2,1)"},
      {"cos", "8,4", "(2,1)"},
      {"sigmoid", "8,4", "(2,1)"},
      {"silu", "8,4", "(2,1)"},
      {"softplus", "8,4", "(2,1)"},
      {"hard_swish", "8,4", "(2,1)"},
      {"leaky_relu", "8,4", "(2,1)"},
      {"elu", "8,4", "(2,1)"},
      {"log_softmax", "8,4", "(2,1)"},
      {"sigmoid_grad", "8,4:8,4", "(2,1),(2,1)"},
      {"silu_grad", "8,4:8,4", "(2,1),(2,1)"},
      {"softplus_grad", "8,4:8,4", "(2,1),(2,1)"},
      {"hard_swish_grad", "8,4:8,4", "(2,1),(2,1)"},
      {"leaky_relu_grad", "8,4:8,4", "(2,1),(2,1)"},
      {"elu_grad", "8,4:8,4", "(2,1),(2,1)"},
      {"log_softmax_grad", "8,4:8,4", "(2,1),(2,1)"},
      {"pow", "8,4:4", "(2,1),(1)"},
      {"min", "8,4", "(2,1)", "dims=[1]", "write dims=[1]"},
      {"cumsum", "8,4", "(2,1)", "dim=1", "write dim=1"},
      {"prod", "8,4", "(2,1)", "dim=1", "write dim=1"},
      {"prod_grad", "8,4:8", "(2,1),(2)", "dim=1", "write dim=1"},
      {"argmax", "8,4", "(2,1)", "dim=1", "write dim=1"},
      {"argmin", "8,4", "(2,1)", "dim=1", "write dim=1"},
      {"sort", "8,4", "(2,1)"},
      {"flip", "8,4", "(2,1)", "dims=[1]", "write dims=[1]"},
      {"gather", "8,4:8,6", "(2,1),(2,1)", "dim=1", "write dim=1"},
      {"scatter_add", "8:8", "(2),(2)", "--results 6", "write --results 8"},
      {"sum_squares", "8,4", "(2,1)"},
      {"all_finite", "8,4", "(2,1)"},
      {"reshape", "8,4", "(2,1)", "--results 32", "write --results 24"},
      {"transpose", "8,4,6", "(2,1,1)", "permutation=[2,1,0]", "write permutation=[0,2,1]"},
      {"slice", "8,4", "(2,1)", "sizes=[8,2]", "write sizes=[8,4]"},
      {"pad", "8,4", "(2,1)", "high=[0,2]", "write high=[1,1]"},
      {"concat", "8,4:8,4", "(2,1),(2,1)", "dim=1", "write dim=0"},
      {"broadcast", "4", "(1)", "--results 8,4", "write --results 4,6"},
      {"embedding", "10,4:8", "(1,1),(2)"},
      {"embedding_grad", "8:8,4", "(2),(2,1)", "rows=10", "write rows=100"},
      {"softmax_cross_entropy", "8,10:8", "(2,1),(2)"},
      {"softmax_cross_entropy_grad", "8,10:8:8:8", "(2,1),(2),(2),(2)"},
      {"pick", "8,10:8", "(2,1),(2)"},
      {"pick_grad", "8:8", "(2),(2)", "--results 8,10", "write --results 4,6"},
      {"attention", "2,4,6,3:2,4,6,3:2,4,6,3", "(2,1,1,1),(2,1,1,1),(2,1,1,1)"},
      {"attention_grad", "2,4,6,3:2,4,6,3:2,4,6,3:2,4,6,3:2,4,6:2,4,6,3",
       "(2,1,1,1),(2,1,1,1),(2,1,1,1),(2,1,1,1),(2,1,1),(2,1,1,1)"},
      {"rotary", "2,6,4:6,2:6,2", "(2,1,1),(1,1),(1,1)"},
      {"dropout", "8,4:", "(2,1),()"},
      {"random", "", "", "--results 8,4", "write --results 8,4"},
      {"constant", "", "", "--results 8,4", "write --results 8,4"},
      {"fill", "", "", "--results 8,4", "write --results 8,4"},
      {"iota", "", "", "--results 8,4", "write --results 8,4"},
      {"sgd", "8,4:8,4:8,4:", "(2,1),(2,1),(2,1),()"},
      {"adam", "8,4:8,4:8,4:8,4::", "(2,1),(2,1),(2,1),(2,1),(),()"},
      {"adam_direction", "8,4:8,4:8,4:", "(2,1),(2,1),(2,1),()"},
      {"rms_direction", "8,4:8,4", "(2,1),(2,1)"},
      {"lion_direction", "8,4:8,4", "(2,1),(2,1)"},
      {"descend", "8,4:8,4::", "(2,1),(2,1),(),()"}};
  return all;
}

std::vector<std::string> wordsOf(const OperatorLine& line, bool complete) {
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
    if (name.getDialectNamespace() == "nn" && name.hasInterface<ir::OperatorInterface>() &&
        name.stripDialect() != "custom") {
      known.insert(name.stripDialect().str());
    }
  }
  std::set<std::string> tested;
  for (const OperatorLine& line : lines()) {
    tested.insert(line.op);
  }
  EXPECT_EQ(tested, known);
}

TEST(StrategyCommand, EveryOperatorIsAccepted) {
  for (const OperatorLine& line : lines()) {
    const Outcome outcome = run(strategyCommand, wordsOf(line, true));
    EXPECT_EQ(outcome.status, 0) << line.op << ": " << outcome.err;
    EXPECT_THAT(outcome.out, HasSubstr("mesh 2, computed")) << line.op;
  }
}

TEST(StrategyCommand, WhatDoesNotFollowIsAskedFor) {
  for (const OperatorLine& line : lines()) {
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
