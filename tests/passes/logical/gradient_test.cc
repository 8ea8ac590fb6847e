// Every operator's gradient against central differences in f64.
//
// Tolerance. With step h = 1e-5 the difference quotient is off by h^2/6 times a third derivative of order 10 at most
// for these values (about 2e-10), and by rounding of the loss, 1e-15 / h = 1e-10. 1e-7 x (1 + |g|) leaves room for both
// and is far below any term that could be missing.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <set>
#include <utility>

#include "absl/strings/str_join.h"
#include "ir/nn/operator_interface.h"
#include "mlir/Pass/PassManager.h"
#include "passes/passes.h"
#include "tests/passes/logical/gradient_cases.h"
#include "tests/support/expand.h"
#include "tests/support/parse.h"

namespace weft::testing {
namespace {

constexpr double kStep = 1e-5;
constexpr double kTolerance = 1e-7;

HostTensor randomTensor(const std::vector<int64_t>& shape, bool positive, std::mt19937_64& generator) {
  HostTensor tensor(DType::kF64, shape);
  std::uniform_real_distribution<double> size(0.3, 1.3);
  for (int64_t i = 0; i < tensor.elements(); ++i) {
    double value = size(generator);
    tensor.data<double>()[i] = positive || generator() % 2 == 0 ? value : -value;
  }
  return tensor;
}

NamedTensors inputsOf(const GradientCase& test) {
  std::mt19937_64 generator(17);
  NamedTensors inputs = {{"weights", randomTensor(test.result, false, generator)}};
  for (const Parameter& parameter : test.parameters) {
    inputs[parameter.name] = randomTensor(parameter.shape, parameter.positive, generator);
  }
  for (const Ids& ids : test.ids) {
    inputs[ids.name] = HostTensor::of<int32_t>(ids.shape, ids.values);
  }
  return inputs;
}

mlir::func::FuncOp stepOf(mlir::ModuleOp module) {
  return module.lookupSymbol<mlir::func::FuncOp>("step");
}

mlir::LogicalResult buildGradients(mlir::ModuleOp module) {
  const ir::OperatorRegistry registry = ir::OperatorRegistry::builtin();
  mlir::PassManager manager(module.getContext());
  manager.addPass(createBuildGradientsPass(registry));
  return mlir::success(mlir::succeeded(manager.run(module)) && mlir::succeeded(expandRequired(module)));
}

class GradientTest : public ::testing::TestWithParam<GradientCase> {
 protected:
  double loss(mlir::func::FuncOp step, const NamedTensors& inputs) {
    absl::StatusOr<NamedTensors> results = interpreter_.run(step, inputs);
    EXPECT_TRUE(results.ok()) << results.status();
    return results.ok() ? results->at("loss").data<double>()[0] : std::nan("");
  }

  // d loss / d element by a central difference.
  double difference(mlir::func::FuncOp step, NamedTensors& inputs, double* element) {
    const double value = *element;
    *element = value + kStep;
    const double above = loss(step, inputs);
    *element = value - kStep;
    const double below = loss(step, inputs);
    *element = value;
    return (above - below) / (2 * kStep);
  }

  Modules modules_;
  Interpreter interpreter_;
};

TEST_P(GradientTest, AgreesWithFiniteDifferences) {
  const GradientCase& test = GetParam();
  auto forward = modules_.parse(gradientModule(test));
  ASSERT_TRUE(forward) << gradientModule(test);
  mlir::OwningOpRef<mlir::ModuleOp> backward = forward->clone();
  ASSERT_TRUE(mlir::succeeded(buildGradients(*backward)));
  ASSERT_TRUE(mlir::succeeded(expandRequired(*forward)));

  NamedTensors inputs = inputsOf(test);
  absl::StatusOr<NamedTensors> results = interpreter_.run(stepOf(*backward), inputs);
  ASSERT_TRUE(results.ok()) << results.status();
  for (const Parameter& parameter : test.parameters) {
    const HostTensor& gradient = results->at("grad." + parameter.name);
    ASSERT_EQ(gradient.shape, parameter.shape);
    for (int64_t i = 0; i < gradient.elements(); ++i) {
      double expected = difference(stepOf(*forward), inputs, inputs[parameter.name].data<double>() + i);
      EXPECT_NEAR(gradient.data<double>()[i], expected, kTolerance * (1 + std::abs(expected)))
          << "element " << i << " of " << parameter.name;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Operators, GradientTest, ::testing::ValuesIn(gradientCases()),
                         [](const auto& info) { return std::to_string(info.index) + "_" + info.param.name; });

// An operator either stands in a case above, or here with the reason why it has none.
TEST(GradientCoverage, EveryOperator) {
  std::set<std::string> covered = {
      "cast",
      "stop_gradient",  // in the tests below
      "compare",
      "custom",      // a user's own: tests/frontend/own_operator_test.cc
      "all_finite",  // bool results
      "argmax",
      "argmin",  // indices
      "random",
      "constant",
      "fill",
      "iota",  // no operand
      "relu_grad",
      "gelu_grad",
      "tanh_grad",
      "sigmoid_grad",
      "silu_grad",
      "softplus_grad",
      "hard_swish_grad",
      "leaky_relu_grad",
      "elu_grad",
      "prod_grad",
      "log_softmax_grad",
      "softmax_grad",
      "layer_norm_grad",
      "rms_norm_grad",
      "batch_norm_grad",
      "channel_sum",
      "channel_dot",
      "channel_affine",  // what batch norm is written with after differentiation
      "embedding_grad",
      "softmax_cross_entropy_grad",
      "pick_grad",
      "attention_grad",
      "conv2d_input_grad",
      "conv2d_weight_grad",
      "max_pool2d_grad",
      "avg_pool2d_grad",  // gradients themselves
      "sgd",
      "adam",
      "adam_direction",
      "rms_direction",
      "lion_direction",
      "descend",  // made after differentiation
  };
  for (const GradientCase& test : gradientCases()) {
    for (size_t at = test.body.find("nn."); at != std::string::npos; at = test.body.find("nn.", at + 1)) {
      size_t begin = at + 3;
      covered.insert(test.body.substr(begin, test.body.find_first_of(" \n", begin) - begin));
    }
  }
  Modules modules;
  for (mlir::RegisteredOperationName name : modules.context()->getRegisteredOperations()) {
    if (name.hasInterface<ir::OperatorInterface>()) {
      EXPECT_TRUE(covered.count(name.stripDialect().str())) << name.getStringRef().str();
    }
  }
}

absl::StatusOr<NamedTensors> gradientsOf(Modules& modules, const std::string& text, const NamedTensors& inputs) {
  auto module = modules.parse(text);
  if (!module || mlir::failed(buildGradients(*module))) {
    return absl::InvalidArgumentError("the module does not parse or differentiate");
  }
  return Interpreter().run(stepOf(*module), inputs);
}

TEST(Gradient, EqualElementsShareTheGradientOfMax) {
  Modules modules;
  auto results = gradientsOf(modules, R"(
    func.func @step(%a: tensor<3xf64> {nn.kind = "parameter", nn.name = "a"})
        -> (tensor<f64> {nn.kind = "loss", nn.name = "loss"}) {
      %l = nn.max %a {dims = array<i64: 0>} : (tensor<3xf64>) -> tensor<f64>
      return %l : tensor<f64>
    })",
                             {{"a", HostTensor::of<double>({3}, {2, 1, 2})}});
  ASSERT_TRUE(results.ok()) << results.status();
  EXPECT_EQ(results->at("grad.a").values<double>(), (std::vector<double>{0.5, 0, 0.5}));
}

TEST(Gradient, EqualOperandsShareTheGradientOfMaximum) {
  Modules modules;
  auto results = gradientsOf(modules, R"(
    func.func @step(%a: tensor<f64> {nn.kind = "parameter", nn.name = "a"},
                    %b: tensor<f64> {nn.kind = "parameter", nn.name = "b"})
        -> (tensor<f64> {nn.kind = "loss", nn.name = "loss"}) {
      %l = nn.maximum %a, %b : (tensor<f64>, tensor<f64>) -> tensor<f64>
      return %l : tensor<f64>
    })",
                             {{"a", HostTensor::of<double>({}, {2})}, {"b", HostTensor::of<double>({}, {2})}});
  ASSERT_TRUE(results.ok()) << results.status();
  EXPECT_EQ(results->at("grad.a").values<double>(), std::vector<double>{0.5});
  EXPECT_EQ(results->at("grad.b").values<double>(), std::vector<double>{0.5});
}

TEST(Gradient, OfAProductWithZeros) {
  Modules modules;
  auto results = gradientsOf(modules, R"(
    func.func @step(%a: tensor<3x3xf64> {nn.kind = "parameter", nn.name = "a"})
        -> (tensor<f64> {nn.kind = "loss", nn.name = "loss"}) {
      %p = nn.prod %a {dim = 1} : (tensor<3x3xf64>) -> tensor<3xf64>
      %l = nn.sum %p {dims = array<i64: 0>} : (tensor<3xf64>) -> tensor<f64>
      return %l : tensor<f64>
    })",
                             {{"a", HostTensor::of<double>({3, 3}, {2, 3, 4, 2, 0, 4, 0, 0, 4})}});
  ASSERT_TRUE(results.ok()) << results.status();
  EXPECT_EQ(results->at("grad.a").values<double>(), (std::vector<double>{12, 8, 6, 0, 8, 0, 0, 0, 0}));
}

// 0^b has slope b 0^(b-1), and none towards b; a^0 has none towards a.
TEST(Gradient, OfPowersAtZero) {
  Modules modules;
  auto results =
      gradientsOf(modules, R"(
    func.func @step(%a: tensor<3xf64> {nn.kind = "parameter", nn.name = "a"},
                    %b: tensor<3xf64> {nn.kind = "parameter", nn.name = "b"})
        -> (tensor<f64> {nn.kind = "loss", nn.name = "loss"}) {
      %p = nn.pow %a, %b : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
      %l = nn.sum %p {dims = array<i64: 0>} : (tensor<3xf64>) -> tensor<f64>
      return %l : tensor<f64>
    })",
                  {{"a", HostTensor::of<double>({3}, {0, 0, -2})}, {"b", HostTensor::of<double>({3}, {0, 1, 3})}});
  ASSERT_TRUE(results.ok()) << results.status();
  EXPECT_EQ(results->at("grad.a").values<double>(), (std::vector<double>{0, 1, 12}));
  EXPECT_EQ(results->at("grad.b").values<double>()[0], 0);
  EXPECT_EQ(results->at("grad.b").values<double>()[1], 0);
}

TEST(Gradient, CastGoesBackAndStopGradientStops) {
  Modules modules;
  auto results = gradientsOf(modules, R"(
    func.func @step(%a: tensor<2xf32> {nn.kind = "parameter", nn.name = "a"},
                    %b: tensor<2xf32> {nn.kind = "parameter", nn.name = "b"})
        -> (tensor<f64> {nn.kind = "loss", nn.name = "loss"}) {
      %stopped = nn.stop_gradient %a : (tensor<2xf32>) -> tensor<2xf32>
      %p = nn.mul %stopped, %b : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
      %wide = nn.cast %p : (tensor<2xf32>) -> tensor<2xf64>
      %l = nn.sum %wide {dims = array<i64: 0>} : (tensor<2xf64>) -> tensor<f64>
      return %l : tensor<f64>
    })",
                             {{"a", HostTensor::of<float>({2}, {3, 4})}, {"b", HostTensor::of<float>({2}, {5, 6})}});
  ASSERT_TRUE(results.ok()) << results.status();
  EXPECT_EQ(results->at("grad.a").values<float>(), (std::vector<float>{0, 0}));
  EXPECT_EQ(results->at("grad.b").values<float>(), (std::vector<float>{3, 4}));
}

// What an operator's expansion gives, against what it gives itself, on the same inputs. Returns the latter.
NamedTensors expectSameExpanded(const std::string& text, const NamedTensors& inputs, double tolerance,
                                const ir::ExpansionContext& context = {}) {
  Modules modules;
  auto module = modules.parse(text);
  EXPECT_TRUE(module) << text;
  auto function = module->lookupSymbol<mlir::func::FuncOp>("f");
  absl::StatusOr<NamedTensors> whole = Interpreter().run(function, inputs);
  EXPECT_TRUE(whole.ok()) << whole.status();
  ir::OperatorRegistry registry = ir::OperatorRegistry::builtin();
  mlir::Operation* op = &function.getBody().front().front();
  mlir::OpBuilder builder(op);
  if (registry.expansion(op) == nullptr) {
    ADD_FAILURE() << "no expansion: " << text;
    return {};
  }
  auto values = (*registry.expansion(op))(op, builder, context);
  EXPECT_TRUE(mlir::succeeded(values));
  op->replaceAllUsesWith(*values);
  op->erase();
  absl::StatusOr<NamedTensors> split = Interpreter().run(function, inputs);
  EXPECT_TRUE(split.ok()) << split.status();
  for (const auto& [name, a] : *whole) {
    const HostTensor& b = split->at(name);
    for (int64_t i = 0; i < a.elements(); ++i) {
      if (a.type == DType::kI32) {
        EXPECT_EQ(a.data<int32_t>()[i], b.data<int32_t>()[i]) << text << name << i;
      } else if (a.data<double>()[i] != b.data<double>()[i]) {  // infinities are
        EXPECT_NEAR(a.data<double>()[i], b.data<double>()[i], tolerance) << text << name << i;
      }
    }
  }
  return *std::move(whole);
}

std::string functionOf(const std::string& op, const std::string& result, bool two = false) {
  const std::string x = "tensor<4x5xf64>";
  return "func.func @f(%x: " + x + " {nn.name = \"x\"}" + (two ? ", %dy: " + x + " {nn.name = \"dy\"}" : "") +
         ") -> (" + result + " {nn.name = \"y\"}) {\n%y = nn." + op + " : (" + x + (two ? ", " + x : "") + ") -> " +
         result + "\nreturn %y : " + result + "\n}";
}

TEST(Expansion, SoftmaxAndItsLogarithm) {
  std::mt19937_64 generator(3);
  const NamedTensors one = {{"x", randomTensor({4, 5}, false, generator)}};
  NamedTensors two = one;
  two["dy"] = randomTensor({4, 5}, false, generator);
  for (const char* op : {"softmax", "log_softmax"}) {
    // Values below 4 in a few roundings of f64.
    expectSameExpanded(functionOf(std::string(op) + " %x", "tensor<4x5xf64>"), one, 1e-14);
    expectSameExpanded(functionOf(std::string(op) + "_grad %x, %dy", "tensor<4x5xf64>", true), two, 1e-14);
  }
}

std::string f64Type(const std::vector<int64_t>& shape) {
  return "tensor<" + absl::StrJoin(shape, "x") + "xf64>";
}

// A function of one operator: operands and results by name and type.
std::string functionOf(const std::string& call, const std::vector<std::pair<std::string, std::string>>& operands,
                       const std::vector<std::pair<std::string, std::string>>& results) {
  std::vector<std::string> arguments, names, types, made, madeNames, madeTypes;
  for (const auto& [name, type] : operands) {
    arguments.push_back("%" + name + ": " + type + " {nn.name = \"" + name + "\"}");
    names.push_back("%" + name);
    types.push_back(type);
  }
  for (const auto& [name, type] : results) {
    made.push_back(type + " {nn.name = \"" + name + "\"}");
    madeNames.push_back("%" + name + "_");
    madeTypes.push_back(type);
  }
  const auto list = [](const std::vector<std::string>& words) { return absl::StrJoin(words, ", "); };
  const size_t attributes = call.find(' ');
  return "func.func @f(" + list(arguments) + ") -> (" + list(made) + ") {\n" + list(madeNames) + " = nn." +
         call.substr(0, attributes) + " " + list(names) + call.substr(attributes) + " : (" + list(types) + ") -> (" +
         list(madeTypes) + ")\nreturn " + list(madeNames) + " : " + list(madeTypes) + "\n}";
}

// Alone and shared heads, more keys than queries and fewer; a bias that hides some keys, and of one row all.
TEST(Expansion, Attention) {
  struct Case {
    int64_t keyHeads, keys;
    bool causal;
    std::vector<int64_t> bias;
  };
  for (const Case& c : {Case{4, 5, false, {}}, Case{4, 3, true, {2, 4, 3, 3}}, Case{2, 7, true, {}},
                        Case{1, 2, true, {1, 4, 3, 2}}, Case{2, 5, false, {2, 1, 3, 5}}}) {
    std::mt19937_64 generator(7);
    const std::vector<int64_t> q = {2, 4, 3, 2};
    const std::vector<int64_t> k = {2, c.keyHeads, c.keys, 2};
    std::vector<std::pair<std::string, std::string>> operands = {
        {"q", f64Type(q)}, {"k", f64Type(k)}, {"v", f64Type(k)}};
    NamedTensors inputs = {{"q", randomTensor(q, false, generator)},
                           {"k", randomTensor(k, false, generator)},
                           {"v", randomTensor(k, false, generator)}};
    const std::string attributes = std::string("causal = ") + (c.causal ? "true" : "false") + ", scale = 0.7 : f64";
    std::vector<std::pair<std::string, std::string>> withBias = operands;
    if (!c.bias.empty()) {
      inputs["bias"] = randomTensor(c.bias, false, generator);
      double* bias = inputs["bias"].data<double>();
      std::fill_n(bias + c.keys, c.keys, -std::numeric_limits<double>::infinity());
      bias[1] = -std::numeric_limits<double>::infinity();
      withBias.push_back({"bias", f64Type(c.bias)});
    }
    // Values below 10 in a few roundings of f64.
    const NamedTensors made = expectSameExpanded(
        functionOf("attention {" + attributes + "}", withBias, {{"out", f64Type(q)}, {"lse", f64Type({2, 4, 3})}}),
        inputs, 1e-13);
    inputs["out"] = made.at("out");
    inputs["lse"] = made.at("lse");
    inputs["dout"] = randomTensor(q, false, generator);
    operands.insert(operands.end(), {{"out", f64Type(q)}, {"lse", f64Type({2, 4, 3})}, {"dout", f64Type(q)}});
    std::vector<std::pair<std::string, std::string>> gradients = {
        {"dq", f64Type(q)}, {"dk", f64Type(k)}, {"dv", f64Type(k)}};
    if (!c.bias.empty()) {
      operands.push_back(withBias.back());
      gradients.push_back({"dbias", f64Type(c.bias)});
    }
    expectSameExpanded(
        functionOf("attention_grad {" + attributes + ", bias_gradient = " + (c.bias.empty() ? "false" : "true") + "}",
                   operands, gradients),
        inputs, 1e-13);
  }
}

// Heights in as many blocks as the ranks allow, each with its borders.
TEST(Expansion, ConvolutionOfBlocks) {
  struct Case {
    std::vector<int64_t> x, weight, y, strides, paddings, dilations;
  };
  const std::vector<Case> cases = {
      {{2, 3, 8, 5}, {4, 3, 3, 3}, {2, 4, 8, 5}, {1, 1}, {1, 1}, {1, 1}},
      {{2, 2, 16, 4}, {2, 1, 7, 3}, {2, 2, 8, 2}, {2, 2}, {3, 1}, {1, 1}},
      {{1, 2, 12, 3}, {2, 2, 3, 1}, {1, 2, 12, 3}, {1, 1}, {2, 0}, {2, 1}},
  };
  for (const Case& c : cases) {
    const auto list = [](const std::vector<int64_t>& pair) { return "array<i64: " + absl::StrJoin(pair, ", ") + ">"; };
    const std::string steps = " {strides = " + list(c.strides) + ", paddings = " + list(c.paddings) +
                              ", dilations = " + list(c.dilations) + "}";
    std::mt19937_64 generator(5);
    const NamedTensors inputs = {{"x", randomTensor(c.x, false, generator)},
                                 {"w", randomTensor(c.weight, false, generator)},
                                 {"y", randomTensor(c.y, false, generator)}};
    const std::pair<std::string, std::string> x = {"x", f64Type(c.x)};
    const std::pair<std::string, std::string> w = {"w", f64Type(c.weight)};
    const std::pair<std::string, std::string> y = {"y", f64Type(c.y)};
    for (const int64_t ranks : {1, 2, 4, 8}) {
      // Sums of fewer than 100 products below 2 in a few roundings of f64.
      expectSameExpanded(functionOf("conv2d" + steps, {x, w}, {{"made", y.second}}), inputs, 1e-12, {1, ranks});
      expectSameExpanded(functionOf("conv2d_input_grad" + steps, {y, w}, {{"made", x.second}}), inputs, 1e-12,
                         {1, ranks});
      expectSameExpanded(functionOf("conv2d_weight_grad" + steps, {x, y}, {{"made", w.second}}), inputs, 1e-12,
                         {1, ranks});
    }
  }
}

// Ties, infinities and NaNs: the first counts.
TEST(Expansion, ArgmaxAndArgmin) {
  const double nan = std::nan("");
  const double inf = std::numeric_limits<double>::infinity();
  const NamedTensors inputs = {{"x", HostTensor::of<double>({4, 5}, {1,    3,    3,    -2,   -2,    //
                                                                     nan,  7,    nan,  -7,   0,     //
                                                                     -inf, -inf, -inf, -inf, -inf,  //
                                                                     inf,  nan,  -inf, inf,  0})}};
  for (const char* op : {"argmax", "argmin"}) {
    expectSameExpanded(functionOf(std::string(op) + " %x {dim = 1}", "tensor<4xi32>"), inputs, 0);
    expectSameExpanded(functionOf(std::string(op) + " %x {dim = 0}", "tensor<5xi32>"), inputs, 0);
  }
}

// The class-split form gives what the operator gives, up to rounding of f64.
TEST(Expansion, SoftmaxCrossEntropy) {
  Modules modules;
  auto module = modules.parse(R"(
    func.func @f(%x: tensor<3x4xf64> {nn.name = "x"}, %i: tensor<3xi32> {nn.name = "i"})
        -> (tensor<3xf64> {nn.name = "loss"}, tensor<3xf64> {nn.name = "lse"}) {
      %loss, %lse = nn.softmax_cross_entropy %x, %i {rows = 4, ignore_index = -100}
          : (tensor<3x4xf64>, tensor<3xi32>) -> (tensor<3xf64>, tensor<3xf64>)
      return %loss, %lse : tensor<3xf64>, tensor<3xf64>
    })");
  auto function = module->lookupSymbol<mlir::func::FuncOp>("f");
  std::mt19937_64 generator(3);
  NamedTensors inputs = {{"x", randomTensor({3, 4}, false, generator)},
                         {"i", HostTensor::of<int32_t>({3}, {2, -100, 0})}};
  absl::StatusOr<NamedTensors> whole = Interpreter().run(function, inputs);
  ASSERT_TRUE(whole.ok()) << whole.status();

  ir::OperatorRegistry registry = ir::OperatorRegistry::builtin();
  mlir::Operation* op = &function.getBody().front().front();
  mlir::OpBuilder builder(op);
  ASSERT_NE(registry.expansion(op), nullptr);
  auto values = (*registry.expansion(op))(op, builder, {});
  ASSERT_TRUE(mlir::succeeded(values));
  op->replaceAllUsesWith(*values);
  op->erase();
  absl::StatusOr<NamedTensors> split = Interpreter().run(function, inputs);
  ASSERT_TRUE(split.ok()) << split.status();
  for (const char* name : {"loss", "lse"}) {
    for (int64_t i = 0; i < 3; ++i) {
      EXPECT_NEAR(whole->at(name).data<double>()[i], split->at(name).data<double>()[i], 1e-14) << name << i;
    }
  }
}

}  // namespace
}  // namespace weft::testing
