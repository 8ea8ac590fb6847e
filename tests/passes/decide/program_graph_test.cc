// The program graph against the module it is built from.
#include <gmock/gmock.h>
#include <google/protobuf/util/message_differencer.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <set>
#include <tuple>

#include "ir/nn/nn.h"
#include "ir/program/decision_attributes.h"
#include "ir/program/program.h"
#include "mlir/IR/MLIRContext.h"
#include "passes/compile.h"
#include "passes/decide/build_program_graph.h"
#include "passes/logical/read_module.h"
#include "passes/logical/request_attributes.h"
#include "planner/derive/derive.h"
#include "planner/graph/graph_json.h"
#include "planner/graph/rewrites.h"
#include "planner/step/flops.h"
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
    mlir::FailureOr<ProgramGraph> graph = buildProgramGraph(stepFunction(module), &registry);
    EXPECT_TRUE(mlir::succeeded(graph));
    return mlir::succeeded(graph) ? *graph : ProgramGraph();
  }

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
  const absl::StatusOr<Decisions> record = deriveDecisions(graph, request->options, {});
  ASSERT_TRUE(record.ok()) << record.status();
  EXPECT_EQ(printDecisions(*record), program.decisions);
  expectSame(graph, graphOf(*after, registry_));

  absl::StatusOr<ProgramGraph> saved = parseProgramGraph(printProgramGraph(logical));
  ASSERT_TRUE(saved.ok()) << saved.status();
  EXPECT_TRUE(*saved == logical);
  const absl::StatusOr<Decisions> again = deriveDecisions(*saved, request->options, {});
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(printDecisions(*again), program.decisions);
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

// Softmax over the last dimension as operators that may be split there.
mlir::FailureOr<llvm::SmallVector<mlir::Value>> expandSoftmax(mlir::Operation* op, mlir::OpBuilder& builder) {
  const mlir::Location loc = op->getLoc();
  mlir::Value x = op->getOperand(0);
  const int64_t last = mlir::cast<mlir::RankedTensorType>(x.getType()).getRank() - 1;
  mlir::Value most = builder.create<ir::nn::MaxOp>(loc, x, llvm::ArrayRef<int64_t>{last}, true);
  mlir::Value shifted = builder.create<ir::nn::SubOp>(loc, x, most);
  mlir::Value exp = builder.create<ir::nn::ExpOp>(loc, shifted);
  mlir::Value sum = builder.create<ir::nn::SumOp>(loc, exp, llvm::ArrayRef<int64_t>{last}, true);
  return llvm::SmallVector<mlir::Value>{builder.create<ir::nn::DivOp>(loc, exp, sum)};
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
  const OwningOpRef<ModuleOp> whole = decided(registry_);
  EXPECT_TRUE(decisionsOf(*whole)->rewrites.empty());

  registry_.addExpansion(ir::nn::SoftmaxOp::getOperationName().str(), expandSoftmax);
  ProgramGraph graph = graphOf(*read(text), registry_);
  ASSERT_EQ(graph.operators.size(), 1U);
  ASSERT_EQ(graph.operators[0].alternatives.size(), 1U);
  const OwningOpRef<ModuleOp> split = decided(registry_);
  const Decisions& record = *decisionsOf(*split);
  ASSERT_EQ(record.rewrites.size(), 1U);
  ASSERT_TRUE(takeAlternative(graph, record.rewrites[0].id).ok());
  expectSame(graph, graphOf(*split, registry_));
  EXPECT_EQ(record.operators.size(), 5U);
  for (const OperatorDecision& op : record.operators) {
    EXPECT_EQ(op.axes.size(), 1U) << op.label;
  }
  OwningOpRef<ModuleOp> module = read(text);
  options.until = "";
  const absl::StatusOr<plan::Plan> plan = compileModule(*module, registry_, options);
  ASSERT_TRUE(plan.ok()) << plan.status();
}

// A step of some layers whose activations need memory.
std::string layersText(int64_t limit) {
  std::string body;
  std::string arguments;
  for (int layer = 0; layer < 4; ++layer) {
    const std::string n = std::to_string(layer);
    arguments += ", %w" + n + ": tensor<16x16xf32> {nn.kind = \"parameter\", nn.name = \"w" + n +
                 "\", nn.init = {distribution = \"normal\", a = 0.0 : f64, b = 1.0 : f64}}";
    body += "  %m" + n + " = nn.matmul " + (layer == 0 ? "%x" : "%h" + std::to_string(layer - 1)) + ", %w" + n +
            " : (tensor<256x16xf32>, tensor<16x16xf32>) -> tensor<256x16xf32>\n  %h" + n + " = nn.gelu %m" + n +
            " : (tensor<256x16xf32>) -> tensor<256x16xf32>\n";
  }
  return "module attributes {dist.mesh = #dist.mesh<\"1\">, nn.optimizer = {kind = \"sgd\", lr = 0.1 : f64}, "
         "nn.options = "
         "{memory_limit = " +
         std::to_string(limit) +
         " : i64, recompute = \"auto\"}} {\nfunc.func @step(%x: tensor<256x16xf32> {nn.kind = \"input\", nn.name = "
         "\"x\"}" +
         arguments + ") -> (tensor<f32> {nn.kind = \"loss\", nn.name = \"loss\"}) {\n" + body +
         "  %loss = nn.sum %h3 {dims = array<i64: 0, 1>, keep_dims = false} : (tensor<256x16xf32>) -> tensor<f32>\n"
         "  return %loss : tensor<f32>\n}\n}";
}

// A planner that is wrong about memory is told by how much, and asked again, until it listens or has been asked often
// enough.
TEST_F(ModuleTest, APredictionThatWasTooLowIsCorrected) {
  const auto compiled = [&](int64_t limit, int64_t wrong, CompileReport& report) {
    PipelineOptions options;
    options.report = &report;
    options.correction.bytes = {wrong};
    return compileModule(*read(layersText(limit)), registry_, options);
  };
  CompileReport free, right, low;
  const absl::StatusOr<plan::Plan> all = compiled(1 << 30, 0, free);
  ASSERT_TRUE(all.ok()) << all.status();
  EXPECT_EQ(free.compilations, 1);
  const int64_t limit = all->memory().peak_bytes() - 20'000;
  const absl::StatusOr<plan::Plan> fits = compiled(limit, 0, right);
  ASSERT_TRUE(fits.ok()) << fits.status();
  EXPECT_EQ(right.compilations, 1);
  const absl::StatusOr<plan::Plan> corrected = compiled(limit, -100'000, low);
  ASSERT_TRUE(corrected.ok()) << corrected.status();
  EXPECT_EQ(low.compilations, 2);
  EXPECT_TRUE(google::protobuf::util::MessageDifferencer::Equals(*corrected, *fits));
}

}  // namespace
}  // namespace weft::testing
