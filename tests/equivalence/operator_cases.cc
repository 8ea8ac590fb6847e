#include "tests/equivalence/operator_cases.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace weft::testing {
namespace {

using Cases = std::vector<OperatorCase>;
using Dims = std::vector<int64_t>;

TensorLine real(Dims shape) {
  return {"", std::move(shape)};
}
TensorLine positive(Dims shape) {
  return {"", std::move(shape), "f64", true};
}
TensorLine ids(Dims shape, int64_t bound) {
  return {"", std::move(shape), "i32", false, bound};
}
TensorLine integers(Dims shape) {
  return {"", std::move(shape), "i32"};
}
TensorLine boolean(Dims shape) {
  return {"", std::move(shape), "i1"};
}

void append(Cases& cases, Cases more) {
  cases.insert(cases.end(), more.begin(), more.end());
}

Cases unaryCases() {
  Cases cases;
  for (const char* op : {"neg", "exp", "tanh", "relu", "stop_gradient", "abs", "sign", "floor", "ceil", "erf", "sin",
                         "cos", "sigmoid", "silu", "softplus", "hard_swish"}) {
    cases.push_back({op, op, {real({8, 12})}, "", {real({8, 12})}});
  }
  for (const char* op : {"log", "sqrt", "rsqrt"}) {
    cases.push_back({op, op, {positive({8, 12})}, "", {real({8, 12})}});
  }
  for (const char* form : {"tanh", "none"}) {
    const std::string attribute = absl::StrCat("approximate = \"", form, "\"");
    cases.push_back({absl::StrCat("gelu_", form), "gelu", {real({8, 12})}, attribute, {real({8, 12})}});
    cases.push_back({absl::StrCat("gelu_grad_", form),
                     "gelu_grad",
                     {real({8, 12}), real({8, 12})},
                     attribute,
                     {real({8, 12})},
                     1,
                     false});
  }
  for (const auto& [op, number] : {std::pair("leaky_relu", "slope"), std::pair("elu", "alpha")}) {
    const std::string attribute = absl::StrCat(number, " = 0.3 : f64");
    cases.push_back({op, op, {real({8, 12})}, attribute, {real({8, 12})}});
    const std::string gradient = absl::StrCat(op, "_grad");
    cases.push_back({gradient, gradient, {real({8, 12}), real({8, 12})}, attribute, {real({8, 12})}, 1, false});
  }
  for (const char* op : {"relu_grad", "tanh_grad", "sigmoid_grad", "silu_grad", "softplus_grad", "hard_swish_grad"}) {
    cases.push_back({op, op, {real({8, 12}), real({8, 12})}, "", {real({8, 12})}, 1, false});
  }
  cases.push_back({"constrain", "constrain", {real({8, 12})}, "layout = \"[{},{}]\"", {real({8, 12})}});
  cases.push_back({"cast", "cast", {ids({8, 12}, 100)}, "", {real({8, 12})}});
  return cases;
}

Cases binaryCases() {
  const std::vector<std::pair<Dims, Dims>> shapes = {
      {{8, 12}, {8, 12}}, {{8, 12}, {12}}, {{}, {8, 12}}, {{8, 1}, {1, 12}}, {{1}, {8, 12}}};
  Cases cases;
  for (const char* op : {"add", "sub", "mul", "div", "maximum", "minimum"}) {
    for (size_t s = 0; s < shapes.size(); ++s) {
      cases.push_back(
          {absl::StrCat(op, "_", s), op, {real(shapes[s].first), real(shapes[s].second)}, "", {real({8, 12})}});
    }
  }
  cases.push_back({"pow", "pow", {positive({8, 12}), real({12})}, "", {real({8, 12})}});
  cases.push_back({"compare", "compare", {real({8, 12}), real({12})}, "predicate = \"gt\"", {boolean({8, 12})}, 0});
  cases.push_back({"select", "select", {boolean({8, 12}), real({8, 12}), real({12})}, "", {real({8, 12})}});
  return cases;
}

Cases contractionCases() {
  auto two = [](const std::string& name, const Dims& a, const Dims& b, const Dims& y, const std::string& attributes) {
    return OperatorCase{"matmul_" + name, "matmul", {real(a), real(b)}, attributes, {real(y)}};
  };
  return {
      two("plain", {8, 12}, {12, 6}, {8, 6}, ""),
      two("ta", {12, 8}, {12, 6}, {8, 6}, "transpose_a = true"),
      two("tb", {8, 12}, {6, 12}, {8, 6}, "transpose_b = true"),
      two("tab", {12, 8}, {6, 12}, {8, 6}, "transpose_a = true, transpose_b = true"),
      two("batch", {4, 6, 8}, {4, 8, 6}, {4, 6, 6}, ""),
      two("shared", {4, 6, 8}, {8, 6}, {4, 6, 6}, ""),
      {"contract",
       "contract",
       {real({4, 6, 8}), real({8, 3, 2})},
       "spec = \"b t k, k q n -> b t q n\"",
       {real({4, 6, 3, 2})}},
      {"contract_outer", "contract", {real({8, 6}), real({6, 8})}, "spec = \"m n, n m -> n m\"", {real({6, 8})}},
  };
}

Cases imageCases() {
  const std::string steps = "strides = array<i64: 2, 1>, paddings = array<i64: 1, 0>";
  const std::string pooled = "window = array<i64: 3, 2>, " + steps;
  const Dims x = {4, 6, 6, 5};
  const Dims weight = {8, 6, 3, 2};
  const Dims y = {4, 8, 3, 4};
  const Dims pool = {4, 6, 3, 4};
  return {
      {"conv2d", "conv2d", {real(x), real(weight)}, steps, {real(y)}},
      {"conv2d_input_grad", "conv2d_input_grad", {real(y), real(weight)}, steps, {real(x)}, 1, false},
      {"conv2d_weight_grad", "conv2d_weight_grad", {real(x), real(y)}, steps, {real(weight)}, 1, false},
      {"max_pool2d", "max_pool2d", {real(x)}, pooled, {real(pool)}},
      {"max_pool2d_grad", "max_pool2d_grad", {real(x), real(pool)}, pooled, {real(x)}, 1, false},
      {"avg_pool2d", "avg_pool2d", {real(x)}, pooled, {real(pool)}},
      {"avg_pool2d_grad", "avg_pool2d_grad", {real(pool)}, pooled, {real(x)}, 1, false},
  };
}

// Convolutions in groups: six of two channels, and each channel alone.
Cases groupedCases() {
  const std::string steps = "strides = array<i64: 1, 1>, paddings = array<i64: 1, 0>, dilations = array<i64: 1, 2>";
  Cases cases;
  for (const int64_t channels : {2, 1}) {
    const Dims x = {4, 12, 4, 5};
    const Dims weight = {24, channels, 3, 2};
    const Dims y = {4, 24, 4, 3};
    const std::string name = absl::StrCat("conv2d_groups_of_", channels);
    cases.push_back({name, "conv2d", {real(x), real(weight)}, steps, {real(y)}});
    cases.push_back({name + "_input_grad", "conv2d_input_grad", {real(y), real(weight)}, steps, {real(x)}});
    cases.push_back({name + "_weight_grad", "conv2d_weight_grad", {real(x), real(y)}, steps, {real(weight)}, 1, false});
  }
  return cases;
}

// Images whose height may be split: by windows that are patches, and by an expansion that exchanges borders.
Cases splitImageCases() {
  struct Window {
    const char* name;
    Dims x, weight, y;
    const char* steps;
  };
  const std::vector<Window> windows = {
      {"same", {2, 2, 12, 5}, {4, 2, 3, 3}, {2, 4, 12, 5}, "strides = array<i64: 1, 1>, paddings = array<i64: 1, 1>"},
      {"even", {2, 2, 12, 6}, {4, 2, 4, 2}, {2, 4, 6, 3}, "strides = array<i64: 2, 2>, paddings = array<i64: 1, 0>"},
      {"stem", {2, 2, 24, 4}, {2, 2, 7, 3}, {2, 2, 12, 4}, "strides = array<i64: 2, 1>, paddings = array<i64: 3, 1>"},
      {"dilated",
       {2, 4, 16, 4},
       {4, 2, 3, 1},
       {2, 4, 16, 4},
       "strides = array<i64: 1, 1>, paddings = array<i64: 2, 0>, dilations = array<i64: 2, 1>"},
      {"wide", {2, 2, 8, 3}, {2, 2, 7, 1}, {2, 2, 8, 3}, "strides = array<i64: 1, 1>, paddings = array<i64: 3, 0>"},
      {"patches", {2, 2, 12, 8}, {4, 2, 2, 2}, {2, 4, 6, 4}, "strides = array<i64: 2, 2>, paddings = array<i64: 0, 0>"},
      {"points", {2, 2, 12, 8}, {4, 2, 1, 1}, {2, 4, 6, 8}, "strides = array<i64: 2, 1>, paddings = array<i64: 0, 0>"},
      {"batches",
       {2, 3, 2, 8, 3},
       {4, 2, 3, 1},
       {2, 3, 4, 8, 3},
       "strides = array<i64: 1, 1>, paddings = array<i64: 1, 0>"},
  };
  Cases cases;
  for (const Window& w : windows) {
    const std::string name = absl::StrCat("conv2d_", w.name);
    cases.push_back({name, "conv2d", {real(w.x), real(w.weight)}, w.steps, {real(w.y)}});
    cases.push_back({name + "_input_grad", "conv2d_input_grad", {real(w.y), real(w.weight)}, w.steps, {real(w.x)}});
    cases.push_back(
        {name + "_weight_grad", "conv2d_weight_grad", {real(w.x), real(w.y)}, w.steps, {real(w.weight)}, 1, false});
  }
  const std::string pooled = "window = array<i64: 2, 3>, strides = array<i64: 2, 3>, paddings = array<i64: 0, 0>";
  const Dims x = {2, 2, 12, 12};
  const Dims pool = {2, 2, 6, 4};
  append(cases, {{"max_pool2d_patches", "max_pool2d", {real(x)}, pooled, {real(pool)}},
                 {"max_pool2d_grad_patches", "max_pool2d_grad", {real(x), real(pool)}, pooled, {real(x)}, 1, false},
                 {"avg_pool2d_patches", "avg_pool2d", {real(x)}, pooled, {real(pool)}},
                 {"avg_pool2d_grad_patches", "avg_pool2d_grad", {real(pool)}, pooled, {real(x)}, 1, false}});
  return cases;
}

Cases shapeCases() {
  Cases cases;
  const std::vector<std::pair<Dims, Dims>> reshapes = {{{8, 12}, {4, 2, 12}}, {{8, 12}, {96}},     {{4, 24}, {8, 12}},
                                                       {{6, 8}, {48}},        {{2, 3, 8}, {6, 8}}, {{24}, {2, 3, 4}},
                                                       {{8, 6}, {8, 1, 6}},   {{12, 8}, {8, 12}}};
  for (size_t i = 0; i < reshapes.size(); ++i) {
    cases.push_back(
        {absl::StrCat("reshape_", i), "reshape", {real(reshapes[i].first)}, "", {real(reshapes[i].second)}});
  }
  append(
      cases,
      {
          {"transpose", "transpose", {real({4, 6, 8})}, "permutation = array<i64: 2, 0, 1>", {real({8, 4, 6})}},
          {"slice", "slice", {real({8, 12})}, "offsets = array<i64: 1, 0>, sizes = array<i64: 6, 12>", {real({6, 12})}},
          {"pad", "pad", {real({6, 12})}, "low = array<i64: 1, 0>, high = array<i64: 1, 0>", {real({8, 12})}},
          {"pad_value",
           "pad",
           {real({6, 12})},
           "low = array<i64: 1, 0>, high = array<i64: 1, 0>, value = 2.5 : f64",
           {real({8, 12})}},
          {"flip", "flip", {real({4, 6, 8})}, "dims = array<i64: 0, 2>", {real({4, 6, 8})}},
          {"concat", "concat", {real({8, 6}), real({8, 2}), real({8, 4})}, "dim = 1 : i64", {real({8, 12})}},
          {"broadcast", "broadcast", {real({6, 1})}, "", {real({4, 6, 8})}},
      });
  return cases;
}

Cases reductionCases() {
  Cases cases;
  for (const char* op : {"sum", "max", "min", "mean"}) {
    const std::string mean = std::string(op) == "mean" ? ", count = 32 : i64" : "";
    const std::string keep = std::string(op) == "mean" ? ", count = 6 : i64" : "";
    cases.push_back({absl::StrCat(op, "_drop"),
                     op,
                     {real({4, 6, 8})},
                     "dims = array<i64: 0, 2>, keep_dims = false" + mean,
                     {real({6})}});
    cases.push_back({absl::StrCat(op, "_keep"),
                     op,
                     {real({4, 6, 8})},
                     "dims = array<i64: 1>, keep_dims = true" + keep,
                     {real({4, 1, 8})}});
  }
  for (const char* op : {"max", "min"}) {
    cases.push_back({absl::StrCat(op, "_bool"), op, {boolean({8, 12})}, "dims = array<i64: 1>", {boolean({8})}, 0});
  }
  cases.push_back({"sum_squares", "sum_squares", {real({8, 12})}, "", {real({})}});
  cases.push_back({"all_finite", "all_finite", {real({8, 12})}, "", {boolean({})}, 0});
  return cases;
}

Cases alongCases() {
  const Dims x = {4, 6, 8};
  const std::string dim = "dim = 1 : i64";
  Cases cases = {
      {"cumsum", "cumsum", {real(x)}, dim, {real(x)}},
      {"cumsum_reverse", "cumsum", {real({8, 12})}, "dim = 0 : i64, reverse = true", {real({8, 12})}},
      {"prod", "prod", {real(x)}, dim, {real({4, 8})}},
      {"prod_grad", "prod_grad", {real(x), real({4, 8})}, dim, {real(x)}, 1, false},
      {"sort", "sort", {real(x)}, "count = 8 : i64", {real(x), integers(x)}},
      {"sort_first", "sort", {real(x)}, "count = 3 : i64, descending = true", {real({4, 6, 3}), integers({4, 6, 3})}},
  };
  for (const char* op : {"argmax", "argmin"}) {
    cases.push_back({op, op, {real(x)}, dim, {integers({4, 8})}, 0});
    cases.push_back({absl::StrCat(op, "_bool"), op, {boolean({8, 12})}, "dim = 1 : i64", {integers({8})}, 0});
  }
  return cases;
}

Cases normalizationCases() {
  return {
      {"log_softmax", "log_softmax", {real({4, 6, 8})}, "", {real({4, 6, 8})}},
      {"log_softmax_grad", "log_softmax_grad", {real({8, 12}), real({8, 12})}, "", {real({8, 12})}, 1, false},
      {"softmax", "softmax", {real({8, 12})}, "", {real({8, 12})}},
      {"softmax_3", "softmax", {real({4, 6, 8})}, "", {real({4, 6, 8})}},
      {"softmax_grad", "softmax_grad", {real({8, 12}), real({8, 12})}, "", {real({8, 12})}, 1, false},
      {"layer_norm",
       "layer_norm",
       {real({4, 6, 8}), real({8}), real({8})},
       "epsilon = 1.0e-5 : f64",
       {real({4, 6, 8}), real({4, 6}), real({4, 6})}},
      {"layer_norm_grad",
       "layer_norm_grad",
       {real({4, 6, 8}), real({8}), real({4, 6}), positive({4, 6}), real({4, 6, 8})},
       "",
       {real({4, 6, 8}), real({8}), real({8})},
       3,
       false},
      {"rms_norm", "rms_norm", {real({4, 6, 8}), real({8})}, "", {real({4, 6, 8}), real({4, 6})}},
      {"rms_norm_grad",
       "rms_norm_grad",
       {real({4, 6, 8}), real({8}), positive({4, 6}), real({4, 6, 8})},
       "",
       {real({4, 6, 8}), real({8})},
       2,
       false},
      {"batch_norm",
       "batch_norm",
       {real({12, 8, 2, 3}), real({8}), real({8})},
       "epsilon = 1.0e-5 : f64",
       {real({12, 8, 2, 3}), real({1, 8}), real({1, 8}), real({1, 8})},
       1,
       true,
       3},
      {"batch_norm_running",
       "batch_norm",
       {real({12, 8}), real({8}), real({8}), real({8}), positive({8})},
       "momentum = 2.0e-1 : f64",
       {real({12, 8}), real({1, 8}), real({1, 8}), real({1, 8}), real({8}), real({8})},
       1,
       false,
       3},
      {"channel_sum", "channel_sum", {real({12, 8, 2, 3})}, "", {real({1, 8})}, 1, false},
      {"channel_dot", "channel_dot", {real({12, 8, 6}), real({12, 8, 6}), real({1, 8})}, "", {real({1, 8})}, 1, false},
      {"channel_affine",
       "channel_affine",
       {real({12, 8, 6}), real({1, 8}), real({1, 8})},
       "",
       {real({12, 8, 6})},
       1,
       false},
      {"channel_affine_two",
       "channel_affine",
       {real({12, 8, 6}), real({1, 8}), real({12, 8, 6}), real({1, 8}), real({1, 8})},
       "",
       {real({12, 8, 6})},
       1,
       false},
  };
}

Cases indexCases() {
  const std::string entropy = "rows = 8 : i64, ignore_index = 3 : i64";
  return {
      {"embedding", "embedding", {real({12, 8}), ids({4, 6}, 12)}, "rows = 12 : i64", {real({4, 6, 8})}},
      {"embedding_grad",
       "embedding_grad",
       {ids({4, 6}, 12), real({4, 6, 8})},
       "rows = 12 : i64",
       {real({12, 8})},
       1,
       false},
      {"cross_entropy",
       "softmax_cross_entropy",
       {real({4, 6, 8}), ids({4, 6}, 8)},
       entropy,
       {real({4, 6}), real({4, 6})},
       2},
      {"cross_entropy_grad",
       "softmax_cross_entropy_grad",
       {real({4, 6, 8}), ids({4, 6}, 8), positive({4, 6}), real({4, 6})},
       "ignore_index = 3 : i64",
       {real({4, 6, 8})},
       1,
       false},
      {"gather", "gather", {real({4, 12, 6}), ids({4, 8, 6}, 12)}, "dim = 1 : i64, rows = 12 : i64", {real({4, 8, 6})}},
      {"scatter_add", "scatter_add", {ids({12, 6}, 8), real({12, 6})}, "dim = 0 : i64, rows = 8 : i64", {real({8, 6})}},
      {"pick", "pick", {real({4, 6, 8}), ids({4, 6}, 8)}, "", {real({4, 6})}},
      {"pick_grad", "pick_grad", {ids({4, 6}, 8), real({4, 6})}, "", {real({4, 6, 8})}, 1, false},
  };
}

Cases attentionCases() {
  Cases cases;
  const Dims q = {2, 4, 6, 4};
  for (const bool causal : {true, false}) {
    const Dims k = {2, 4, causal ? 6 : 8, 4};
    const std::string attributes = absl::StrCat("causal = ", causal ? "true" : "false", ", scale = 0.7 : f64");
    const std::string suffix = causal ? "_causal" : "_full";
    cases.push_back(
        {"attention" + suffix, "attention", {real(q), real(k), real(k)}, attributes, {real(q), real({2, 4, 6})}});
    cases.push_back({"attention_grad" + suffix,
                     "attention_grad",
                     {real(q), real(k), real(k), real(q), positive({2, 4, 6}), real(q)},
                     attributes,
                     {real(q), real(k), real(k)},
                     3,
                     false});
  }
  append(cases,
         {{"rotary", "rotary", {real({4, 2, 6, 8}), real({6, 4}), real({6, 4})}, "", {real({4, 2, 6, 8})}, 1, false},
          {"rotary_inverse",
           "rotary",
           {real({6, 8}), real({6, 4}), real({6, 4})},
           "interleaved = true, inverse = true",
           {real({6, 8})},
           1,
           false}});
  return cases;
}

// Heads that share keys, and biases that stretch over what has size 1.
Cases sharedAttentionCases() {
  Cases cases;
  const std::string attributes = "causal = true, scale = 0.7 : f64";
  const Dims q = {4, 6, 4, 2};
  const Dims lse = {4, 6, 4};
  for (const int64_t groups : {6, 3, 2, 1}) {
    const Dims k = {4, groups, 6, 2};
    const Dims bias = {groups == 2 ? 1 : 4, groups == 3 ? 1 : 6, groups == 1 ? 1 : 4, 6};
    cases.push_back({absl::StrCat("attention_shared_", groups),
                     "attention",
                     {real(q), real(k), real(k), real(bias)},
                     attributes,
                     {real(q), real(lse)}});
    cases.push_back({absl::StrCat("attention_shared_grad_", groups),
                     "attention_grad",
                     {real(q), real(k), real(k), real(q), positive(lse), real(q), real(bias)},
                     attributes + ", bias_gradient = true",
                     {real(q), real(k), real(k), real(bias)},
                     4,
                     false});
  }
  return cases;
}

Cases sourceCases() {
  return {
      {"dropout",
       "dropout",
       {real({8, 12}), ids({}, 5)},
       "rate = 0.5 : f64, seed = 7 : i64, key = 3 : i64",
       {real({8, 12})}},
      {"random",
       "random",
       {},
       "distribution = \"normal\", a = 0.5 : f64, b = 2.0 : f64, seed = 7 : i64, key = 3 : i64",
       {real({8, 12})}},
      {"fill", "fill", {}, "value = 1.5 : f64", {real({8, 12})}},
      {"iota", "iota", {}, "dim = 1 : i64", {real({8, 12})}},
      {"constant", "constant", {}, "value = dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf64>", {real({4})}},
      {"constant_splat", "constant", {}, "value = dense<2.5> : tensor<8x12xf64>", {real({8, 12})}},
  };
}

std::string allDims(size_t rank) {
  std::vector<size_t> dims(rank);
  for (size_t d = 0; d < rank; ++d) {
    dims[d] = d;
  }
  return absl::StrCat("dims = array<i64", rank > 0 ? ": " : "", absl::StrJoin(dims, ", "), ">, keep_dims = false");
}

// %part<i> = sum(result i x weights i).
std::string weightedSum(size_t i, const TensorLine& result, bool differentiable) {
  const std::string type = typeText(result.shape);
  std::string value = "%" + result.name;
  std::string text;
  if (!differentiable) {
    text = absl::StrCat("    %stopped", i, " = nn.stop_gradient ", value, " : (", type, ") -> ", type, "\n");
    value = absl::StrCat("%stopped", i);
  }
  return absl::StrCat(text, "    %product", i, " = nn.mul ", value, ", %weights", i, " : (", type, ", ", type, ") -> ",
                      type, "\n    %part", i, " = nn.sum %product", i, " {", allDims(result.shape.size()), "} : (",
                      type, ") -> tensor<f64>\n");
}

}  // namespace

TrainingProgram OperatorCase::program(const std::string& strategy) const {
  TrainingProgram program;
  std::vector<std::string> names;
  std::vector<std::string> types;
  for (size_t i = 0; i < operands.size(); ++i) {
    TensorLine line = operands[i];
    line.name = absl::StrCat("a", i);
    names.push_back("%" + line.name);
    types.push_back(typeText(line.shape, line.type));
    (line.type == "f64" ? program.parameters : program.inputs).push_back(line);
  }
  std::vector<std::string> resultNames;
  std::vector<std::string> resultTypes;
  for (size_t r = 0; r < results.size(); ++r) {
    TensorLine line = results[r];
    line.name = absl::StrCat("y", r);
    resultNames.push_back("%" + line.name);
    resultTypes.push_back(typeText(line.shape, line.type));
    if (r != hidden) {
      program.outputs.push_back(line);
    }
  }
  program.body = absl::StrCat(
      "    ", absl::StrJoin(resultNames, ", "), " = nn.", mnemonic, " ", absl::StrJoin(names, ", "),
      " {nn.name = \"target\"", strategy.empty() ? "" : ", nn.strategy = " + strategy, attributes.empty() ? "" : ", ",
      attributes, "} : (", absl::StrJoin(types, ", "), ") -> (", absl::StrJoin(resultTypes, ", "),
      ")\n    %start = nn.sum %weights {dims = array<i64: 0>, keep_dims = false} : ",
      "(tensor<4xf64>) -> tensor<f64>\n");
  program.parameters.push_back({"weights", {4}});
  std::string total = "%start";
  for (size_t r = 0; r < weighted; ++r) {
    TensorLine weights = real(results[r].shape);
    weights.name = absl::StrCat("weights", r);
    program.parameters.push_back(weights);
    absl::StrAppend(&program.body, weightedSum(r, program.outputs[r], differentiable));
    const std::string next = r + 1 == weighted ? "%loss" : absl::StrCat("%total", r);
    absl::StrAppend(&program.body, "    ", next, " = nn.add ", total, ", %part", r,
                    " : (tensor<f64>, tensor<f64>) -> tensor<f64>\n");
    total = next;
  }
  if (weighted == 0) {
    absl::StrAppend(&program.body, "    %loss = nn.neg %start : (tensor<f64>) -> tensor<f64>\n");
  }
  return program;
}

std::vector<OperatorCase> operatorCases() {
  Cases cases = unaryCases();
  for (Cases more : {binaryCases(), contractionCases(), imageCases(), groupedCases(), splitImageCases(), shapeCases(),
                     reductionCases(), alongCases(), normalizationCases(), indexCases(), attentionCases(),
                     sharedAttentionCases(), sourceCases()}) {
    append(cases, std::move(more));
  }
  return cases;
}

}  // namespace weft::testing
