#include "planner/derive/propagation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "planner/derive/strategies.h"
#include "tests/planner/graph/graph_builder.h"

namespace weft::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// One round of propagation over a graph on one mesh.
class Spread {
 public:
  Spread(const ProgramGraph& graph, const std::string& mesh, const std::map<std::string, std::string>& layouts = {})
      : view_(graph), mesh_(*Mesh::parse(mesh)), settled_(settle(graph)), shardings_(*openShardings(settled_)) {
    const std::vector<std::pair<std::string, std::string>> patterns(layouts.begin(), layouts.end());
    status = readUserWords(settled_, UserLayouts(graph, patterns), shardings_);
    Propagation propagation(settled_, shardings_);
    propagation.hearParameters();
    for (const Phase phase : {Phase::kForward, Phase::kBackward, Phase::kUpdate}) {
      propagation.run(phase);
    }
  }

  // The axes of a factor of an operator: "dp", "" not split, "open".
  std::string axes(int op, const std::string& factor) const {
    const OperatorSharding& sharding = shardings_.operators[op];
    const auto& axes = sharding.axes[sharding.rule.factorIndex(factor)];
    if (!axes) {
      return "open";
    }
    std::string text;
    for (const Axis& axis : *axes) {
      text += (text.empty() ? "" : ",") + mesh_.name(axis);
    }
    return text;
  }
  const Shardings& shardings() const { return shardings_; }

  absl::Status status;

 private:
  SettledGraph settle(const ProgramGraph&) const {
    const std::vector<int64_t> stages(view_.operators(), 0);
    return {view_,
            {stages, {{mesh_}, {0}}},
            *analyzeMicroBatches(view_, stages, mesh_.microBatches()),
            StoredShapes(view_)};
  }

  GraphView view_;
  Mesh mesh_;
  SettledGraph settled_;
  Shardings shardings_;
};

// relu(x w)
GraphBuilder twoOperators() {
  GraphBuilder b;
  const GraphValue x = b.input("x", {8, 4});
  const GraphValue w = b.parameter("w", {4, 6});
  b.returns(b.add(kRelu, {b.add(kMatmul, {x, w}, {8, 6})}, {8, 6}));
  return b;
}

TEST(Propagation, FlowsFromOperandsToResults) {
  GraphBuilder b = twoOperators();
  b.graph.arguments[0].layout = "[{dp},{}]";
  const Spread spread(b.graph, "dp=2,tp=2", {{"w", "[{},{tp}]"}});
  EXPECT_EQ(spread.axes(0, "m"), "dp");
  EXPECT_EQ(spread.axes(0, "n"), "tp");
  EXPECT_EQ(spread.axes(0, "k"), "open");
  EXPECT_EQ(spread.axes(1, "a"), "dp");
  EXPECT_EQ(spread.axes(1, "b"), "tp");
  EXPECT_EQ(spread.shardings().operators[1].origin, "operand 0");
}

TEST(Propagation, FlowsFromReadersToOperands) {
  GraphBuilder b = twoOperators();
  b.graph.operators[1].constraint = "[{dp},{tp}]";
  const Spread spread(b.graph, "dp=2,tp=2");
  EXPECT_EQ(spread.axes(0, "m"), "dp");
  EXPECT_EQ(spread.axes(0, "n"), "tp");
  EXPECT_EQ(spread.shardings().operators[0].origin, "reader op1");
}

TEST(Propagation, TheLargerOperandIsHeardFirst) {
  GraphBuilder b;
  const GraphValue x = b.input("x", {8, 4});
  const GraphValue w = b.parameter("w", {4, 64});
  b.returns(b.add(kMatmul, {x, w}, {8, 64}));
  b.graph.arguments[0].layout = "[{tp},{}]";
  const Spread spread(b.graph, "tp=2", {{"w", "[{},{tp}]"}});
  EXPECT_EQ(spread.axes(0, "n"), "tp");
  EXPECT_EQ(spread.axes(0, "m"), "open") << "the axis is used";
}

TEST(Propagation, TheUserIsHeardBeforeEdgesAndTheConflictIsNotedOnce) {
  GraphBuilder b = twoOperators();
  b.graph.arguments[0].layout = "[{dp},{}]";
  b.graph.operators[0].strategy = UserStrategy{true, {}, {}, {{"tp", ""}, {"", ""}}, {}, {"model.cc", 30, 1}};
  const Spread spread(b.graph, "dp=2,tp=2");
  EXPECT_EQ(spread.axes(0, "m"), "tp");
  EXPECT_EQ(spread.axes(1, "a"), "tp");
  EXPECT_THAT(spread.shardings().conflicts, ElementsAre("op0 factor m: [{tp}] (user) against [{dp}] from operand 0"));
}

TEST(Propagation, BackwardStartsWithItsForwardOperator) {
  GraphBuilder b = twoOperators();
  const GraphValue dy = b.input("dy", {8, 6});
  b.returns(b.add({"contract", "m k, m n+ -> k n"}, {{GraphValue::kArgument, 0}, dy}, {4, 6}));
  b.last().facts.rule = "m+ k, m+ n -> k n";
  b.last().phase = Phase::kBackward;
  b.last().forward = 0;
  b.graph.operators[0].strategy = UserStrategy{true, {}, {}, {{"dp", ""}, {"", "tp"}}, {}, {}};
  const Spread spread(b.graph, "dp=2,tp=2");
  EXPECT_EQ(spread.axes(2, "m"), "dp");
  EXPECT_EQ(spread.axes(2, "n"), "tp");
  EXPECT_EQ(spread.shardings().operators[2].origin, "forward operator op0");
}

TEST(Propagation, WhatDoesNotDivideStaysOpen) {
  GraphBuilder b = twoOperators();
  b.graph.operators[0].results[0].shape = b.graph.operators[1].results[0].shape = {8, 5};
  b.graph.arguments[1].type.shape = {4, 5};
  b.graph.arguments[0].layout = "[{},{tp}]";
  const Spread spread(b.graph, "tp=4");
  EXPECT_EQ(spread.axes(0, "k"), "tp") << "4 divides";
  EXPECT_EQ(spread.axes(1, "b"), "open");
}

TEST(Propagation, TheBatchIsCutIntoMicroBatchesBeside) {
  GraphBuilder b = twoOperators();
  b.graph.arguments[0].layout = "[{dp},{}]";
  EXPECT_EQ(Spread(b.graph, "dp=4,micro=2").axes(0, "m"), "dp");
  EXPECT_EQ(Spread(b.graph, "dp=4,micro=4").axes(0, "m"), "open") << "8 rows in 16 parts";
}

TEST(Propagation, AWholeFactorAsksForTheAlternative) {
  GraphBuilder b;
  const GraphValue x = b.input("x", {8, 4});
  b.returns(b.add(kSoftmax, {x}, {8, 4}));
  b.graph.arguments[0].layout = "[{},{tp}]";
  EXPECT_THAT(Spread(b.graph, "tp=2").shardings().expansions, IsEmpty()) << "it has none";
  b.last().alternatives = {{{{kRelu, {{GraphValue::kArgument, 0}}, {{{8, 4}, DType::kF32}}}}, {{0, 0}}}};
  const Spread spread(b.graph, "tp=2");
  EXPECT_THAT(spread.shardings().expansions, ElementsAre(0));
  EXPECT_EQ(spread.axes(0, "v"), "open");
}

// A minor factor of a compound dimension is split only where the major one is split to the end.
TEST(Propagation, PartsOfACompoundDimensionStayInOneBlock) {
  GraphBuilder b;
  const GraphValue x = b.input("x", {4, 6});
  b.returns(b.add({"reshape", "a b -> (a b)"}, {x}, {24}));
  b.graph.arguments[0].layout = "[{},{tp}]";
  EXPECT_EQ(Spread(b.graph, "tp=2").axes(0, "b"), "open");
  b.graph.arguments[0].layout = "[{dp},{tp}]";
  EXPECT_EQ(Spread(b.graph, "dp=4,tp=2").axes(0, "b"), "tp");
}

TEST(UserWords, ErrorsStandAtTheShardCall) {
  GraphBuilder b = twoOperators();
  b.graph.operators[0].strategy = UserStrategy{false, {{3, 1}, {1, 1}}, {}, {}, {}, {"model.cc", 30, 1}};
  const Spread spread(b.graph, "4");
  EXPECT_EQ(sourcePlaceOf(spread.status), (SourcePlace{"model.cc", 30, 1}));
  EXPECT_THAT(std::string(spread.status.message()), HasSubstr("op0: "));
  b.graph.operators[0].strategy = UserStrategy{true, {}, {}, {{"dp", ""}}, {}, {"model.cc", 31, 1}};
  EXPECT_THAT(std::string(Spread(b.graph, "dp=2").status.message()),
              HasSubstr("the strategy has 1 operands, the operator 2; give one list of axis names per operand"));
}

}  // namespace
}  // namespace weft::testing
