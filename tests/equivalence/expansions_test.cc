// Mode auto takes each expansion where it pays: for each a small program whose other dimensions the mesh cannot split,
// whose record names the operators that their alternatives stand for, and whose answer is that of one rank.
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "ir/registry.h"
#include "passes/compile.h"
#include "planner/decisions.h"
#include "tests/equivalence/training_step.h"
#include "tests/support/parse.h"

namespace weft::testing {
namespace {

using Dims = std::vector<int64_t>;
using Counts = std::map<std::string, int>;  // of operators, by kind

// As in auto_mode_test.cc: splits pay on small programs.
constexpr char kMachine[] =
    "flops = 8e8\\0Amemory_bandwidth = 2e10\\0Alink_bandwidth = 1e10\\0Alink_latency = 1.2e-10\\0A"
    "launch_latency = 6e-11\\0A";
// One whose arithmetic costs little beside what links move.
constexpr char kSlowLinks[] =
    "flops = 8e10\\0Amemory_bandwidth = 2e10\\0Alink_bandwidth = 1e9\\0Alink_latency = 1.2e-10\\0A"
    "launch_latency = 6e-11\\0A";

// A program, operator by operator.
class ProgramWriter {
 public:
  std::string parameter(const std::string& name, Dims shape) {
    program_.parameters.push_back({name, shape});
    return named(name, typeText(shape));
  }
  std::string input(const std::string& name, Dims shape) {
    program_.inputs.push_back({name, shape});
    return named(name, typeText(shape));
  }
  std::string ids(const std::string& name, Dims shape, int64_t bound) {
    program_.inputs.push_back({name, shape, "i32", false, bound});
    return named(name, typeText(shape, "i32"));
  }
  void output(const std::string& name, Dims shape, const std::string& type = "f64") {
    program_.outputs.push_back({name, shape, type});
  }

  // The first result, called `name`.
  std::string add(const std::string& name, const std::string& op, const std::vector<std::string>& operands,
                  const std::string& attributes, const std::vector<std::string>& results) {
    std::vector<std::string> types;
    for (const std::string& operand : operands) {
      types.push_back(types_.at(operand));
    }
    std::vector<std::string> made = {"%" + name};
    for (size_t r = 1; r < results.size(); ++r) {
      made.push_back(absl::StrCat("%", name, "_", r));
    }
    absl::StrAppend(&program_.body, "    ", absl::StrJoin(made, ", "), " = nn.", op, " ", absl::StrJoin(operands, ", "),
                    " {", attributes, "} : (", absl::StrJoin(types, ", "), ") -> (", absl::StrJoin(results, ", "),
                    ")\n");
    return named(name, results[0]);
  }
  std::string add(const std::string& name, const std::string& op, const std::vector<std::string>& operands,
                  const std::string& attributes, const Dims& result) {
    return add(name, op, operands, attributes, std::vector<std::string>{typeText(result)});
  }

  // The loss: the sum of x times an input of its shape, which no symmetry of x hides a fault from.
  TrainingProgram lossOf(const std::string& x, const Dims& shape) {
    const std::string weighted = add("weighted", "mul", {x, input("weights", shape)}, "", shape);
    std::vector<size_t> dims(shape.size());
    for (size_t d = 0; d < dims.size(); ++d) {
      dims[d] = d;
    }
    add("loss", "sum", {weighted}, absl::StrCat("dims = array<i64: ", absl::StrJoin(dims, ", "), ">"), Dims{});
    return program_;
  }

 private:
  std::string named(const std::string& name, const std::string& type) {
    types_["%" + name] = type;
    return "%" + name;
  }

  TrainingProgram program_;
  std::map<std::string, std::string> types_;  // of values
};

// Three rows, which neither 2 nor 4 ranks can share, and many classes.
std::string logitsOf(ProgramWriter& writer, int64_t classes = 64) {
  const std::string x = writer.input("x", {3, 8});
  return writer.add("logits", "matmul", {x, writer.parameter("w", {8, classes})}, "", Dims{3, classes});
}

TrainingProgram ofClasses(const std::string& op) {
  ProgramWriter writer;
  return writer.lossOf(writer.add("y", op, {logitsOf(writer)}, "", Dims{3, 64}), {3, 64});
}

TrainingProgram crossEntropy() {
  ProgramWriter writer;
  const std::string logits = logitsOf(writer);
  const std::string each =
      writer.add("each", "softmax_cross_entropy", {logits, writer.ids("labels", {3}, 64)},
                 "rows = 64, ignore_index = -100", std::vector<std::string>{typeText({3}), typeText({3})});
  return writer.lossOf(each, {3});
}

TrainingProgram argmax() {
  ProgramWriter writer;
  const std::string logits = logitsOf(writer, 4096);
  writer.add("best", "argmax", {logits}, "dim = 1 : i64", std::vector<std::string>{typeText({3}, "i32")});
  writer.output("best", {3}, "i32");
  return writer.lossOf(logits, {3, 4096});
}

TrainingProgram batchNorm() {
  ProgramWriter writer;
  const Dims image = {8, 4, 6};
  const std::string x = writer.add("scaled", "mul", {writer.input("x", image), writer.parameter("s", {1})}, "", image);
  const std::string one = typeText({1, 4});
  const std::string y =
      writer.add("y", "batch_norm", {x, writer.parameter("gamma", {4}), writer.parameter("beta", {4})},
                 "epsilon = 1.0e-5 : f64", std::vector<std::string>{typeText(image), one, one, one});
  return writer.lossOf(y, image);
}

// Three queries of one head, and many keys: parameters, that is a memory that is trained.
TrainingProgram attention(bool causal, bool bias) {
  ProgramWriter writer;
  const Dims q = {1, 1, 3, 8};
  const Dims k = {1, 1, 96, 8};
  std::vector<std::string> operands = {writer.input("q", q), writer.parameter("k", k), writer.parameter("v", k)};
  if (bias) {
    operands.push_back(writer.parameter("bias", {1, 1, 1, 96}));
  }
  const std::string out = writer.add("out", "attention", operands,
                                     absl::StrCat("causal = ", causal ? "true" : "false", ", scale = 0.35 : f64"),
                                     std::vector<std::string>{typeText(q), typeText({1, 1, 3})});
  return writer.lossOf(out, q);
}

// One high image of few channels, convolved twice, so that the gradient of an image is wanted.
TrainingProgram convolutions() {
  ProgramWriter writer;
  const Dims image = {1, 3, 64, 5};
  const std::string steps = "strides = array<i64: 1, 1>, paddings = array<i64: 1, 1>";
  const std::string x = writer.input("x", image);
  const std::string y = writer.add("y", "conv2d", {x, writer.parameter("w0", {3, 3, 3, 3})}, steps, image);
  const std::string z = writer.add("z", "conv2d",
                                   {writer.add("a", "tanh", {y}, "", image),  //
                                    writer.parameter("w1", {3, 3, 3, 3})},
                                   steps, image);
  return writer.lossOf(z, image);
}

std::string autoText(const std::string& module, const std::string& machine = kMachine) {
  return absl::StrReplaceAll(
      module, {{"zero = 0 : i64", absl::StrCat("zero = 0 : i64, mode = \"auto\", machine = \"", machine, "\"")}});
}

// As "train" or "evaluate".
absl::StatusOr<plan::Plan> compiled(const std::string& text, const std::string& program) {
  Modules modules;
  mlir::OwningOpRef<mlir::ModuleOp> module = modules.parse(text);
  if (!module) {
    return absl::InvalidArgumentError("the text is no module:\n" + text);
  }
  return compileModule(*module, ir::OperatorRegistry::builtin(), {.program = program});
}

void expectTaken(const std::string& program, const std::string& one, const std::string& many,
                 const NamedTensors& arguments, const Counts& expected) {
  absl::StatusOr<plan::Plan> alone = compiled(one, program);
  ASSERT_TRUE(alone.ok()) << alone.status();
  const absl::StatusOr<NamedTensors> answer = runPlan(*std::move(alone), arguments);
  ASSERT_TRUE(answer.ok()) << answer.status();
  absl::StatusOr<plan::Plan> plan = compiled(many, program);
  ASSERT_TRUE(plan.ok()) << plan.status();
  const absl::StatusOr<Decisions> record = parseDecisions(plan->decisions());
  ASSERT_TRUE(record.ok()) << record.status();
  Counts taken;
  for (const Rewrite& rewrite : record->rewrites) {
    taken[rewrite.of] += rewrite.kind == Rewrite::kExpand ? 1 : 0;
  }
  EXPECT_EQ(taken, expected) << plan->decisions();
  const absl::StatusOr<NamedTensors> shared = runPlan(*std::move(plan), arguments);
  ASSERT_TRUE(shared.ok()) << shared.status();
  EXPECT_EQ(difference(*answer, *shared), "");
}

void expectTaken(const TrainingProgram& program, const std::string& mesh, const Counts& expected,
                 const std::string& machine = kMachine) {
  SCOPED_TRACE(absl::StrCat(mesh, "\n", program.body));
  expectTaken("train", moduleText(program, {}), autoText(moduleText(program, {.mesh = mesh}), machine),
              randomArguments(program, 11), expected);
}

TEST(Expansions, Classes) {
  for (const char* mesh : {"tp=2", "tp=4"}) {
    expectTaken(ofClasses("softmax"), mesh, {{"softmax", 1}, {"softmax_grad", 1}});
    expectTaken(ofClasses("log_softmax"), mesh, {{"log_softmax", 1}, {"log_softmax_grad", 1}});
    expectTaken(crossEntropy(), mesh, {{"softmax_cross_entropy", 1}});
    expectTaken(argmax(), mesh, {{"argmax", 1}}, kSlowLinks);
  }
}

TEST(Expansions, BatchNorm) {
  expectTaken(batchNorm(), "dp=4", {{"batch_norm", 1}, {"batch_norm_grad", 1}});
}

TEST(Expansions, AttentionOverSplitKeys) {
  for (const char* mesh : {"tp=2", "tp=4"}) {
    for (const bool bias : {false, true}) {
      expectTaken(attention(false, bias), mesh, {{"attention", 1}, {"attention_grad", 1}});
    }
  }
}

// A step of generation: nothing is trained, keys and values are what was seen before.
TEST(Expansions, AttentionOfOneQuery) {
  const auto module = [](const std::string& mesh) {
    return absl::StrCat("module attributes {dist.mesh = #dist.mesh<\"", mesh, R"(">,
    nn.options = {zero = 0 : i64, default = "data_parallel", seed = 1 : i64}} {
  func.func @step(%q: tensor<1x1x1x8xf64> {nn.kind = "input", nn.name = "q"},
      %k: tensor<1x1x512x8xf64> {nn.kind = "parameter", nn.name = "k"},
      %v: tensor<1x1x512x8xf64> {nn.kind = "parameter", nn.name = "v"})
      -> (tensor<1x1x1x8xf64> {nn.kind = "output", nn.name = "out"}) {
    %out, %lse = nn.attention %q, %k, %v {causal = false, scale = 0.35 : f64}
        : (tensor<1x1x1x8xf64>, tensor<1x1x512x8xf64>, tensor<1x1x512x8xf64>)
        -> (tensor<1x1x1x8xf64>, tensor<1x1x1xf64>)
    return %out : tensor<1x1x1x8xf64>
  }
})");
  };
  TrainingProgram shapes;
  shapes.inputs = {{"q", {1, 1, 1, 8}}};
  shapes.parameters = {{"k", {1, 1, 512, 8}}, {"v", {1, 1, 512, 8}}};
  for (const char* mesh : {"tp=2", "tp=8"}) {
    expectTaken("evaluate", module("1"), autoText(module(mesh)), randomArguments(shapes, 3), {{"attention", 1}});
  }
}

TEST(Expansions, ConvolutionsOfBlocks) {
  for (const char* mesh : {"tp=2", "tp=4"}) {
    expectTaken(convolutions(), mesh, {{"conv2d", 2}, {"conv2d_input_grad", 1}, {"conv2d_weight_grad", 2}});
  }
}

}  // namespace
}  // namespace weft::testing
