// The program graph against the module it is built from.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <tuple>

#include "ir/nn/nn.h"
#include "ir/nn/operator_interface.h"
#include "ir/nn/types.h"
#include "ir/program/decision_attributes.h"
#include "ir/program/program.h"
#include "mlir/IR/MLIRContext.h"
#include "passes/compile.h"
#include "passes/decide/build_program_graph.h"
#include "passes/logical/read_module.h"
#include "passes/logical/request_attributes.h"
#include "planner/cost/step_model.h"
#include "planner/derive/derive.h"
#include "planner/graph/flops.h"
#include "planner/graph/graph_json.h"
#include "planner/graph/rewrites.h"
#include "planner/step/value_layouts.h"
#include "tests/passes/gates/hostile_programs.h"

namespace weft::testing {
namespace {

using mlir::MLIRContext;
using mlir::ModuleOp;
using mlir::OwningOpRef;

class ModuleTest : public ::testing::Test {
 protected:
  ModuleTest() : context_(dialects(), MLIRContext::Threading::DISABLED) {}

  OwningOpRef<ModuleOp> read(const std::string& text, const std::string& path = "model.mlir") {
    absl::StatusOr<OwningOpRef<ModuleOp>> module = readModule(text, path, context_);
    EXPECT_TRUE(module.ok()) << module.status();
    return module.ok() ? *std::move(module) : nullptr;
  }

  static ProgramGraph graphOf(ModuleOp module, const ir::OperatorRegistry& registry) {
    const mlir::FailureOr<Request> request = readRequest(module);
    EXPECT_TRUE(mlir::succeeded(request));
    const absl::StatusOr<ir::ExpansionContext> context = expansionContextOf(request->options);
    EXPECT_TRUE(context.ok()) << context.status();
    mlir::FailureOr<ProgramGraph> graph = buildProgramGraph(stepFunction(module), {registry, *context});
    EXPECT_TRUE(mlir::succeeded(graph));
    return mlir::succeeded(graph) ? *graph : ProgramGraph();
  }

  MLIRContext& context() { return context_; }

  ir::OperatorRegistry registry_ = ir::OperatorRegistry::builtin();

 private:
  static mlir::DialectRegistry dialects() {
    mlir::DialectRegistry registry;
    registerWeftDialects(registry);
    return registry;
  }

  MLIRContext context_;
};

// But for the next id: erased operators had ids, too.
void expectSame(ProgramGraph planned, ProgramGraph built) {
  planned.nextId = built.nextId = 0;
  ASSERT_EQ(planned.operators.size(), built.operators.size());
  for (size_t i = 0; i < planned.operators.size(); ++i) {
    EXPECT_TRUE(planned.operators[i] == built.operators[i])
        << "operator " << planned.operators[i].id << " against " << built.operators[i].id;
  }
  EXPECT_TRUE(planned == built);
}

class GraphOfProgramTest : public ModuleTest, public ::testing::WithParamInterface<std::string> {};

INSTANTIATE_TEST_SUITE_P(Programs, GraphOfProgramTest, ::testing::ValuesIn(hostileProgramNames()),
                         [](const auto& info) { return info.param; });

// Realizing the rewrites of the record gives the graph that the planner has; a graph from a file gives the record that
// the module gives.
TEST_P(GraphOfProgramTest, RewritesOfTheModuleAreThoseOfTheGraph) {
  const std::string directory = ::testing::TempDir() + "/graph_" + GetParam();
  std::filesystem::remove_all(directory);  // of an earlier run, whose phases may have had other numbers
  std::filesystem::create_directories(directory);
  const DumpedProgram program = dumpedProgram(GetParam(), directory);
  OwningOpRef<ModuleOp> before, after;
  for (const Dump& dump : program.dumps) {
    before = dump.phase.ends_with("-build-update") ? read(dump.text, dump.path) : std::move(before);
    after = dump.phase.ends_with("-decide") ? read(dump.text, dump.path) : std::move(after);
  }
  ASSERT_TRUE(before && after);
  const mlir::FailureOr<Request> request = readRequest(*before);
  ASSERT_TRUE(mlir::succeeded(request));

  const ProgramGraph logical = graphOf(*before, registry_);
  ProgramGraph graph = logical;
  const absl::StatusOr<Derivation> derived = deriveDecisions(graph, request->options, {});
  ASSERT_TRUE(derived.ok()) << derived.status();
  EXPECT_EQ(printDecisions(derived->decisions), program.decisions);
  expectSame(graph, graphOf(*after, registry_));

  absl::StatusOr<ProgramGraph> saved = parseProgramGraph(printProgramGraph(logical));
  ASSERT_TRUE(saved.ok()) << saved.status();
  EXPECT_TRUE(*saved == logical);
  const absl::StatusOr<Derivation> again = deriveDecisions(*saved, request->options, {});
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(printDecisions(again->decisions), program.decisions);
}

using Work = std::set<std::tuple<std::string, std::string, double>>;  // kernel, label, FLOPs of one call

// Of the step, without what makes the first values of parameters.
void addWork(const plan::Plan& plan, Work& work) {
  for (const plan::Function& function : plan.functions()) {
    for (const plan::Instruction& instruction : function.instructions()) {
      if (instruction.flops() > 0 && function.kind() != plan::INIT) {
        work.insert({instruction.kernel(), instruction.label(), static_cast<double>(instruction.flops())});
      }
    }
  }
  for (const plan::Plan& submesh : plan.submeshes()) {
    addWork(submesh, work);
  }
}

// What the planner expects of each operator on a rank is what the compiled instruction does.
TEST_P(GraphOfProgramTest, FlopsFromTheGraphAreThoseOfThePlan) {
  const std::string directory = ::testing::TempDir() + "/flops_" + GetParam();
  std::filesystem::remove_all(directory);  // of an earlier run, whose phases may have had other numbers
  std::filesystem::create_directories(directory);
  const DumpedProgram program = dumpedProgram(GetParam(), directory);
  OwningOpRef<ModuleOp> decided;
  for (const Dump& dump : program.dumps) {
    decided = dump.phase.ends_with("-decide") ? read(dump.text, dump.path) : std::move(decided);
  }
  ASSERT_TRUE(decided);
  const ProgramGraph graph = graphOf(*decided, registry_);
  const absl::StatusOr<Decisions> record = parseDecisions(program.decisions);
  ASSERT_TRUE(record.ok()) << record.status();
  const GraphView view(graph);
  const absl::StatusOr<StepLayouts> layouts = layoutsOf(view, *record);
  ASSERT_TRUE(layouts.ok()) << layouts.status();
  Work expected, compiled;
  for (int op = 0; op < view.operators(); ++op) {
    const double flops = flopsOf(view.op(op).facts, layouts->operators[op].rule, layouts->operators[op].axes);
    if (flops > 0) {
      expected.insert({view.op(op).facts.kind, view.op(op).label(), flops});
    }
  }
  addWork(program.plan, compiled);
  EXPECT_FALSE(compiled.empty());
  EXPECT_EQ(expected, compiled);
}

using Values = llvm::SmallVector<mlir::Value>;

// Softmax over the last dimension as operators that may be split there.
mlir::FailureOr<Values> expandSoftmax(mlir::Operation* op, mlir::OpBuilder& builder, const ir::ExpansionContext&) {
  const mlir::Location loc = op->getLoc();
  mlir::Value x = op->getOperand(0);
  const int64_t last = mlir::cast<mlir::RankedTensorType>(x.getType()).getRank() - 1;
  mlir::Value most = builder.create<ir::nn::MaxOp>(loc, x, llvm::ArrayRef<int64_t>{last}, true);
  mlir::Value shifted = builder.create<ir::nn::SubOp>(loc, x, most);
  mlir::Value exp = builder.create<ir::nn::ExpOp>(loc, shifted);
  mlir::Value sum = builder.create<ir::nn::SumOp>(loc, exp, llvm::ArrayRef<int64_t>{last}, true);
  return Values{builder.create<ir::nn::DivOp>(loc, exp, sum)};
}

// An operator that is registered with an alternative is planned and realized by nothing that knows it.
TEST_F(ModuleTest, ARegisteredAlternativeIsPlannedAndRealized) {
  const std::string text = R"mlir(
module attributes {dist.mesh = #dist.mesh<"tp=2">} {
  func.func @step(%x: tensor<4x6xf32> {nn.kind = "input", nn.name = "x", nn.layout = "[{},{tp}]"})
      -> (tensor<4x6xf32> {nn.kind = "output", nn.name = "y"}) {
    %0 = nn.softmax %x {nn.id = 0 : i64} : (tensor<4x6xf32>) -> tensor<4x6xf32>
    return %0 : tensor<4x6xf32>
  }
})mlir";
  ir::OperatorRegistry own;  // without what is built in
  PipelineOptions options;
  options.program = "evaluate";
  options.until = "decide";
  const auto decided = [&](const ir::OperatorRegistry& registry) {
    OwningOpRef<ModuleOp> module = read(text);
    mlir::PassManager manager(module->getContext());
    EXPECT_TRUE(buildPipeline(manager, registry, options).ok());
    EXPECT_TRUE(mlir::succeeded(manager.run(*module)));
    return module;
  };
  const OwningOpRef<ModuleOp> whole = decided(own);
  EXPECT_TRUE(decisionsOf(*whole)->rewrites.empty());

  own.addExpansion(ir::nn::SoftmaxOp::getOperationName().str(), expandSoftmax);
  ProgramGraph graph = graphOf(*read(text), own);
  ASSERT_EQ(graph.operators.size(), 1U);
  ASSERT_EQ(graph.operators[0].alternatives.size(), 1U);
  const OwningOpRef<ModuleOp> split = decided(own);
  const Decisions& record = *decisionsOf(*split);
  ASSERT_EQ(record.rewrites.size(), 1U);
  ASSERT_TRUE(takeAlternative(graph, record.rewrites[0].id).ok());
  expectSame(graph, graphOf(*split, own));
  EXPECT_EQ(record.operators.size(), 5U);
  for (const OperatorDecision& op : record.operators) {
    EXPECT_EQ(op.axes.size(), 1U) << op.label;
  }
  OwningOpRef<ModuleOp> module = read(text);
  options.until = "";
  const absl::StatusOr<plan::Plan> plan = compileModule(*module, own, options);
  ASSERT_TRUE(plan.ok()) << plan.status();
}

// x - mean, with the mean of each channel in each micro-batch. Only this test knows it; it has no kernel, and exists
// only to be expanded.
class CenterOp
    : public mlir::Op<CenterOp, mlir::OpTrait::ZeroRegions, mlir::OpTrait::OneResult, mlir::OpTrait::ZeroSuccessors,
                      mlir::OpTrait::OneOperand, ir::OperatorInterface::Trait> {
 public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(CenterOp)
  using Op::Op;
  static llvm::StringRef getOperationName() { return "nn.center"; }
  static llvm::ArrayRef<llvm::StringRef> getAttributeNames() { return {}; }

  std::string getRule() { return "n c -> n c"; }  // NOLINT
  bool mustExpand() { return true; }              // NOLINT
  void localizeAttributes() {}                    // NOLINT
};

mlir::FailureOr<Values> expandCenter(mlir::Operation* op, mlir::OpBuilder& builder,
                                     const ir::ExpansionContext& context) {
  const mlir::Location loc = op->getLoc();
  mlir::Value x = op->getOperand(0);
  const Shape shape = ir::shapeOf(x);
  const mlir::RankedTensorType statistic = ir::withShape(x, {context.microBatches(), shape[1]});
  mlir::Value sum = builder.create<ir::nn::ChannelSumOp>(loc, statistic, x);
  mlir::Value share = builder.create<ir::nn::FillOp>(
      loc, ir::withShape(x, {}), -static_cast<double>(context.microBatches()) / static_cast<double>(shape[0]));
  mlir::Value offset = builder.create<ir::nn::MulOp>(loc, sum, share);
  mlir::Value one = builder.create<ir::nn::FillOp>(loc, statistic, 1.0);
  return Values{builder.create<ir::nn::ChannelAffineOp>(loc, mlir::ValueRange{x, one, offset})};
}

constexpr char kCentered[] = R"mlir(
module attributes {dist.mesh = #dist.mesh<"dp=2,tp=2,micro=4">, nn.optimizer = {kind = "sgd", lr = 0.1 : f64}} {
  func.func @step(%x: tensor<48x6xf32> {nn.kind = "input", nn.name = "x"},
                  %g: tensor<6xf32> {nn.kind = "parameter", nn.name = "g", nn.init = {distribution = "ones"}},
                  %w: tensor<6x6xf32> {nn.kind = "parameter", nn.name = "w", nn.init = {distribution = "ones"}})
      -> (tensor<f32> {nn.kind = "loss", nn.name = "loss"}) {
    %0 = "nn.center"(%x) : (tensor<48x6xf32>) -> tensor<48x6xf32>
    %1 = nn.matmul %0, %w : (tensor<48x6xf32>, tensor<6x6xf32>) -> tensor<48x6xf32>
    %2:4 = nn.batch_norm %1, %g, %g {nn.strategy = {in = [["dp", "tp"], ["tp"], ["tp"]]}} : (tensor<48x6xf32>, tensor<6xf32>, tensor<6xf32>) -> (tensor<48x6xf32>, tensor<1x6xf32>, tensor<1x6xf32>, tensor<1x6xf32>)
    %3 = nn.sum_squares %2#0 : (tensor<48x6xf32>) -> tensor<f32>
    return %3 : tensor<f32>
  }
})mlir";

class MustExpandTest : public ModuleTest {
 protected:
  void SetUp() override {
    mlir::RegisteredOperationName::insert<CenterOp>(*context().getOrLoadDialect<ir::nn::NnDialect>());
  }

  // kCentered behind the phase.
  OwningOpRef<ModuleOp> after(const std::string& phase) {
    OwningOpRef<ModuleOp> module = read(kCentered);
    PipelineOptions options;
    options.until = phase;
    mlir::PassManager manager(module->getContext());
    EXPECT_TRUE(buildPipeline(manager, registry_, options).ok());
    EXPECT_TRUE(mlir::succeeded(manager.run(*module)));
    return module;
  }
};

// An operator that must be expanded, and batch norm, are planned, priced and realized by nothing that knows them.
TEST_F(MustExpandTest, IsPlannedPricedAndRealized) {
  registry_.addExpansion(CenterOp::getOperationName().str(), expandCenter);
  const OwningOpRef<ModuleOp> logical = after("build-update");
  ProgramGraph graph = graphOf(*logical, registry_);
  EXPECT_TRUE(graph.operators[0].facts.mustExpand);
  ASSERT_EQ(graph.operators[0].alternatives.size(), 1U);
  EXPECT_EQ(graph.operators[0].alternatives[0].body[0].results[0].shape, (Shape{4, 6}));

  const absl::StatusOr<Derivation> derived = deriveDecisions(graph, readRequest(*logical)->options, {});
  ASSERT_TRUE(derived.ok()) << derived.status();
  const Decisions* record = &derived->decisions;
  EXPECT_EQ(record->rewrites.size(), 3U) << "center, batch norm, its gradient";
  int ofUser = 0;
  for (const OperatorDecision& op : record->operators) {
    ofUser += op.origin == "user" ? 1 : 0;
  }
  EXPECT_EQ(ofUser, 5) << "what reads x, gamma or beta of batch norm has its strategy";
  const OwningOpRef<ModuleOp> decided = after("decide");
  ASSERT_NE(decisionsOf(*decided), nullptr);
  EXPECT_EQ(printDecisions(*decisionsOf(*decided)), printDecisions(*record));
  expectSame(graph, graphOf(*decided, registry_));

  const absl::StatusOr<Machine> machine = Machine::parse("");
  ASSERT_TRUE(machine.ok());
  const auto model = StepModel::create(graph, *record, *machine, {});
  ASSERT_TRUE(model.ok()) << model.status();
  const absl::StatusOr<StepNeeds> predicted = (*model)->needs(*record);
  ASSERT_TRUE(predicted.ok()) << predicted.status();
  OwningOpRef<ModuleOp> module = read(kCentered);
  const absl::StatusOr<plan::Plan> plan = compileModule(*module, registry_, {});
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(predicted->peakBytes(), plan->memory().peak_bytes());
  std::map<std::string, int> calls;
  for (const plan::Function& function : plan->functions()) {
    for (const plan::Instruction& instruction : function.instructions()) {
      ++calls[instruction.kernel()];
    }
  }
  EXPECT_EQ(calls["channel_sum"], 3) << "of center, batch norm and its gradient";
  EXPECT_EQ(calls.count("center") + calls.count("batch_norm") + calls.count("batch_norm_grad"), 0U);
}

TEST_F(MustExpandTest, WithoutExpansionIsRefused) {
  OwningOpRef<ModuleOp> module = read(kCentered);
  const absl::StatusOr<plan::Plan> plan = compileModule(*module, registry_, {});
  EXPECT_THAT(std::string(plan.status().message()),
              ::testing::HasSubstr("center (center) exists only to be expanded, and has no expansion"));
}

// The expansion of the gradient reads what the expansion of batch norm makes.
TEST_F(MustExpandTest, ARecordThatLeavesOneOutIsRefused) {
  registry_.addExpansion(CenterOp::getOperationName().str(), expandCenter);
  const OwningOpRef<ModuleOp> decided = after("decide");
  ASSERT_NE(decisionsOf(*decided), nullptr);
  const auto errorOf = [&](const Decisions& record) {
    OwningOpRef<ModuleOp> module = read(kCentered);
    PipelineOptions options;
    options.decisions = record;
    return std::string(compileModule(*module, registry_, options).status().message());
  };
  Decisions record = *decisionsOf(*decided);
  ASSERT_EQ(record.rewrites.size(), 3U);
  std::swap(record.rewrites[1], record.rewrites[2]);
  EXPECT_THAT(errorOf(record), ::testing::HasSubstr("reads a statistic of 1 micro-batches in a step of 4"));
  record.rewrites.resize(1);
  EXPECT_THAT(errorOf(record), ::testing::HasSubstr("must be expanded, and nothing says so"));
}

TEST_F(MustExpandTest, AnExpansionGivesEveryResult) {
  registry_.addExpansion(CenterOp::getOperationName().str(),
                         [](mlir::Operation*, mlir::OpBuilder&, const ir::ExpansionContext&) { return Values(); });
  OwningOpRef<ModuleOp> module = read(kCentered);
  const absl::StatusOr<plan::Plan> plan = compileModule(*module, registry_, {});
  EXPECT_THAT(std::string(plan.status().message()),
              ::testing::HasSubstr("its expansion gives 0 values, it has 1 results"));
}

// A statistic has a row for each micro-batch, so each number of micro-batches has a graph of its own.
TEST_F(MustExpandTest, EveryNumberOfMicroBatchesHasItsGraph) {
  registry_.addExpansion(CenterOp::getOperationName().str(), expandCenter);
  const OwningOpRef<ModuleOp> module = read(kCentered);
  const absl::StatusOr<PlannerProblem> problem = plannerProblem(*module, registry_);
  ASSERT_TRUE(problem.ok()) << problem.status();
  for (const int64_t microBatches : {1, 4, 2, 1}) {
    const absl::StatusOr<std::shared_ptr<const ProgramGraph>> graph = problem->graphs(microBatches);
    ASSERT_TRUE(graph.ok()) << graph.status();
    EXPECT_EQ((*graph)->operators[0].alternatives[0].body[0].results[0].shape, (Shape{microBatches, 6}));
  }
}

// Rows that divide by the ranks of every submesh, in every micro-batch, are never padded.
TEST(ExpansionContext, FollowsFromTheRequest) {
  const auto of = [](const CompileOptions& options) {
    const absl::StatusOr<ir::ExpansionContext> context = expansionContextOf(options);
    EXPECT_TRUE(context.ok()) << context.status();
    return std::pair(context->microBatches(), context->rowParts());
  };
  EXPECT_EQ(of({}), std::pair(int64_t{1}, int64_t{1}));
  EXPECT_EQ(of({.mesh = "dp=2,tp=3", .micro = 4}), std::pair(int64_t{4}, int64_t{6}));
  EXPECT_EQ(of({.devices = 5}), std::pair(int64_t{1}, int64_t{5}));
  EXPECT_EQ(of({.stageMeshes = "dp=2,tp=2;dp=6", .micro = 2}), std::pair(int64_t{2}, int64_t{12}));
  EXPECT_FALSE(expansionContextOf({.mesh = "dp=x"}).ok());
}

}  // namespace
}  // namespace weft::testing
