#include "tests/passes/logical/gradient_cases.h"

namespace weft::testing {
namespace {

using Cases = std::vector<GradientCase>;

std::string tensorType(const std::vector<int64_t>& shape, const std::string& element) {
  std::string text = "tensor<";
  for (int64_t dim : shape) {
    text += std::to_string(dim) + "x";
  }
  return text + element + ">";
}

std::string argument(const std::string& name, const std::string& type, const std::string& kind) {
  return "%" + name + ": " + type + " {nn.kind = \"" + kind + "\", nn.name = \"" + name + "\"}";
}

void append(Cases& cases, Cases more) {
  cases.insert(cases.end(), more.begin(), more.end());
}

Cases unaryCases() {
  Cases cases;
  for (const char* op : {"neg",
                         "exp",
                         "tanh",
                         "relu",
                         "constrain {layout = \"[{},{}]\"}",
                         "gelu {approximate = \"tanh\"}",
                         "gelu {approximate = \"none\"}",
                         "softmax",
                         "log_softmax",
                         "abs",
                         "sign",
                         "floor",
                         "ceil",
                         "erf",
                         "sin",
                         "cos",
                         "sigmoid",
                         "silu",
                         "softplus",
                         "hard_swish",
                         "leaky_relu {slope = 0.1}",
                         "elu {alpha = 1.5}",
                         "cumsum {dim = 0}",
                         "cumsum {dim = 1, reverse = true}",
                         "flip {dims = array<i64: 0, 1>}"}) {
    std::string text = op;
    size_t space = text.find(' ');
    std::string mnemonic = text.substr(0, space);
    std::string attributes = space == std::string::npos ? "" : text.substr(space);
    cases.push_back({mnemonic,
                     {{"a", {2, 3}}},
                     "%y = nn." + mnemonic + " %a" + attributes + " : (tensor<2x3xf64>) -> tensor<2x3xf64>",
                     {2, 3}});
  }
  for (const char* op : {"log", "sqrt", "rsqrt"}) {
    cases.push_back({op,
                     {{"a", {2, 3}, true}},
                     "%y = nn." + std::string(op) + " %a : (tensor<2x3xf64>) -> tensor<2x3xf64>",
                     {2, 3}});
  }
  return cases;
}

Cases binaryCases() {
  struct Shapes {
    std::string a, b;
    std::vector<int64_t> aShape, bShape;
  };
  const std::vector<Shapes> shapes = {
      {"tensor<2x3xf64>", "tensor<2x3xf64>", {2, 3}, {2, 3}}, {"tensor<2x3xf64>", "tensor<3xf64>", {2, 3}, {3}},
      {"tensor<f64>", "tensor<2x3xf64>", {}, {2, 3}},         {"tensor<2x1xf64>", "tensor<1x3xf64>", {2, 1}, {1, 3}},
      {"tensor<1xf64>", "tensor<2x3xf64>", {1}, {2, 3}},
  };
  Cases cases;
  for (const char* op : {"add", "sub", "mul", "div", "maximum", "minimum"}) {
    for (const Shapes& s : shapes) {
      cases.push_back({std::string(op) + "_" + std::to_string(s.aShape.size()) + std::to_string(s.bShape.size()),
                       {{"a", s.aShape}, {"b", s.bShape}},
                       "%y = nn." + std::string(op) + " %a, %b : (" + s.a + ", " + s.b + ") -> tensor<2x3xf64>",
                       {2, 3}});
    }
  }
  return cases;
}

// Positive bases; and what is beyond the random values on both sides of hard_swish's bends.
Cases powerCases() {
  return {{"pow",
           {{"a", {2, 3}, true}, {"b", {3}}},
           "%y = nn.pow %a, %b : (tensor<2x3xf64>, tensor<3xf64>) -> tensor<2x3xf64>",
           {2, 3}},
          {"hard_swish_wide",
           {{"a", {4, 3}}},
           R"(%f = nn.fill {value = 5.0 : f64} : () -> tensor<f64>
              %w = nn.mul %a, %f : (tensor<4x3xf64>, tensor<f64>) -> tensor<4x3xf64>
              %y = nn.hard_swish %w : (tensor<4x3xf64>) -> tensor<4x3xf64>)",
           {4, 3}}};
}

Cases alongCases() {
  return {{"prod", {{"a", {2, 3, 4}}}, "%y = nn.prod %a {dim = 1} : (tensor<2x3x4xf64>) -> tensor<2x4xf64>", {2, 4}},
          {"prod_last", {{"a", {2, 3}}}, "%y = nn.prod %a {dim = 1} : (tensor<2x3xf64>) -> tensor<2xf64>", {2}},
          {"sort",
           {{"a", {2, 5}}},
           "%y, %i = nn.sort %a {count = 5} : (tensor<2x5xf64>) -> (tensor<2x5xf64>, tensor<2x5xi32>)",
           {2, 5}},
          {"sort_first",
           {{"a", {2, 5}}},
           "%y, %i = nn.sort %a {count = 2, descending = true} : (tensor<2x5xf64>) -> (tensor<2x2xf64>, "
           "tensor<2x2xi32>)",
           {2, 2}}};
}

Cases selectCases() {
  return {{"select",
           {{"a", {2, 3}}, {"b", {3}}},
           R"(%z = nn.fill {value = 0.0 : f64} : () -> tensor<f64>
              %c = nn.compare %a, %z {predicate = "gt"} : (tensor<2x3xf64>, tensor<f64>) -> tensor<2x3xi1>
              %y = nn.select %c, %a, %b : (tensor<2x3xi1>, tensor<2x3xf64>, tensor<3xf64>) -> tensor<2x3xf64>)",
           {2, 3}}};
}

Cases contractionCases() {
  auto matmul = [](std::string name, std::vector<int64_t> a, std::vector<int64_t> b, std::vector<int64_t> y,
                   std::string attributes, std::string types) {
    return GradientCase{
        "matmul_" + name, {{"a", a}, {"b", b}}, "%y = nn.matmul %a, %b " + attributes + " : " + types, y};
  };
  return {
      matmul("plain", {2, 3}, {3, 4}, {2, 4}, "", "(tensor<2x3xf64>, tensor<3x4xf64>) -> tensor<2x4xf64>"),
      matmul("ta", {3, 2}, {3, 4}, {2, 4}, "{transpose_a = true}",
             "(tensor<3x2xf64>, tensor<3x4xf64>) -> tensor<2x4xf64>"),
      matmul("tb", {2, 3}, {4, 3}, {2, 4}, "{transpose_b = true}",
             "(tensor<2x3xf64>, tensor<4x3xf64>) -> tensor<2x4xf64>"),
      matmul("tab", {3, 2}, {4, 3}, {2, 4}, "{transpose_a = true, transpose_b = true}",
             "(tensor<3x2xf64>, tensor<4x3xf64>) -> tensor<2x4xf64>"),
      matmul("batch", {2, 2, 3}, {2, 3, 2}, {2, 2, 2}, "",
             "(tensor<2x2x3xf64>, tensor<2x3x2xf64>) -> tensor<2x2x2xf64>"),
      matmul("batch_shared", {2, 2, 3}, {3, 2}, {2, 2, 2}, "",
             "(tensor<2x2x3xf64>, tensor<3x2xf64>) -> tensor<2x2x2xf64>"),
      {"contract",
       {{"a", {2, 3, 2}}, {"b", {2, 2, 3}}},
       R"(%y = nn.contract %a, %b {spec = "b t k, k q n -> b t q n"}
            : (tensor<2x3x2xf64>, tensor<2x2x3xf64>) -> tensor<2x3x2x3xf64>)",
       {2, 3, 2, 3}},
      {"contract_outer",
       {{"a", {2, 3}}, {"b", {3, 2}}},
       R"(%y = nn.contract %a, %b {spec = "m n, n m -> n m"} : (tensor<2x3xf64>, tensor<3x2xf64>) -> tensor<3x2xf64>)",
       {3, 2}},
  };
}

// Strides that leave rows over, paddings, windows that overlap and windows that leave gaps.
Cases imageCases() {
  auto steps = [](const std::string& strides, const std::string& paddings) {
    return "strides = array<i64: " + strides + ">, paddings = array<i64: " + paddings + ">}";
  };
  Cases cases = {
      {"conv2d",
       {{"a", {2, 2, 4, 3}}, {"w", {3, 2, 2, 2}}},
       "%y = nn.conv2d %a, %w {" + steps("1, 1", "0, 0") +
           " : (tensor<2x2x4x3xf64>, tensor<3x2x2x2xf64>) -> tensor<2x3x3x2xf64>",
       {2, 3, 3, 2}},
      {"conv2d_steps",
       {{"a", {2, 2, 6, 5}}, {"w", {2, 2, 3, 2}}},
       "%y = nn.conv2d %a, %w {" + steps("2, 3", "1, 1") +
           " : (tensor<2x2x6x5xf64>, tensor<2x2x3x2xf64>) -> tensor<2x2x3x2xf64>",
       {2, 2, 3, 2}},
      {"conv2d_point",
       {{"a", {1, 2, 2, 2}}, {"w", {3, 2, 1, 1}}},
       "%y = nn.conv2d %a, %w {" + steps("1, 1", "0, 0") +
           " : (tensor<1x2x2x2xf64>, tensor<3x2x1x1xf64>) -> tensor<1x3x2x2xf64>",
       {1, 3, 2, 2}},
  };
  for (const std::string op : {"max_pool2d", "avg_pool2d"}) {
    cases.push_back({op,
                     {{"a", {2, 2, 4, 5}}},
                     "%y = nn." + op + " %a {window = array<i64: 2, 2>, " + steps("2, 2", "0, 0") +
                         " : (tensor<2x2x4x5xf64>) -> tensor<2x2x2x2xf64>",
                     {2, 2, 2, 2}});
    cases.push_back({op + "_steps",
                     {{"a", {1, 2, 5, 4}}},
                     "%y = nn." + op + " %a {window = array<i64: 3, 2>, " + steps("1, 3", "2, 1") +
                         " : (tensor<1x2x5x4xf64>) -> tensor<1x2x7x2xf64>",
                     {1, 2, 7, 2}});
  }
  return cases;
}

// In groups, with gaps in the window; and the transposed convolution, which is the gradient of one.
Cases groupedCases() {
  const std::string steps =
      " {strides = array<i64: 2, 1>, paddings = array<i64: 1, 2>, dilations = array<i64: 1, 2>} : ";
  return {
      {"conv2d_groups",
       {{"a", {2, 4, 5, 4}}, {"w", {6, 2, 3, 2}}},
       "%y = nn.conv2d %a, %w" + steps + "(tensor<2x4x5x4xf64>, tensor<6x2x3x2xf64>) -> tensor<2x6x3x6xf64>",
       {2, 6, 3, 6}},
      {"conv2d_transposed",
       {{"a", {2, 6, 3, 6}}, {"w", {6, 2, 3, 2}}},
       "%y = nn.conv2d_input_grad %a, %w" + steps + "(tensor<2x6x3x6xf64>, tensor<6x2x3x2xf64>) -> tensor<2x4x5x4xf64>",
       {2, 4, 5, 4}}};
}

Cases shapeCases() {
  return {
      {"reshape", {{"a", {2, 6}}}, "%y = nn.reshape %a : (tensor<2x6xf64>) -> tensor<3x1x4xf64>", {3, 1, 4}},
      {"transpose",
       {{"a", {2, 3, 4}}},
       "%y = nn.transpose %a {permutation = array<i64: 2, 0, 1>} : (tensor<2x3x4xf64>) -> tensor<4x2x3xf64>",
       {4, 2, 3}},
      {"slice",
       {{"a", {4, 3}}},
       "%y = nn.slice %a {offsets = array<i64: 1, 0>, sizes = array<i64: 2, 3>} : (tensor<4x3xf64>) -> tensor<2x3xf64>",
       {2, 3}},
      {"pad",
       {{"a", {2, 3}}},
       "%y = nn.pad %a {low = array<i64: 1, 0>, high = array<i64: 0, 2>} : (tensor<2x3xf64>) -> tensor<3x5xf64>",
       {3, 5}},
      {"pad_value",
       {{"a", {2, 3}}},
       "%y = nn.pad %a {low = array<i64: 1, 0>, high = array<i64: 0, 2>, value = 2.5} : (tensor<2x3xf64>) -> "
       "tensor<3x5xf64>",
       {3, 5}},
      {"concat",
       {{"a", {2, 3}}, {"b", {2, 1}}},
       "%y = nn.concat %a, %b, %a {dim = 1} : (tensor<2x3xf64>, tensor<2x1xf64>, tensor<2x3xf64>) -> tensor<2x7xf64>",
       {2, 7}},
      {"broadcast", {{"a", {3, 1}}}, "%y = nn.broadcast %a : (tensor<3x1xf64>) -> tensor<2x3x4xf64>", {2, 3, 4}},
  };
}

Cases reductionCases() {
  Cases cases;
  for (const char* op : {"sum", "max", "min", "mean"}) {
    std::string count = std::string(op) == "mean" ? ", count = 8" : "";
    std::string name = op;
    cases.push_back({name + "_drop",
                     {{"a", {2, 3, 4}}},
                     "%y = nn." + name + " %a {dims = array<i64: 0, 2>, keep_dims = false" + count +
                         "} : (tensor<2x3x4xf64>) -> tensor<3xf64>",
                     {3}});
    cases.push_back({name + "_keep",
                     {{"a", {2, 3, 4}}},
                     "%y = nn." + name + " %a {dims = array<i64: 1>, keep_dims = true" + count +
                         "} : (tensor<2x3x4xf64>) -> tensor<2x1x4xf64>",
                     {2, 1, 4}});
  }
  cases.push_back({"sum_squares", {{"a", {2, 3}}}, "%y = nn.sum_squares %a : (tensor<2x3xf64>) -> tensor<f64>", {}});
  return cases;
}

Cases normalizationCases() {
  return {{"layer_norm",
           {{"a", {2, 2, 4}}, {"g", {4}}, {"b", {4}}},
           R"(%y, %m, %r = nn.layer_norm %a, %g, %b {epsilon = 1.0e-5}
                : (tensor<2x2x4xf64>, tensor<4xf64>, tensor<4xf64>)
                -> (tensor<2x2x4xf64>, tensor<2x2xf64>, tensor<2x2xf64>))",
           {2, 2, 4}},
          {"rms_norm",
           {{"a", {2, 2, 4}}, {"g", {4}}},
           R"(%y, %r = nn.rms_norm %a, %g {epsilon = 1.0e-2}
                : (tensor<2x2x4xf64>, tensor<4xf64>) -> (tensor<2x2x4xf64>, tensor<2x2xf64>))",
           {2, 2, 4}},
          {"batch_norm",
           {{"a", {3, 2, 2, 2}}, {"g", {2}}, {"b", {2}}},
           R"(%y, %m, %r, %s = nn.batch_norm %a, %g, %b {epsilon = 1.0e-5}
                : (tensor<3x2x2x2xf64>, tensor<2xf64>, tensor<2xf64>)
                -> (tensor<3x2x2x2xf64>, tensor<1x2xf64>, tensor<1x2xf64>, tensor<1x2xf64>))",
           {3, 2, 2, 2}}};
}

Cases indexCases() {
  const Ids labels{"i", {2, 2}, {0, 3, -100, 3}};
  const Ids inside{"i", {2, 2}, {0, 3, 2, 3}};
  const std::string crossEntropy =
      R"(%loss, %lse = nn.softmax_cross_entropy %a, %i {rows = 4, ignore_index = -100}
           : (tensor<2x2x4xf64>, tensor<2x2xi32>) -> (tensor<2x2xf64>, tensor<2x2xf64>)
      )";
  return {
      {"embedding",
       {{"a", {4, 3}}},
       "%y = nn.embedding %a, %i {rows = 4} : (tensor<4x3xf64>, tensor<2x2xi32>) -> tensor<2x2x3xf64>",
       {2, 2, 3},
       {inside}},
      {"cross_entropy",
       {{"a", {2, 2, 4}}},
       crossEntropy + "%y = nn.neg %loss : (tensor<2x2xf64>) -> tensor<2x2xf64>",
       {2, 2},
       {labels}},
      {"cross_entropy_lse",
       {{"a", {2, 2, 4}}},
       crossEntropy + "%y = nn.mul %lse, %lse : (tensor<2x2xf64>, tensor<2x2xf64>) -> tensor<2x2xf64>",
       {2, 2},
       {labels}},
      {"cross_entropy_both",
       {{"a", {2, 2, 4}}},
       crossEntropy + "%y = nn.mul %loss, %lse : (tensor<2x2xf64>, tensor<2x2xf64>) -> tensor<2x2xf64>",
       {2, 2},
       {labels}},
      {"gather",
       {{"a", {2, 4, 2}}},
       "%y = nn.gather %a, %i {dim = 1, rows = 4} : (tensor<2x4x2xf64>, tensor<2x3x2xi32>) -> tensor<2x3x2xf64>",
       {2, 3, 2},
       {{"i", {2, 3, 2}, {0, 3, 3, 3, 1, 3, 2, 0, 2, 1, 2, 1}}}},
      {"scatter_add",
       {{"a", {3, 2}}},
       "%y = nn.scatter_add %i, %a {dim = 0, rows = 4} : (tensor<3x2xi32>, tensor<3x2xf64>) -> tensor<4x2xf64>",
       {4, 2},
       {{"i", {3, 2}, {1, 3, 1, 0, 2, 3}}}},
      {"pick",
       {{"a", {2, 2, 4}}},
       "%y = nn.pick %a, %i : (tensor<2x2x4xf64>, tensor<2x2xi32>) -> tensor<2x2xf64>",
       {2, 2},
       {inside}},
  };
}

Cases attentionCases() {
  auto attention = [](std::string name, std::string causal, std::string s, int64_t length) {
    return GradientCase{"attention_" + name,
                        {{"q", {1, 2, 3, 2}}, {"k", {1, 2, length, 2}}, {"v", {1, 2, length, 2}}},
                        "%y, %lse = nn.attention %q, %k, %v {causal = " + causal +
                            ", scale = 0.7} : (tensor<1x2x3x2xf64>, tensor<1x2x" + s + "x2xf64>, tensor<1x2x" + s +
                            "x2xf64>) -> (tensor<1x2x3x2xf64>, tensor<1x2x3xf64>)",
                        {1, 2, 3, 2}};
  };
  return {attention("causal", "true", "3", 3), attention("full", "false", "4", 4)};
}

// Four heads that share two heads of keys, with a bias that stretches over what has size 1.
Cases biasCases() {
  Cases cases;
  for (const std::vector<int64_t>& bias :
       {std::vector<int64_t>{2, 4, 3, 5}, {1, 4, 3, 5}, {2, 1, 1, 5}, {1, 1, 3, 5}}) {
    const std::string type = tensorType(bias, "f64");
    cases.push_back(
        {"attention_bias_" + std::to_string(cases.size()),
         {{"q", {2, 4, 3, 2}}, {"k", {2, 2, 5, 2}}, {"v", {2, 2, 5, 2}}, {"b", bias}},
         "%y, %lse = nn.attention %q, %k, %v, %b {causal = " + std::string(cases.size() % 2 == 0 ? "true" : "false") +
             ", scale = 0.7} : (tensor<2x4x3x2xf64>, tensor<2x2x5x2xf64>, tensor<2x2x5x2xf64>, " + type +
             ") -> (tensor<2x4x3x2xf64>, tensor<2x4x3xf64>)",
         {2, 4, 3, 2}});
  }
  return cases;
}

// The tables are inputs that no parameter reaches: their values need be no sines.
Cases rotaryCases() {
  Cases cases;
  for (const std::string form : {"", "interleaved = true", "inverse = true"}) {
    cases.push_back(
        {"rotary_" + std::to_string(cases.size()),
         {{"a", {2, 3, 4}}},
         R"(%c = nn.constant {value = dense<[[0.5, -0.3], [0.1, 0.9], [-0.7, 0.2]]> : tensor<3x2xf64>} : () -> tensor<3x2xf64>
                        %s = nn.constant {value = dense<[[0.2, 0.8], [-0.4, 0.6], [0.3, -0.1]]> : tensor<3x2xf64>} : () -> tensor<3x2xf64>
                        %y = nn.rotary %a, %c, %s {)" +
             form + "} : (tensor<2x3x4xf64>, tensor<3x2xf64>, tensor<3x2xf64>) -> tensor<2x3x4xf64>",
         {2, 3, 4}});
  }
  return cases;
}

Cases sourceCases() {
  return {{"dropout",
           {{"a", {4, 4}}},
           "%y = nn.dropout %a, %i {rate = 0.5, seed = 7, key = 3} : (tensor<4x4xf64>, tensor<i32>) -> tensor<4x4xf64>",
           {4, 4},
           {{"i", {}, {5}}}}};
}

// A value used several times, a value that does not depend on a parameter, one that nothing reads.
Cases graphCases() {
  return {{"shared",
           {{"a", {2, 2}}, {"b", {2, 2}}},
           R"(%0 = nn.matmul %a, %b : (tensor<2x2xf64>, tensor<2x2xf64>) -> tensor<2x2xf64>
              %1 = nn.mul %0, %a : (tensor<2x2xf64>, tensor<2x2xf64>) -> tensor<2x2xf64>
              %2 = nn.exp %b : (tensor<2x2xf64>) -> tensor<2x2xf64>
              %y = nn.add %1, %0 : (tensor<2x2xf64>, tensor<2x2xf64>) -> tensor<2x2xf64>)",
           {2, 2}}};
}

}  // namespace

std::vector<GradientCase> gradientCases() {
  Cases cases = unaryCases();
  for (Cases more : {binaryCases(), powerCases(), alongCases(), selectCases(), contractionCases(), imageCases(),
                     groupedCases(), shapeCases(), reductionCases(), normalizationCases(), indexCases(),
                     attentionCases(), biasCases(), rotaryCases(), sourceCases(), graphCases()}) {
    append(cases, std::move(more));
  }
  return cases;
}

std::string gradientModule(const GradientCase& test) {
  std::string type = tensorType(test.result, "f64");
  std::string arguments = argument("weights", type, "input");
  for (const Parameter& parameter : test.parameters) {
    arguments += ", " + argument(parameter.name, tensorType(parameter.shape, "f64"), "parameter");
  }
  for (const Ids& ids : test.ids) {
    arguments += ", " + argument(ids.name, tensorType(ids.shape, "i32"), "input");
  }
  std::string dims;
  for (size_t d = 0; d < test.result.size(); ++d) {
    dims += (d == 0 ? ": " : ", ") + std::to_string(d);
  }
  return "func.func @step(" + arguments + ") -> (tensor<f64> {nn.kind = \"loss\", nn.name = \"loss\"}) {\n" +
         test.body + "\n%weighted = nn.mul %y, %weights : (" + type + ", " + type + ") -> " + type +
         "\n%total = nn.sum %weighted {dims = array<i64" + dims + ">} : (" + type + ") -> tensor<f64>" +
         "\nreturn %total : tensor<f64>\n}";
}

}  // namespace weft::testing
