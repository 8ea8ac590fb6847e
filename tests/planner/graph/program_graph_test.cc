#include "planner/graph/program_graph.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

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

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Facts with a value of every kind in every field.
OperatorFacts fullFacts() {
  OperatorFacts facts = {"made_up", "a b -> a b, a b", {{0}}, true, true, true, ViewKind::kShape};
  facts.mustExpand = true;
  facts.flopsPerPoint = 2.0 / 49;
  facts.reduce = {ReduceKind::kSum, ReduceKind::kMax};
  facts.padFill = {std::nullopt};
  facts.attributes = {{"integer", int64_t{-7}},
                      {"largest", std::numeric_limits<int64_t>::max()},
                      {"whole", 3.0},
                      {"third", 1.0 / 3},
                      {"smallest", std::numeric_limits<double>::denorm_min()},
                      {"zero", -0.0},
                      {"least", -kInfinity},
                      {"text", std::string("inf")},
                      {"dims", std::vector<int64_t>{2, -1}},
                      {"none", std::vector<int64_t>{}},
                      {"scales", std::vector<double>{1, kInfinity, 0.1}},
                      {"no_scales", std::vector<double>{}}};
  return facts;
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
  graph.operators[1].alternatives[0].body[0].phase = Phase::kUpdate;
  graph.operators[1].alternatives[0].body[1].phase = Phase::kForward;
  graph.operators[1].strategy = UserStrategy{false, {{2, 1}, {}}, {{1}}, {}, {}, {}};
  graph.results[0].updates = 1;
  const absl::StatusOr<ProgramGraph> again = parseProgramGraph(printProgramGraph(graph));
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(*again, graph);
}

TEST(ProgramGraphJson, FactsKeepTheirTypesAndBits) {
  GraphBuilder b;
  const GraphValue x = b.input("x", {8, 4});
  b.add(fullFacts(), {x}, {8, 4});
  b.last().results.push_back(b.last().results[0]);
  b.last().alternatives = {{{{fullFacts(), {{GraphValue::kArgument, 0}}, b.last().results}}, {{0, 0}, {0, 1}}}};
  const absl::StatusOr<ProgramGraph> again = parseProgramGraph(printProgramGraph(b.graph));
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(*again, b.graph);
  EXPECT_TRUE(std::signbit(std::get<double>(again->operators[0].facts.attributes.at("zero"))));
  EXPECT_EQ(again->operators[0].facts.padFillOf(0), std::nullopt);
  EXPECT_EQ(again->operators[0].facts.reduceOf(1), ReduceKind::kMax);
}

TEST(ProgramGraphJson, NanComesBack) {
  GraphBuilder b;
  const GraphValue x = b.input("x", {8, 4});
  OperatorFacts facts = {"fill", "a b -> a b"};
  facts.attributes = {{"value", std::nan("")}, {"values", std::vector<double>{std::nan("")}}};
  b.add(facts, {x}, {8, 4});
  const absl::StatusOr<ProgramGraph> again = parseProgramGraph(printProgramGraph(b.graph));
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(*again, b.graph);
  const AttributeMap& attributes = again->operators[0].facts.attributes;
  EXPECT_TRUE(std::isnan(std::get<double>(attributes.at("value"))));
  EXPECT_TRUE(std::isnan(std::get<std::vector<double>>(attributes.at("values"))[0]));
}

TEST(OperatorFacts, AnyOtherValueIsAnotherFact) {
  std::vector<OperatorFacts> all(12, fullFacts());
  all[1].flopsPerPoint = 1;
  all[2].view = ViewKind::kNone;
  all[3].reduce = {};
  all[4].padFill = {1.0};
  all[5].padFill = {};
  all[6].attributes["integer"] = 3.0;
  all[7].attributes["third"] = std::nan("");
  all[8].attributes["scales"] = std::vector<double>{1, kInfinity};
  all[9].attributes["text"] = std::string("nan");
  all[10].attributes.erase("dims");
  all[11].attributes["dims"] = std::vector<int64_t>{2, 1};
  for (size_t i = 0; i < all.size(); ++i) {
    for (size_t k = 0; k < all.size(); ++k) {
      EXPECT_EQ(all[i] == all[k], i == k) << i << " " << k;
    }
  }
}

// What an operator does not list holds the default, which files leave out.
TEST(ProgramGraphJson, DefaultsOfFactsAreNotWritten) {
  const std::string text = printProgramGraph(softmaxProgram());
  for (const char* name : {"view", "flops_per_point", "attributes", "reduce", "pad_fill"}) {
    EXPECT_THAT(text, ::testing::Not(HasSubstr(name)));
  }
  EXPECT_EQ(OperatorFacts().reduceOf(3), ReduceKind::kSum);
  EXPECT_EQ(OperatorFacts().padFillOf(3), 0.0);
}

TEST(ProgramGraphJson, ErrorsNameTheFact) {
  const auto with = [](const std::string& field) {
    std::string text = printProgramGraph(softmaxProgram());
    const std::string kind = R"("kind": "softmax",)";
    return errorOf(text.replace(text.find(kind), kind.size(), kind + field + ","));
  };
  EXPECT_THAT(with(R"("view": "shap")"), HasSubstr("operators[1].view: found 'shap', expected one of none, shape"));
  EXPECT_THAT(with(R"("flops_per_point": -1)"), HasSubstr("operators[1].flops_per_point: found -1"));
  EXPECT_THAT(with(R"("flops_per_point": "inf")"), HasSubstr("operators[1].flops_per_point"));
  EXPECT_THAT(with(R"("reduce": ["sum", "least"])"), HasSubstr("operators[1].reduce[1]: found 'least'"));
  EXPECT_THAT(with(R"("reduce": ["max", "max"])"),
              HasSubstr("operator 1: reduce: found 2 entries, expected at most 1"));
  EXPECT_THAT(with(R"("pad_fill": [0.0, "infinity"])"), HasSubstr("operators[1].pad_fill[1]: found \"infinity\""));
  EXPECT_THAT(with(R"("pad_fill": [null, null])"), HasSubstr("operator 1: pad_fill: found 2 entries"));
  EXPECT_THAT(with(R"("attributes": {"dims": [1, 2.5]})"), HasSubstr("operators[1].attributes.dims[1]: found 2.5"));
  EXPECT_THAT(with(R"("attributes": {"on": true})"), HasSubstr("operators[1].attributes.on: found true"));
  EXPECT_THAT(with(R"("attributes": {"a": 9223372036854775808})"), HasSubstr("operators[1].attributes.a: found"));
  EXPECT_THAT(with(R"("attributes": {"a": {"real": "x"}})"), HasSubstr("operators[1].attributes.a.real: found \"x\""));
  EXPECT_THAT(with(R"("attributes": {"a": {"reals": [null]}})"), HasSubstr("operators[1].attributes.a.reals[0]"));
  EXPECT_THAT(with(R"("attributes": {"a": {"raels": []}})"), HasSubstr("operators[1].attributes.a"));
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
  EXPECT_THAT(changed("\"kind\": \"exp\"", "\"kind\": \"exp\", \"phase\": \"late\""),
              HasSubstr("alternatives[0].body[0].phase"));
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

TEST(Rewrites, WhatAnAlternativeSaysOfItsOperatorsStays) {
  ProgramGraph graph = softmaxProgram();
  graph.operators[1].alternatives[0].body[1].phase = Phase::kUpdate;
  ASSERT_TRUE(takeAlternative(graph, 1).ok());
  EXPECT_EQ(graph.operators[1].phase, Phase::kForward);
  EXPECT_EQ(graph.operators[2].phase, Phase::kUpdate);
}

// Of exp, the sum of its result and their quotient only exp reads x, and only the division makes the result.
TEST(Rewrites, AStrategyCountsForWhatReadsAndMakesInItsPlace) {
  ProgramGraph graph = softmaxProgram();
  graph.operators[1].strategy = UserStrategy{false, {{2, 1}}, {{1, 2}}, {}, {}, {"model.cc", 5, 6}};
  ProgramGraph later = graph;
  ASSERT_TRUE(takeAlternative(graph, 1).ok());
  EXPECT_EQ(graph.operators[1].strategy, (UserStrategy{false, {{2, 1}}, {}, {}, {}, {"model.cc", 5, 6}}));
  EXPECT_EQ(graph.operators[2].strategy, std::nullopt);
  EXPECT_EQ(graph.operators[3].strategy, (UserStrategy{false, {}, {{1, 2}}, {}, {}, {"model.cc", 5, 6}}));
  later.operators[1].alternatives[0].body[0].phase = Phase::kUpdate;
  ASSERT_TRUE(takeAlternative(later, 1).ok());
  EXPECT_EQ(later.operators[1].strategy, std::nullopt) << "the update is not what the user speaks of";
}

// Its gradient becomes that of the operator that makes the result.
TEST(Rewrites, TheGradientOfWhatMustBeExpandedFollows) {
  ProgramGraph graph = softmaxProgram();
  graph.operators[2].forward = 1;
  ProgramGraph required = graph;
  required.operators[1].facts.mustExpand = true;
  ASSERT_TRUE(takeAlternative(graph, 1).ok());
  EXPECT_EQ(graph.operators[4].forward, 1);
  ASSERT_TRUE(takeAlternative(required, 1).ok());
  EXPECT_EQ(required.operators[4].forward, required.operators[3].id);
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
