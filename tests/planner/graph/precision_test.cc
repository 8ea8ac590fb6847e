// Programs with 16-bit values: which values they are, and what a parameter costs.

#include "planner/graph/precision.h"

#include <gtest/gtest.h>

#include "planner/cost/step_model.h"
#include "planner/derive/derive.h"
#include "planner/graph/graph_view.h"
#include "planner/request.h"
#include "tests/planner/graph/graph_builder.h"

namespace weft::testing {
namespace {

constexpr int64_t kWidth = 256;

// loss = sum(norm(x w)) with the gradients and the update of w by Adam; norm has statistics.
GraphBuilder program() {
  GraphBuilder b;
  const Shape rows = {64, kWidth};
  const Shape weight = {kWidth, kWidth};
  const GraphValue x = b.input("x", rows);
  const GraphValue w = b.parameter("w", weight);
  const GraphValue m = b.state("m.w", weight);
  const GraphValue v = b.state("v.w", weight);
  OperatorFacts matmul = kMatmul;
  matmul.flopsPerPoint = 2;
  const GraphValue h = b.add(matmul, {x, w}, rows);
  const GraphValue y = b.add({"norm", "a c! -> a c, a"}, {h}, rows);
  b.last().results.push_back({{64}, DType::kF32});
  const int64_t norm = b.last().id;
  OperatorFacts sum = kSumAll;
  sum.flopsPerPoint = 1;
  b.returns(b.add(sum, {y}, {}));
  const int64_t loss = b.last().id;
  const auto backward = [&](int64_t of) {
    b.last().phase = Phase::kBackward;
    b.last().forward = of;
  };
  const GraphValue dy = b.add({"broadcast", "-> a b"}, {}, rows);
  backward(loss);
  const GraphValue dh = b.add({"norm_grad", "a c!, a, a c! -> a c", {{2}}}, {h, {norm, 1}, dy}, rows);
  backward(norm);
  const GraphValue product = b.add({"contract", "m+ k, m+ n -> k n", {{0}, {1}}}, {x, dh}, weight);
  b.last().facts.flopsPerPoint = 2;
  backward(h.producer);
  OperatorFacts view = {"reshape", "a b -> a b", {{0}}, /*passesSums=*/true};
  view.view = ViewKind::kShape;
  const GraphValue dw = b.add(view, {product}, weight);
  backward(h.producer);
  const GraphValue finished = b.add({"constrain", "a b -> a b", {{0}}}, {dw}, weight);
  b.last().facts.view = ViewKind::kAnnotation;
  b.last().phase = Phase::kUpdate;
  b.last().gradientOf = "w";
  const GraphValue updated =
      b.add({.kind = "adam", .rule = "a b, a b, a b, a b -> a b, a b, a b", .updatesParameter = true},
            {w, finished, m, v}, weight);
  b.last().phase = Phase::kUpdate;
  b.last().results.resize(3, b.last().results[0]);
  b.updates(w, updated);
  b.updates(m, {updated.producer, 1});
  b.updates(v, {updated.producer, 2});
  return b;
}

TEST(Precision, ValuesAreNarrowButForSumsAndStatistics) {
  const absl::StatusOr<ProgramGraph> narrow = inPrecision(program().graph, DType::kBF16);
  ASSERT_TRUE(narrow.ok()) << narrow.status();
  std::string types;
  for (const GraphArgument& argument : narrow->arguments) {
    types += argument.name + " " + dtypeName(argument.type.type) + "\n";
  }
  for (const GraphOperator& op : narrow->operators) {
    types += op.facts.kind;
    for (const TensorType& result : op.results) {
      types += " " + dtypeName(result.type);
    }
    types += "\n";
  }
  EXPECT_EQ(types,
            "x f32\nw bf16\nm.w f32\nv.w f32\nmaster.w f32\n"
            "matmul bf16\nnorm bf16 f32\nsum f32\nbroadcast bf16\nnorm_grad bf16\ncontract f32\nreshape f32\n"
            "constrain f32\nadam f32 f32 f32\ncast bf16\n");
}

TEST(Precision, TheUpdateWritesMasterAndParameter) {
  const ProgramGraph graph = program().graph;
  const absl::StatusOr<ProgramGraph> narrow = inPrecision(graph, DType::kF16);
  ASSERT_TRUE(narrow.ok()) << narrow.status();
  const GraphOperator& adam = narrow->operators[narrow->operators.size() - 2];
  const GraphOperator& cast = narrow->operators.back();
  EXPECT_EQ(adam.operands[0], (GraphValue{GraphValue::kArgument, 4})) << "the master";
  EXPECT_EQ(cast.operands[0], (GraphValue{adam.id, 0}));
  EXPECT_EQ(cast.id, graph.nextId) << "no other operator has its id";
  const GraphResult parameter = {{cast.id, 0}, 1};
  EXPECT_EQ(narrow->results[1], parameter);
  const GraphResult master = {{adam.id, 0}, 4};
  EXPECT_EQ(narrow->results.back(), master);
}

// A norm over the batch and its gradient, which exist only to be expanded: what passes between them has a row for each
// of two micro-batches once they are.
TEST(Precision, WhatIsExpandedReadsWhatComesOfTheExpansionOfOthers) {
  const Shape rows = {8, 4};
  const TensorType wide = {rows, DType::kF32}, statistic = {{2, 4}, DType::kF32};
  const auto operand = [](unsigned index) { return GraphValue{GraphValue::kArgument, index}; };
  GraphBuilder b;
  const GraphValue x = b.add(kRelu, {b.input("x", rows), b.parameter("w", rows)}, rows);
  b.last().facts.rule = "a c, a c -> a c";
  const GraphValue y = b.add({.kind = "norm", .rule = "a c -> a c, c", .mustExpand = true}, {x}, rows);
  b.last().results.push_back({{4}, DType::kF32});
  AlternativeOperator mean = {{"mean", "a+ c -> p~ c"}, {operand(0)}, {statistic}};
  mean.facts.flopsPerPoint = 1;
  b.last().alternatives = {{{mean, {{"scale", "a c, p~ c -> a c"}, {operand(0), {0, 0}}, {wide}}}, {{1, 0}, {0, 0}}}};
  const GraphValue dx =
      b.add({.kind = "norm_grad", .rule = "a c, c -> a c", .mustExpand = true}, {y, {y.producer, 1}}, rows);
  AlternativeOperator dot = {{"dot", "a+ c, p~ c -> p~ c"}, {operand(0), operand(1)}, {statistic}};
  dot.facts.flopsPerPoint = 1;
  b.last().alternatives = {{{dot, {{"scale", "a c, p~ c -> a c"}, {operand(0), {0, 0}}, {wide}}}, {{1, 0}}}};
  b.returns(dx);
  const absl::StatusOr<ProgramGraph> narrow = inPrecision(b.graph, DType::kBF16);
  ASSERT_TRUE(narrow.ok()) << narrow.status();
  for (const size_t op : {1, 2}) {
    const std::vector<AlternativeOperator>& body = narrow->operators[op].alternatives[0].body;
    EXPECT_EQ(body[0].results[0], statistic);
    EXPECT_EQ(body[1].results[0], (TensorType{rows, DType::kBF16}));
  }
}

// An optimizer of several operators (a norm of the parameter, then a step): all read one master.
TEST(Precision, EveryReaderInTheUpdateReadsTheMaster) {
  GraphBuilder b;
  const GraphValue w = b.parameter("w", {kWidth});
  const GraphValue finished = b.add({"constrain", "a -> a", {{0}}}, {w}, {kWidth});
  b.last().phase = Phase::kUpdate;
  b.last().gradientOf = "w";
  const GraphValue norm = b.add({"sum_squares", "a+ ->"}, {w}, {});
  b.last().phase = Phase::kUpdate;
  const GraphValue updated =
      b.add({.kind = "descend", .rule = "a, a, -> a", .updatesParameter = true}, {w, finished, norm}, {kWidth});
  b.last().phase = Phase::kUpdate;
  b.updates(w, updated);
  const absl::StatusOr<ProgramGraph> narrow = inPrecision(b.graph, DType::kBF16);
  ASSERT_TRUE(narrow.ok()) << narrow.status();
  ASSERT_EQ(narrow->arguments.size(), 2U);
  const GraphValue master = {GraphValue::kArgument, 1};
  EXPECT_EQ(narrow->operators[1].operands[0], master);
  EXPECT_EQ(narrow->operators[2].operands[0], master);
  EXPECT_EQ(narrow->operators[3].facts.kind, "cast");
  const GraphResult replaced = {{updated.producer, 0}, 1};
  EXPECT_EQ(narrow->results.back(), replaced);
}

// Bytes that a rank keeps of all parameters, gradients and states, for each parameter.
double bytesPerParameter(const ProgramGraph& program, int64_t zero, const std::string& mesh) {
  CompileOptions request;
  request.mesh = mesh;
  request.zero = static_cast<int>(zero);
  request.regather = zero == 3;  // no copy of the whole parameter is kept
  request.micro = 4;             // so that gradients are accumulated
  ProgramGraph graph = program;
  const absl::StatusOr<Derivation> derived = deriveDecisions(graph, request, {});
  EXPECT_TRUE(derived.ok()) << derived.status();
  const auto model = StepModel::create(graph, derived->decisions, Machine(), {});
  EXPECT_TRUE(model.ok()) << model.status();
  const absl::StatusOr<StepNeeds> needs = (*model)->needs(derived->decisions);
  EXPECT_TRUE(needs.ok()) << needs.status();
  int64_t bytes = 0;
  for (const StepRegion& region : needs->submeshes[0].regions) {
    const bool kept =
        region.memory == plan::PARAMETER || region.memory == plan::STATE || region.memory == plan::ACCUMULATOR;
    bytes += kept ? region.bytes : 0;
  }
  return static_cast<double>(bytes) / (kWidth * kWidth);
}

// Rajbhandari et al., "ZeRO" (2020), section 5, for states of K bytes: with f32 gradients K is 12 of 18, without
// masters 8 of 16. Level 1 splits the states, 2 the gradients, 3 the parameters.
TEST(Precision, BytesOfAParameterAreThePublishedOnes) {
  const ProgramGraph wide = program().graph;
  const ProgramGraph narrow = *inPrecision(wide, DType::kBF16);
  constexpr double kLoss = 0.002;  // the loss is accumulated, too
  for (const double d : {1.0, 2.0, 8.0}) {
    const std::string mesh = "dp=" + std::to_string(static_cast<int>(d));
    EXPECT_NEAR(bytesPerParameter(wide, 0, mesh), 4 + 4 + 8, kLoss);
    EXPECT_NEAR(bytesPerParameter(narrow, 0, mesh), 2 + 4 + 12, kLoss);
    EXPECT_NEAR(bytesPerParameter(wide, 1, mesh), 4 + 4 + 8 / d, kLoss);
    EXPECT_NEAR(bytesPerParameter(narrow, 1, mesh), 2 + 4 + 12 / d, kLoss);
    EXPECT_NEAR(bytesPerParameter(wide, 2, mesh), 4 + (4 + 8) / d, kLoss);
    EXPECT_NEAR(bytesPerParameter(narrow, 2, mesh), 2 + (4 + 12) / d, kLoss);
    EXPECT_NEAR(bytesPerParameter(wide, 3, mesh), (4 + 4 + 8) / d, kLoss);
    EXPECT_NEAR(bytesPerParameter(narrow, 3, mesh), (2 + 4 + 12) / d, kLoss);
  }
}

// Products take the machine's rate for what they multiply, which is 16-bit where the result is f32, too.
TEST(Precision, ProductsRunAtTheRateOfTheirOperands) {
  ProgramGraph graph = *inPrecision(program().graph, DType::kBF16);
  const Machine machine =
      *Machine::parse("flops = 1e9\nflops_bf16 = 1.6e10\nmemory_bandwidth = 1e15\nlaunch_latency = 0");
  const absl::StatusOr<Derivation> derived = deriveDecisions(graph, CompileOptions{.mesh = "dp=1"}, {});
  ASSERT_TRUE(derived.ok()) << derived.status();
  const auto model = StepModel::create(graph, derived->decisions, machine, {});
  ASSERT_TRUE(model.ok()) << model.status();
  int products = 0;
  for (const AnnotatedOp& op : (*model)->step().ops) {
    const std::string kind = op.op < 0 ? "" : (*model)->view().op(op.op).facts.kind;
    if (kind == "matmul" || kind == "contract") {
      EXPECT_EQ((*model)->prices().kernel((*model)->step(), op)->time,
                picosecondsOf(2.0 * 64 * kWidth * kWidth / 1.6e10));
      ++products;
    }
  }
  EXPECT_EQ(products, 2);
}

}  // namespace
}  // namespace weft::testing
