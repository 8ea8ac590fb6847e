// The functions of weft/ops_elementwise.h and weft/ops_reduction.h against plain formulas, and their gradients against
// differences.
#include <algorithm>
#include <limits>

#include "tests/frontend/evaluate.h"

namespace weft::testing {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
// A few roundings of f64.
constexpr double kRounding = 1e-14;

struct PointCase {
  const char* name;
  std::function<Tensor(const Tensor&)> build;
  std::function<double(double)> f;
};

void PrintTo(const PointCase& test, std::ostream* out) {
  *out << test.name;
}

const std::vector<PointCase>& pointCases() {
  static const std::vector<PointCase> cases = {
      {"Abs", [](const Tensor& x) { return abs(x); }, [](double x) { return std::abs(x); }},
      {"Sign", [](const Tensor& x) { return sign(x); }, [](double x) { return x > 0 ? 1 : -1; }},
      {"Floor", [](const Tensor& x) { return floor(x); }, [](double x) { return std::floor(x); }},
      {"Ceil", [](const Tensor& x) { return ceil(x); }, [](double x) { return std::ceil(x); }},
      {"Erf", [](const Tensor& x) { return erf(x); }, [](double x) { return std::erf(x); }},
      {"Sin", [](const Tensor& x) { return sin(x); }, [](double x) { return std::sin(x); }},
      {"Cos", [](const Tensor& x) { return cos(x); }, [](double x) { return std::cos(x); }},
      {"PowTwo", [](const Tensor& x) { return pow(x, 2); }, [](double x) { return x * x; }},
      {"PowThree", [](const Tensor& x) { return pow(x, 3); }, [](double x) { return x * x * x; }},
      {"PowOfANumber", [](const Tensor& x) { return pow(2.5, x); }, [](double x) { return std::pow(2.5, x); }},
      {"PowOfTensors", [](const Tensor& x) { return pow(abs(x), x); },
       [](double x) { return std::pow(std::abs(x), x); }},
      {"Square", [](const Tensor& x) { return square(x); }, [](double x) { return x * x; }},
      {"Reciprocal", [](const Tensor& x) { return reciprocal(x); }, [](double x) { return 1 / x; }},
      {"Clamp", [](const Tensor& x) { return clamp(x, -0.7, 0.5); }, [](double x) { return std::clamp(x, -0.7, 0.5); }},
      {"ClampBelow", [](const Tensor& x) { return clamp(x, 0.1, {}); }, [](double x) { return std::max(x, 0.1); }},
      {"ClampAbove", [](const Tensor& x) { return clamp(x, {}, 0.1); }, [](double x) { return std::min(x, 0.1); }},
      {"Where", [](const Tensor& x) { return where(compare(x, 0.2, "gt"), x * x, -1); },
       [](double x) { return x > 0.2 ? x * x : -1; }},
      {"Sigmoid", [](const Tensor& x) { return sigmoid(x); }, [](double x) { return 1 / (1 + std::exp(-x)); }},
      {"Silu", [](const Tensor& x) { return silu(x); }, [](double x) { return x / (1 + std::exp(-x)); }},
      {"Softplus", [](const Tensor& x) { return softplus(x); }, [](double x) { return std::log1p(std::exp(x)); }},
      {"LeakyRelu", [](const Tensor& x) { return leakyRelu(x, 0.2); }, [](double x) { return x > 0 ? x : 0.2 * x; }},
      {"Elu", [](const Tensor& x) { return elu(x, 1.3); }, [](double x) { return x > 0 ? x : 1.3 * std::expm1(x); }},
      {"HardSwish", [](const Tensor& x) { return hardSwish(4 * x); },
       [](double x) { return 4 * x * std::clamp(4 * x + 3, 0.0, 6.0) / 6; }},
  };
  return cases;
}

class PointTest : public ::testing::TestWithParam<PointCase> {};

TEST_P(PointTest, FollowsTheFormulaAndItsSlope) {
  const PointCase& test = GetParam();
  const Reals x = someValues(12);
  Reals expected;
  std::transform(x.begin(), x.end(), std::back_inserter(expected), test.f);
  const Build build = [&](Graph&, const Tensor& input) { return test.build(input); };
  expectValues(valuesOf({3, 4}, x, build), expected, kRounding);
  expectGradient({3, 4}, x, build);
}

INSTANTIATE_TEST_SUITE_P(Elementwise, PointTest, ::testing::ValuesIn(pointCases()),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(Logic, OnBools) {
  const auto of = [](const std::function<Tensor(const Tensor&, const Tensor&)>& f) {
    return valuesOf({4, 2}, {-1, -1, -1, 1, 1, -1, 1, 1}, [&](Graph&, const Tensor& x) {
      return f(compare(slice(x, {0, 0}, {4, 1}), 0, "gt"), compare(slice(x, {0, 1}, {4, 1}), 0, "gt"));
    });
  };
  EXPECT_EQ(of([](const Tensor& a, const Tensor& b) { return logicalXor(a, b); }), (Reals{0, 1, 1, 0}));
  EXPECT_EQ(of([](const Tensor& a, const Tensor& b) { return logicalAnd(a, b); }), (Reals{0, 0, 0, 1}));
  EXPECT_EQ(of([](const Tensor& a, const Tensor& b) { return logicalOr(a, b); }), (Reals{0, 1, 1, 1}));
  EXPECT_EQ(of([](const Tensor& a, const Tensor& b) { return logicalAnd(a, logicalNot(b)); }), (Reals{0, 0, 1, 0}));
}

// Shape {2, 3, 4}: what a function of one line makes of the lines along dimension 1.
struct LineCase {
  const char* name;
  std::function<Tensor(const Tensor&)> build;
  std::function<Reals(const Reals&)> f;  // a number, or as many as the line has
  bool gradient = true;
};

void PrintTo(const LineCase& test, std::ostream* out) {
  *out << test.name;
}

double total(const Reals& line) {
  return std::accumulate(line.begin(), line.end(), 0.0);
}

double squares(const Reals& line) {
  const double mean = total(line) / static_cast<double>(line.size());
  double sum = 0;
  for (const double value : line) {
    sum += (value - mean) * (value - mean);
  }
  return sum;
}

double logSum(const Reals& line) {
  double sum = 0;
  for (const double value : line) {
    sum += std::exp(value);
  }
  return std::log(sum);
}

Reals sortedDown(Reals line, size_t count) {
  std::sort(line.begin(), line.end(), std::greater<>());
  line.resize(count);
  return line;
}

const std::vector<LineCase>& lineCases() {
  static const std::vector<LineCase> cases = {
      {"Min", [](const Tensor& x) { return min(x, {-2}); },
       [](const Reals& line) { return Reals{*std::min_element(line.begin(), line.end())}; }},
      {"Prod", [](const Tensor& x) { return prod(x, {1}, true); },
       [](const Reals& line) { return Reals{std::accumulate(line.begin(), line.end(), 1.0, std::multiplies<>())}; }},
      {"Var", [](const Tensor& x) { return var(x, {1}); }, [](const Reals& line) { return Reals{squares(line) / 2}; }},
      {"VarBiased", [](const Tensor& x) { return var(x, {-2}, {.unbiased = false, .keepDims = true}); },
       [](const Reals& line) { return Reals{squares(line) / 3}; }},
      {"Stddev", [](const Tensor& x) { return stddev(x, {1}); },
       [](const Reals& line) { return Reals{std::sqrt(squares(line) / 2)}; }},
      {"LogSumExp", [](const Tensor& x) { return logSumExp(x, {1}); },
       [](const Reals& line) { return Reals{logSum(line)}; }},
      {"Argmax", [](const Tensor& x) { return argmax(x, 1); },
       [](const Reals& line) {
         return Reals{static_cast<double>(std::max_element(line.begin(), line.end()) - line.begin())};
       },
       false},
      {"Argmin", [](const Tensor& x) { return argmin(x, -2, {.keepDims = true, .type = kI64}); },
       [](const Reals& line) {
         return Reals{static_cast<double>(std::min_element(line.begin(), line.end()) - line.begin())};
       },
       false},
      {"Any", [](const Tensor& x) { return any(compare(x, 1, "gt"), {1}); },
       [](const Reals& line) {
         return Reals{std::any_of(line.begin(), line.end(), [](double v) { return v > 1; }) ? 1.0 : 0.0};
       },
       false},
      {"All", [](const Tensor& x) { return all(compare(x, -1, "gt"), {1}, true); },
       [](const Reals& line) {
         return Reals{std::all_of(line.begin(), line.end(), [](double v) { return v > -1; }) ? 1.0 : 0.0};
       },
       false},
      {"Cumsum", [](const Tensor& x) { return cumsum(x, 1); },
       [](Reals line) {
         std::partial_sum(line.begin(), line.end(), line.begin());
         return line;
       }},
      {"CumsumReverse", [](const Tensor& x) { return cumsum(x, -2, true); },
       [](Reals line) {
         std::partial_sum(line.rbegin(), line.rend(), line.rbegin());
         return line;
       }},
      {"Sort", [](const Tensor& x) { return sort(x, {.dim = 1, .descending = true}).values; },
       [](const Reals& line) { return sortedDown(line, 3); }},
      {"TopK", [](const Tensor& x) { return topK(x, 2, {.dim = 1}).values; },
       [](const Reals& line) { return sortedDown(line, 2); }},
      {"SortIndices", [](const Tensor& x) { return sort(x, {.dim = 1}).indices; },
       [](const Reals& line) {
         Reals order = {0, 1, 2};
         std::sort(order.begin(), order.end(),
                   [&](double a, double b) { return line[static_cast<size_t>(a)] < line[static_cast<size_t>(b)]; });
         return order;
       },
       false},
      {"Softmax", [](const Tensor& x) { return softmax(x, 1); },
       [](Reals line) {
         const double sum = logSum(line);
         for (double& value : line) {
           value = std::exp(value - sum);
         }
         return line;
       }},
      {"LogSoftmax", [](const Tensor& x) { return logSoftmax(x, -2); },
       [](Reals line) {
         const double sum = logSum(line);
         for (double& value : line) {
           value -= sum;
         }
         return line;
       }},
  };
  return cases;
}

class LineTest : public ::testing::TestWithParam<LineCase> {};

TEST_P(LineTest, FollowsTheFormulaAndItsSlope) {
  const LineCase& test = GetParam();
  const Reals x = someValues(24);
  Reals expected;
  for (size_t outer = 0; outer < 2; ++outer) {
    std::vector<Reals> lines;
    for (size_t inner = 0; inner < 4; ++inner) {
      lines.push_back(test.f({x[outer * 12 + inner], x[outer * 12 + 4 + inner], x[outer * 12 + 8 + inner]}));
    }
    for (size_t i = 0; i < lines[0].size(); ++i) {
      for (const Reals& line : lines) {
        expected.push_back(line[i]);
      }
    }
  }
  const Build build = [&](Graph&, const Tensor& input) { return test.build(input); };
  expectValues(valuesOf({2, 3, 4}, x, build), expected, kRounding);
  if (test.gradient) {
    expectGradient({2, 3, 4}, x, build);
  }
}

INSTANTIATE_TEST_SUITE_P(Along, LineTest, ::testing::ValuesIn(lineCases()),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(Reduction, OverAllDimensionsAndSeveral) {
  const Reals x = someValues(24);
  const Build all = [](Graph&, const Tensor& input) { return var(input); };
  expectValues(valuesOf({2, 3, 4}, x, all), {squares(x) / 23}, kRounding);
  const Build two = [](Graph&, const Tensor& input) { return prod(input, {-1, 0}); };
  Reals products(3, 1.0);
  for (size_t i = 0; i < 24; ++i) {
    products[i / 4 % 3] *= x[i];
  }
  expectValues(valuesOf({2, 3, 4}, x, two), products, kRounding);
  expectGradient({2, 3, 4}, x, two);
}

TEST(LogSumExp, InfiniteElements) {
  const auto of = [](const Reals& x) {
    return valuesOf({2}, x, [](Graph&, const Tensor& input) { return logSumExp(input); });
  };
  expectValues(of({-kInf, -kInf}), {-kInf}, 0);
  expectValues(of({-kInf, 2}), {2}, 0);
  expectValues(of({kInf, 2}), {kInf}, 0);
  expectValues(of({1000, 1000}), {1000 + std::log(2.0)}, kRounding);
  expectValues(of({std::nan(""), 2}), {std::nan("")}, 0);
}

// At a bound the slope is that of x.
TEST(Clamp, GradientAtTheBounds) {
  Graph g;
  g.setParameterType(kF64);
  const Tensor x = g.parameter("x", {4});
  const Reals after = Evaluator(compile(g, sum(clamp(x, 0, 1)), optim::Sgd{.lr = 1.0})).run({0, 1, -0.5, 1.5}, "x");
  EXPECT_EQ(after, (Reals{-1, 0, -0.5, 1.5}));
}

// 10 columns lie on 4 ranks as 12: what the last rank stores behind them counts nowhere, whether the operator reads
// parts or the whole.
TEST(Pads, DoNotCount) {
  using Function = std::function<Tensor(const Tensor&)>;
  const std::vector<std::pair<const char*, Function>> functions = {
      {"argmax", [](const Tensor& x) { return argmax(-1 * abs(x), 1); }},
      {"argmin", [](const Tensor& x) { return argmin(abs(x), 1); }},
      {"max", [](const Tensor& x) { return max(-1 * abs(x), {1}); }},
      {"min", [](const Tensor& x) { return min(abs(x), {1}); }},
      {"any", [](const Tensor& x) { return any(compare(x, 2, "gt"), {1}); }},
      {"all", [](const Tensor& x) { return all(compare(x, -2, "gt"), {1}); }},
      {"prod", [](const Tensor& x) { return prod(x, {1}); }},
      {"cumsum", [](const Tensor& x) { return cumsum(x, 1, true); }},
      {"logSoftmax", [](const Tensor& x) { return logSoftmax(x); }},
      {"logSumExp", [](const Tensor& x) { return logSumExp(x, {1}); }},
      {"take", [](const Tensor& x) { return take(x, cast(argmax(x, 1), kI32), 1); }},
  };
  const Reals x = someValues(60);
  for (const auto& [name, function] : functions) {
    for (const bool whole : {false, true}) {
      SCOPED_TRACE(name);
      Graph g;
      g.setParameterType(kF64);
      const Tensor parameter = g.parameter("x", {6, 10}, Init::zeros(), {.layout = "[{},{all}] pad{1:12}"});
      const Tensor y = function(parameter + 0.0);
      if (whole) {
        y.shard({{1, 1}});
      }
      g.output("y", y.type() == kF64 ? y : cast(y, kF64));
      Evaluator evaluator(compileForward(g, Tensor(), {.devices = 4}));
      const Build plain = [&](Graph&, const Tensor& input) { return function(input + 0.0); };
      expectValues(evaluator.run(x, "y"), valuesOf({6, 10}, x, plain), kRounding);
    }
  }
}

}  // namespace
}  // namespace weft::testing
