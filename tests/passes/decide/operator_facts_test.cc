// The facts of every operator against what its dialect entry says of it at local sizes.
#include <gtest/gtest.h>

#include <limits>
#include <set>

#include "ir/nn/operator_interface.h"
#include "ir/program/program.h"
#include "kernels/describe/describe.h"
#include "mlir/Pass/PassManager.h"
#include "passes/decide/build_program_graph.h"
#include "passes/passes.h"
#include "passes/plan/instruction_facts.h"
#include "planner/graph/flops.h"
#include "planner/graph/graph_view.h"
#include "tests/passes/logical/gradient_cases.h"
#include "tests/support/expand.h"
#include "tests/support/parse.h"

namespace weft::testing {
namespace {

// What no gradient case holds.
constexpr char kOthers[] = R"(
func.func @step(%x: tensor<4x6xf32> {nn.kind = "parameter", nn.name = "x"},
                %n: tensor<i64> {nn.kind = "state", nn.name = "n"}) -> () {
  %lr = nn.fill {value = 0.1 : f64} : () -> tensor<f32>
  %0 = nn.cast %x : (tensor<4x6xf32>) -> tensor<4x6xf64>
  %1 = nn.stop_gradient %x : (tensor<4x6xf32>) -> tensor<4x6xf32>
  %2 = nn.all_finite %x : (tensor<4x6xf32>) -> tensor<i1>
  %3 = nn.random {distribution = "normal", a = 0.0 : f64, b = 1.0 : f64, seed = 1 : i64, key = 2 : i64}
      : () -> tensor<4x6xf32>
  %4 = nn.constant {value = dense<1.0> : tensor<4x6xf32>} : () -> tensor<4x6xf32>
  %8 = nn.argmax %x {dim = 0 : i64} : (tensor<4x6xf32>) -> tensor<6xi32>
  %9 = nn.argmin %x {dim = 1 : i64} : (tensor<4x6xf32>) -> tensor<4xi32>
  %5 = nn.iota {dim = 0 : i64} : () -> tensor<4x6xi32>
  %6:2 = nn.sgd %x, %1, %3, %lr : (tensor<4x6xf32>, tensor<4x6xf32>, tensor<4x6xf32>, tensor<f32>)
      -> (tensor<4x6xf32>, tensor<4x6xf32>)
  %7:3 = nn.adam %x, %1, %3, %4, %lr, %n
      : (tensor<4x6xf32>, tensor<4x6xf32>, tensor<4x6xf32>, tensor<4x6xf32>, tensor<f32>, tensor<i64>)
      -> (tensor<4x6xf32>, tensor<4x6xf32>, tensor<4x6xf32>)
  %12:3 = nn.adam_direction %1, %3, %4, %n
      : (tensor<4x6xf32>, tensor<4x6xf32>, tensor<4x6xf32>, tensor<i64>)
      -> (tensor<4x6xf32>, tensor<4x6xf32>, tensor<4x6xf32>)
  %13:2 = nn.rms_direction %1, %3 : (tensor<4x6xf32>, tensor<4x6xf32>) -> (tensor<4x6xf32>, tensor<4x6xf32>)
  %10:2 = nn.lion_direction %1, %3 : (tensor<4x6xf32>, tensor<4x6xf32>) -> (tensor<4x6xf32>, tensor<4x6xf32>)
  %11 = nn.descend %x, %1, %lr, %lr
      : (tensor<4x6xf32>, tensor<4x6xf32>, tensor<f32>, tensor<f32>) -> tensor<4x6xf32>
  %14 = nn.custom %x {kind = "custom", factors = "a b -> a b", linear = [array<i64: 0>], work = 2.0 : f64}
      : (tensor<4x6xf32>) -> tensor<4x6xf32>
  return
})";

std::vector<std::string> everyProgram() {
  std::vector<std::string> programs = {kOthers};
  for (const GradientCase& test : gradientCases()) {
    programs.push_back(gradientModule(test));
  }
  return programs;
}

int64_t smallestDivisor(int64_t size) {
  int64_t divisor = 2;
  while (divisor < size && size % divisor != 0) {
    ++divisor;
  }
  return size > 1 ? divisor : 1;
}

// Each factor that may be split alone, and all of them together.
std::vector<FactorAxes> splitsOf(const Rule& rule) {
  FactorAxes all(rule.factors().size());
  std::vector<FactorAxes> splits = {all};
  for (size_t f = 0; f < all.size(); ++f) {
    const int64_t parts = smallestDivisor(rule.factors()[f].size);
    if (rule.splittable(static_cast<int>(f)) && parts > 1) {
      all[f] = {{AxisKind::kSpace, 1, parts}};
      splits.emplace_back(all.size());
      splits.back()[f] = all[f];
    }
  }
  splits.push_back(all);
  return splits;
}

mlir::Type localType(mlir::Value value, const Layout& layout) {
  return mlir::RankedTensorType::get(layout.localShape(ir::shapeOf(value)),
                                     mlir::cast<mlir::RankedTensorType>(value.getType()).getElementType());
}

// The part of `op` that a rank has, as localization makes it at the end of `block`.
ir::OperatorInterface localized(mlir::Operation* op, const Rule& rule, const FactorAxes& axes, mlir::Block& block) {
  mlir::OperationState state(op->getLoc(), op->getName());
  for (unsigned i = 0; i < op->getNumOperands(); ++i) {
    state.addOperands(block.addArgument(localType(op->getOperand(i), rule.operandLayout(i, axes)), op->getLoc()));
  }
  for (unsigned r = 0; r < op->getNumResults(); ++r) {
    state.addTypes(localType(op->getResult(r), rule.resultLayout(r, axes)));
  }
  state.addAttributes(op->getAttrs());
  mlir::OpBuilder builder(op->getContext());
  builder.setInsertionPointToEnd(&block);
  auto local = mlir::cast<ir::OperatorInterface>(builder.create(state));
  local.localizeAttributes();
  return local;
}

TensorSpec specOf(const TensorType& type, const Layout& layout) {
  return {type.type, layout.localShape(type.shape)};
}

// What the kernel of the same part is called with, from the graph alone.
KernelSpec specOf(const GraphView& view, int op, const Rule& rule, const FactorAxes& axes) {
  KernelSpec spec = {view.op(op).facts.kind, {}, {}, view.op(op).facts.attributes, 0};
  for (unsigned i = 0; i < view.op(op).operands.size(); ++i) {
    spec.inputs.push_back(specOf(view.typeOf(view.operandOf(op, i)), rule.operandLayout(i, axes)));
  }
  for (unsigned r = 0; r < view.op(op).results.size(); ++r) {
    spec.outputs.push_back(specOf(view.op(op).results[r], rule.resultLayout(r, axes)));
  }
  return spec;
}

class OperatorFactsTest : public ::testing::Test {
 protected:
  void check(mlir::ModuleOp module) {
    auto step = module.lookupSymbol<mlir::func::FuncOp>("step");
    number(step);
    const mlir::FailureOr<ProgramGraph> graph = buildProgramGraph(step);
    ASSERT_TRUE(mlir::succeeded(graph));
    const GraphView view(*graph);
    int next = 0;
    for (mlir::Operation& op : step.getBody().front().without_terminator()) {
      check(&op, view, next++);
    }
  }

  std::set<std::string> seen_;
  Modules modules_;

 private:
  static void number(mlir::func::FuncOp step) {
    mlir::Builder builder(step.getContext());
    int64_t next = 0;
    for (mlir::Operation& op : step.getBody().front()) {
      op.setAttr(kIdAttr, builder.getI64IntegerAttr(next++));
    }
  }

  void check(mlir::Operation* op, const GraphView& view, int number) {
    const OperatorFacts& facts = view.op(number).facts;
    seen_.insert(facts.kind);
    auto interface = mlir::cast<ir::OperatorInterface>(op);
    const mlir::FailureOr<Rule> rule = ir::ruleOf(interface);
    ASSERT_TRUE(mlir::succeeded(rule));
    EXPECT_EQ(facts.view, interface.getViewKind()) << facts.kind;
    EXPECT_EQ(facts.mustExpand, interface.mustExpand()) << facts.kind;
    for (unsigned i = 0; i < op->getNumOperands(); ++i) {
      EXPECT_EQ(facts.padFillOf(i), interface.getPadFill(i)) << facts.kind;
    }
    for (unsigned r = 0; r < op->getNumResults(); ++r) {
      EXPECT_EQ(facts.reduceOf(r), interface.getReduceKind(r)) << facts.kind;
    }
    for (const FactorAxes& axes : splitsOf(*rule)) {
      mlir::Block block;
      ir::OperatorInterface local = localized(op, *rule, axes, block);
      EXPECT_EQ(flopsOf(facts, *rule, axes), static_cast<double>(local.getFlops())) << facts.kind << ": " << facts.rule;
      const KernelDescription mine = describe(specOf(view, number, *rule, axes), Target::kCpu);
      const KernelDescription its = describe(kernelSpecOf(local), Target::kCpu);
      EXPECT_EQ(mine.workspaceBytes, its.workspaceBytes) << facts.kind << ": " << facts.rule;
      EXPECT_EQ(mine.inPlace, its.inPlace) << facts.kind << ": " << facts.rule;
    }
  }
};

TEST_F(OperatorFactsTest, FlopsAtLocalSizesAreThoseOfTheLocalOperator) {
  const ir::OperatorRegistry registry = ir::OperatorRegistry::builtin();
  for (const std::string& text : everyProgram()) {
    mlir::OwningOpRef<mlir::ModuleOp> module = modules_.parse(text);
    ASSERT_TRUE(module) << text;
    mlir::PassManager gradients(module->getContext());
    gradients.addPass(createBuildGradientsPass(registry));
    ASSERT_TRUE(text == kOthers || mlir::succeeded(gradients.run(*module)));
    check(*module);
    ASSERT_TRUE(mlir::succeeded(expandRequired(*module)));
    check(*module);
  }
  for (mlir::RegisteredOperationName name : modules_.context()->getRegisteredOperations()) {
    EXPECT_TRUE(!name.hasInterface<ir::OperatorInterface>() || seen_.count(name.stripDialect().str()) > 0)
        << name.getStringRef().str() << " is in no program here";
  }
}

TEST_F(OperatorFactsTest, TheGraphHoldsTheFactsOfTheProgram) {
  const mlir::OwningOpRef<mlir::ModuleOp> module = modules_.parse(R"(
    func.func @step(%x: tensor<4x6xf32> {nn.kind = "input", nn.name = "x"},
                    %w: tensor<6x2xf32> {nn.kind = "parameter", nn.name = "w"})
        -> (tensor<f32> {nn.kind = "output", nn.name = "y"}) {
      %0 = nn.matmul %x, %w {nn.id = 0 : i64, transpose_a = false} : (tensor<4x6xf32>, tensor<6x2xf32>) -> tensor<4x2xf32>
      %1 = nn.gelu %0 {nn.id = 1 : i64, approximate = "none"} : (tensor<4x2xf32>) -> tensor<4x2xf32>
      %2 = nn.reshape %1 {nn.id = 2 : i64} : (tensor<4x2xf32>) -> tensor<8xf32>
      %3 = nn.max %2 {nn.id = 3 : i64, dims = array<i64: 0>} : (tensor<8xf32>) -> tensor<f32>
      return %3 : tensor<f32>
    })");
  const mlir::FailureOr<ProgramGraph> graph = buildProgramGraph(module.get().lookupSymbol<mlir::func::FuncOp>("step"));
  ASSERT_TRUE(mlir::succeeded(graph));
  const OperatorFacts& matmul = graph->operators[0].facts;
  EXPECT_EQ(matmul.flopsPerPoint, 2);
  EXPECT_EQ(matmul.attributes.at("transpose_a"), Attribute(int64_t{0}));
  EXPECT_EQ(matmul.attributes.count("nn.id"), 0U);
  EXPECT_EQ(graph->operators[1].facts.attributes.at("approximate"), Attribute(std::string("none")));
  EXPECT_EQ(graph->operators[2].facts.view, ViewKind::kShape);
  EXPECT_EQ(graph->operators[2].facts.flopsPerPoint, 0);
  const OperatorFacts& max = graph->operators[3].facts;
  EXPECT_EQ(max.attributes.at("dims"), Attribute(std::vector<int64_t>{0}));
  EXPECT_EQ(max.reduce, std::vector<ReduceKind>{ReduceKind::kMax});
  EXPECT_EQ(max.padFill, (std::vector<std::optional<double>>{-std::numeric_limits<double>::infinity()}));
  EXPECT_EQ(matmul.padFill, std::vector<std::optional<double>>());
}

}  // namespace
}  // namespace weft::testing
