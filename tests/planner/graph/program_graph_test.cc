#include "planner/graph/program_graph.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "planner/graph/graph_json.h"
#include "planner/graph/graph_view.h"
#include "planner/graph/rewrites.h"
#include "tests/planner/graph/graph_builder.h"

namespace weft::testing {
namespace {

using ::testing::HasSubstr;

// softmax(x w), whose alternative is exp and a division by the sum over rows; its sum is returned.
ProgramGraph softmaxProgram() {
  GraphBuilder b;
  const GraphValue x = b.input("x", {8, 4});
  const GraphValue w = b.parameter("w", {4, 6});
  const GraphValue y = b.add(kMatmul, {x, w}, {8, 6});
  const GraphValue s = b.add(kSoftmax, {y}, {8, 6});
  Alternative alternative;
  alternative.body = {{{"exp", "a v -> a v"}, {{GraphValue::kArgument, 0}}, {{{8, 6}, DType::kF32}}},
                      {{"row_sum", "a v+ -> a"}, {{0, 0}}, {{{8}, DType::kF32}}},
                      {{"div_rows", "a v, a -> a v"}, {{0, 0}, {1, 0}}, {{{8, 6}, DType::kF32}}}};
  alternative.results = {{2, 0}};
  b.last().alternatives = {alternative};
  b.last().forward = 7;
  b.last().userStage = 1;
  b.last().recomputeScope = 3;
  b.returns(b.add(kSumAll, {s}, {}));
  return b.graph;
}

std::string errorOf(const std::string& text) {
  return std::string(parseProgramGraph(text).status().message());
}

TEST(ProgramGraphJson, ReadsWhatItPrints) {
  ProgramGraph graph = softmaxProgram();
  graph.line = {"a b.cc", 3, 4};
  graph.arguments[0].batchDim = -1;
  graph.arguments[1].layout = "[{tp},{}]";
  GraphOperator& op = graph.operators[0];
  op.phase = Phase::kUpdate;
  op.prologueOf = 4;
  op.gradientOf = "w";
  op.facts.updatesParameter = true;
  op.constraint = "[{dp},{}]";
  op.strategy = UserStrategy{true, {}, {}, {{"dp,tp", ""}, {}}, {{"", ""}}, {"model.cc", 5, 6}};
  graph.operators[1].strategy = UserStrategy{false, {{2, 1}, {}}, {{1}}, {}, {}, {}};
  graph.results[0].updates = 1;
  const absl::StatusOr<ProgramGraph> again = parseProgramGraph(printProgramGraph(graph));
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(*again, graph);
}

TEST(ProgramGraphJson, ErrorsNameTheEntry) {
  EXPECT_THAT(errorOf("[]"), HasSubstr("expected an object"));
  const auto changed = [](const std::string& from, const std::string& to) {
    std::string text = printProgramGraph(softmaxProgram());
    const size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    return errorOf(text.replace(at, from.size(), to));
  };
  EXPECT_THAT(changed("f32[8,4]", "f32[8,0]"), HasSubstr("arguments[0].type: found \"f32[8,0]\", expected a type"));
  EXPECT_THAT(changed("f32[8,4]", "f32[99999999999,99999999999]"), HasSubstr("arguments[0].type"));
  EXPECT_THAT(changed("f32[8,4]", "f32[8,,4]"), HasSubstr("arguments[0].type"));
  EXPECT_THAT(changed("\"input\"", "\"inptu\""), HasSubstr("found 'inptu', expected one of input, parameter, state"));
  EXPECT_THAT(changed("\"%0\"", "\"%9\""), HasSubstr("operator 0 reads %9, which nothing before it makes"));
  EXPECT_THAT(changed("\"0#0\"", "\"2#0\""), HasSubstr("operator 1 reads 2#0"));
  EXPECT_THAT(changed("\"0#0\"", "\"0#1\""), HasSubstr("operator 1 reads 0#1"));
  EXPECT_THAT(changed("\"id\": 1", "\"id\": 0"), HasSubstr("operator 0 stands there twice"));
  EXPECT_THAT(changed("\"next_id\": 3", "\"next_id\": 2"), HasSubstr("there is an operator 2"));
  EXPECT_THAT(changed("\"kind\": \"exp\"", "\"knid\": \"exp\""), HasSubstr("alternatives[0].body[0]"));
}

TEST(GraphView, NumbersValuesAndUses) {
  const ProgramGraph graph = softmaxProgram();
  const GraphView view(graph);
  EXPECT_EQ(view.values(), 5);  // x, w and three results
  EXPECT_EQ(view.producerOf(1), std::nullopt);
  EXPECT_EQ(view.producerOf(view.resultOf(1, 0)), 1);
  EXPECT_EQ(view.typeOf(view.operandOf(0, 1)).shape, Shape({4, 6}));
  ASSERT_EQ(view.usesOf(view.resultOf(2, 0)).size(), 1U);
  EXPECT_EQ(view.usesOf(view.resultOf(2, 0))[0].op, GraphView::kStep);
  EXPECT_EQ(view.find(2), 2);
  EXPECT_EQ(view.find(3), std::nullopt);
}

TEST(Rewrites, AnAlternativeTakesThePlaceAndTheMarks) {
  ProgramGraph graph = softmaxProgram();
  ASSERT_TRUE(takeAlternative(graph, 1).ok());
  ASSERT_EQ(graph.operators.size(), 5U);
  const GraphOperator& exp = graph.operators[1];
  EXPECT_EQ(exp.id, 3);
  EXPECT_EQ(exp.operands, (std::vector<GraphValue>{{0, 0}}));
  EXPECT_EQ(exp.forward, 7);
  EXPECT_EQ(exp.userStage, 1);
  EXPECT_EQ(exp.recomputeScope, 3);
  EXPECT_EQ(exp.name, "op1");
  const GraphOperator& division = graph.operators[3];
  EXPECT_EQ(division.operands, (std::vector<GraphValue>{{3, 0}, {4, 0}}));
  EXPECT_EQ(graph.operators[4].operands, (std::vector<GraphValue>{{division.id, 0}}));
  EXPECT_EQ(graph.nextId, 6);
  EXPECT_THAT(std::string(takeAlternative(graph, 0).message()), HasSubstr("operator 0 has no expansion"));
}

// count = sum(mask) is read by an operator of every micro-batch.
TEST(Rewrites, ThePrologueGetsCopiesEachOnce) {
  GraphBuilder b;
  const GraphValue mask = b.input("mask", {8, 4});
  const GraphValue relu = b.add(kRelu, {mask}, {8, 4});
  const GraphValue count = b.add(kSumAll, {relu}, {});
  const OperatorFacts scale = {"scale", "a b, -> a b"};
  const GraphValue y = b.add(scale, {mask, count}, {8, 4});
  b.returns(b.add(scale, {y, count}, {8, 4}));
  ProgramGraph graph = b.graph;
  ASSERT_TRUE(hoistToPrologue(graph, {Rewrite::kPrologue, 2, 1}).ok());
  ASSERT_TRUE(hoistToPrologue(graph, {Rewrite::kPrologue, 3, 1}).ok());
  eraseUnused(graph);
  ASSERT_EQ(graph.operators.size(), 4U);
  EXPECT_EQ(graph.operators[0].prologueOf, 0);
  EXPECT_EQ(graph.operators[1].prologueOf, 1);
  EXPECT_EQ(graph.operators[1].operands, (std::vector<GraphValue>{{graph.operators[0].id, 0}}));
  EXPECT_EQ(graph.operators[2].operands[1], (GraphValue{graph.operators[1].id, 0}));
  EXPECT_EQ(graph.operators[3].operands[1], (GraphValue{graph.operators[1].id, 0}));
  EXPECT_EQ(graph.nextId, 6);
}

TEST(Rewrites, ThePrologueReadsNoParameter) {
  GraphBuilder b;
  const GraphValue w = b.parameter("w", {8, 4});
  b.returns(b.add(kSumAll, {w}, {}));
  const absl::Status status = hoistToPrologue(b.graph, {Rewrite::kPrologue, 0, 0});
  EXPECT_THAT(std::string(status.message()), HasSubstr("it depends on parameter 'w'; use micro = 1"));
  EXPECT_EQ(sourcePlaceOf(status), (SourcePlace{"model.cc", 10, 1}));
  EXPECT_THAT(std::string(hoistToPrologue(b.graph, {Rewrite::kPrologue, 0, 5}).message()),
              HasSubstr("no operand 5 of operator 0"));
}

TEST(ErrorAt, ThePlaceComesBack) {
  const SourcePlace place = {"dir/a:b.cc", 7, 2};
  EXPECT_EQ(sourcePlaceOf(errorAt(place, "wrong")), place);
  EXPECT_EQ(sourcePlaceOf(absl::InvalidArgumentError("wrong")), SourcePlace());
}

}  // namespace
}  // namespace weft::testing
