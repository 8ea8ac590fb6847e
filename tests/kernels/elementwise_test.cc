#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <map>

#include "tests/kernels/kernel_runner.h"

namespace weft::testing {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();
const std::vector<DType> kFloats = {DType::kF32, DType::kF64};

double geluTanh(double x) {
  return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
}
double geluExact(double x) {
  return 0.5 * x * std::erfc(-x / std::sqrt(2.0));
}

double hardSwish(double x) {
  return x * std::clamp(x + 3, 0.0, 6.0) / 6;
}

Tensor unary(const std::string& name, const Tensor& x, const AttributeMap& attributes = {}) {
  return runOne({name, {x}, {x.spec()}, attributes});
}

Reals mapped(const std::function<double(double)>& f, const Reals& x) {
  Reals y;
  for (const double value : x) {
    y.push_back(f(value));
  }
  return y;
}

TEST(Unary, FollowsTheFunction) {
  struct Case {
    const char* name;
    std::function<double(double)> f;
    double low, high;
  };
  const std::vector<Case> cases = {{"neg", [](double x) { return -x; }, -5, 5},
                                   {"exp", [](double x) { return std::exp(x); }, -30, 30},
                                   {"log", [](double x) { return std::log(x); }, 2, 100},
                                   {"sqrt", [](double x) { return std::sqrt(x); }, 0, 100},
                                   {"rsqrt", [](double x) { return 1 / std::sqrt(x); }, 0.01, 100},
                                   {"tanh", [](double x) { return std::tanh(x); }, -10, 10},
                                   {"relu", [](double x) { return x > 0 ? x : 0; }, -5, 5},
                                   {"abs", [](double x) { return std::fabs(x); }, -5, 5},
                                   {"sign", [](double x) { return x > 0   ? 1
                                                                  : x < 0 ? -1
                                                                          : 0; }, -5, 5},
                                   {"floor", [](double x) { return std::floor(x); }, -5, 5},
                                   {"ceil", [](double x) { return std::ceil(x); }, -5, 5},
                                   {"erf", [](double x) { return std::erf(x); }, -3, 3},
                                   {"sin", [](double x) { return std::sin(x); }, 0.1, 3},
                                   {"cos", [](double x) { return std::cos(x); }, -1.4, 1.4},
                                   {"sigmoid", [](double x) { return 1 / (1 + std::exp(-x)); }, -20, 20},
                                   {"silu", [](double x) { return x / (1 + std::exp(-x)); }, -20, 20},
                                   {"softplus", [](double x) { return std::log1p(std::exp(x)); }, -20, 20},
                                   {"hard_swish", hardSwish, -2.9, 5}};
  for (const DType type : kFloats) {
    for (const Case& c : cases) {
      // 37 elements: full vectors and a rest. Four roundings: two units in the last place.
      const Tensor x = sample(type, {37}, 1, c.low, c.high);
      expectNear(unary(c.name, x), mapped(c.f, x.values), {4 * epsilonOf(type), 0});
      expectNear(unary(c.name, sample(type, {}, 2, 1, 2)), mapped(c.f, sample(type, {}, 2, 1, 2).values),
                 {4 * epsilonOf(type), 0});
    }
    EXPECT_TRUE(unary("exp", sample(type, {0, 3}, 1)).values.empty());
  }
}

// The distance to `expected` in units of the last place of the nearest float.
double unitsOff(double actual, double expected) {
  if (std::abs(expected) > std::numeric_limits<float>::max()) {
    return std::isinf(actual) || std::abs(actual) == std::numeric_limits<float>::max() ? 0 : kInf;
  }
  const float nearest = std::abs(static_cast<float>(expected));
  const double unit = static_cast<double>(std::nextafter(nearest, 3e38F)) - nearest;
  return std::abs(actual - expected) / unit;
}

// Floats all over [low, high], every `stride`-th bit pattern of both signs.
Tensor sweep(float low, float high, uint32_t stride) {
  Reals values;
  for (uint64_t bits = 0; bits < 0x7f800000U; bits += stride) {
    const float x = std::bit_cast<float>(static_cast<uint32_t>(bits));
    for (const float value : {x, -x}) {
      if (value >= low && value <= high) {
        values.push_back(value);
      }
    }
  }
  return tensor(DType::kF32, {static_cast<int64_t>(values.size())}, values);
}

void expectWithinUnits(const std::string& name, const Tensor& x, const std::function<double(double)>& f, double units) {
  const Tensor y = unary(name, x);
  double worst = 0;
  for (size_t i = 0; i < x.values.size(); ++i) {
    const double off = unitsOff(y.values[i], f(x.values[i]));
    ASSERT_LE(off, units) << name << "(" << x.values[i] << ") = " << y.values[i];
    worst = std::max(worst, off);
  }
  ::testing::Test::RecordProperty(name + "_worst_units", std::to_string(worst));
}

// What math.h promises; the sweep meets subnormal and infinite results of exp.
TEST(Unary, ExpAndTanhKeepToTwoUnitsInF32) {
  expectWithinUnits("exp", sweep(-110, 95, 4099), [](double x) { return std::exp(x); }, 2);
  expectWithinUnits("exp", sweep(-104, -87, 101), [](double x) { return std::exp(x); }, 2);
  expectWithinUnits("tanh", sweep(-20, 20, 4099), [](double x) { return std::tanh(x); }, 2);
}

// Three roundings on top of those of exp and log1p.
TEST(Unary, SoftplusKeepsToFourUnitsInF32) {
  expectWithinUnits("softplus", sweep(-80, 80, 4099), [](double x) { return std::log1p(std::exp(x)); }, 4);
}

TEST(Unary, SpecialValues) {
  for (const DType type : kFloats) {
    const Tensor x = tensor(type, {4}, {kNan, kInf, -kInf, 0});
    expectNear(unary("exp", x), {kNan, kInf, 0, 1}, {});
    expectNear(unary("tanh", x), {kNan, 1, -1, 0}, {});
    expectNear(unary("relu", x), {kNan, kInf, 0, 0}, {});
    expectNear(unary("log", x), {kNan, kInf, kNan, -kInf}, {});
    expectNear(unary("gelu", tensor(type, {2}, {kNan, kInf}), {{"approximate", "tanh"}}), {kNan, kInf}, {});
    expectNear(unary("gelu", tensor(type, {2}, {kNan, kInf}), {{"approximate", "none"}}), {kNan, kInf}, {});
  }
}

TEST(Unary, SpecialValuesOfActivations) {
  for (const DType type : kFloats) {
    const Tensor x = tensor(type, {4}, {kNan, kInf, -kInf, 0});
    expectNear(unary("sigmoid", x), {kNan, 1, 0, 0.5}, {});
    expectNear(unary("softplus", x), {kNan, kInf, 0, std::log(2.0)}, {2 * epsilonOf(type), 0});
    expectNear(unary("hard_swish", x), {kNan, kInf, 0, 0}, {});
    expectNear(unary("leaky_relu", x, {{"slope", 0.5}}), {kNan, kInf, -kInf, 0}, {});
    expectNear(unary("elu", x, {{"alpha", 2.0}}), {kNan, kInf, -2, 0}, {});
    expectNear(unary("sign", x), {kNan, 1, -1, 0}, {});
    expectNear(unary("abs", x), {kNan, kInf, kInf, 0}, {});
    for (const char* name : {"silu", "erf", "sin", "cos", "floor", "ceil"}) {
      EXPECT_TRUE(std::isnan(unary(name, x).values[0])) << name;
    }
    // e^-x overflows, the result does not.
    expectNear(unary("silu", tensor(type, {2}, {-1e4, 1e4})), {0, 1e4}, {});
  }
}

TEST(Unary, OfIntegers) {
  for (const DType type : {DType::kI32, DType::kI64}) {
    const Tensor x = tensor(type, {3}, {5, -7, 0});
    expectNear(unary("abs", x), {5, 7, 0}, {});
    expectNear(unary("sign", x), {1, -1, 0}, {});
  }
}

TEST(Gradients, OfActivationsAgreeWithDifferences) {
  struct Case {
    const char* name;
    std::function<double(double)> f;
    AttributeMap attributes = {};
  };
  const std::vector<Case> cases = {{"silu", [](double x) { return x / (1 + std::exp(-x)); }},
                                   {"softplus", [](double x) { return std::log1p(std::exp(x)); }},
                                   {"hard_swish", hardSwish},
                                   {"leaky_relu", [](double x) { return x > 0 ? x : 0.2 * x; }, {{"slope", 0.2}}},
                                   {"elu", [](double x) { return x > 0 ? x : 1.7 * std::expm1(x); }, {{"alpha", 1.7}}}};
  for (const DType type : kFloats) {
    const Tensor x = sample(type, {65}, 4, -4, 4);
    const Tensor dy = sample(type, {65}, 5);
    for (const Case& c : cases) {
      Reals expected;
      for (size_t i = 0; i < 65; ++i) {
        expected.push_back(dy.values[i] * (c.f(x.values[i] + 1e-5) - c.f(x.values[i] - 1e-5)) / 2e-5);
      }
      // Differences with step 1e-5 are right to about 1e-9; in f32 a few roundings of values below 4.
      expectNear(runOne({std::string(c.name) + "_grad", {x, dy}, {x.spec()}, c.attributes}), expected,
                 {0, type == DType::kF32 ? 16 * epsilonOf(type) : 1e-8});
    }
    Reals sigmoid;
    for (size_t i = 0; i < 65; ++i) {
      sigmoid.push_back(dy.values[i] * x.values[i] * (1 - x.values[i]));
    }
    expectNear(runOne({"sigmoid_grad", {x, dy}, {x.spec()}}), sigmoid, {8 * epsilonOf(type), 0});
  }
}

TEST(Pow, NegativeBasesAndZeros) {
  for (const DType type : kFloats) {
    const Tensor a = tensor(type, {6}, {-2, -2, 0, 0, 4, kNan});
    const Tensor b = tensor(type, {6}, {3, 0.5, 0, 2, 0.5, 1});
    expectNear(runOne({"pow", {a, b}, {a.spec()}}), {-8, kNan, 1, 0, 2, kNan}, {2 * epsilonOf(type), 0});
  }
  const Tensor i = tensor(DType::kI32, {1}, {2});
  expectError({"pow", {i, i}, {i.spec()}}, absl::StatusCode::kInvalidArgument, "i32");
}

TEST(Gelu, BothForms) {
  for (const DType type : kFloats) {
    // 1 + tanh and 1 + erf cancel for negative x: the error is relative to x, not to the result.
    const Tensor x = sample(type, {1001}, 3, -8, 8);
    const Tolerance tolerance{4 * epsilonOf(type), 8 * 4 * epsilonOf(type)};
    expectNear(unary("gelu", x, {{"approximate", "tanh"}}), mapped(geluTanh, x.values), tolerance);
    expectNear(unary("gelu", x), mapped(geluTanh, x.values), tolerance);
    expectNear(unary("gelu", x, {{"approximate", "none"}}), mapped(geluExact, x.values), tolerance);
  }
  expectError({"gelu", {scalar(DType::kF32, 1)}, {{DType::kF32, {}}}, {{"approximate", "erf"}}},
              absl::StatusCode::kInvalidArgument, "'erf'");
}

TEST(Gradients, AgreeWithDifferences) {
  const std::map<std::string, std::function<double(double)>> forms = {{"tanh", geluTanh}, {"none", geluExact}};
  for (const DType type : kFloats) {
    const Tensor x = sample(type, {65}, 4, -4, 4);
    const Tensor dy = sample(type, {65}, 5);
    // Differences with step 1e-5 are right to about 1e-10; in f32 a few roundings of values below 4.
    const Tolerance tolerance{0, type == DType::kF32 ? 16 * epsilonOf(type) : 1e-9};
    for (const auto& [form, f] : forms) {
      Reals expected;
      for (size_t i = 0; i < 65; ++i) {
        expected.push_back(dy.values[i] * (f(x.values[i] + 1e-5) - f(x.values[i] - 1e-5)) / 2e-5);
      }
      expectNear(runOne({"gelu_grad", {x, dy}, {x.spec()}, {{"approximate", form}}}), expected, tolerance);
    }
    Reals relu, tanh;
    for (size_t i = 0; i < 65; ++i) {
      relu.push_back(x.values[i] > 0 ? dy.values[i] : 0);
      tanh.push_back(dy.values[i] * (1 - x.values[i] * x.values[i]));
    }
    expectNear(runOne({"relu_grad", {x, dy}, {x.spec()}}), relu, {});
    expectNear(runOne({"tanh_grad", {x, dy}, {x.spec()}}), tanh, {8 * epsilonOf(type), 16 * epsilonOf(type)});
  }
}

using Binary = std::function<double(double, double)>;

const std::map<std::string, Binary>& arithmetic() {
  static const std::map<std::string, Binary> kOps = {{"add", [](double a, double b) { return a + b; }},
                                                     {"sub", [](double a, double b) { return a - b; }},
                                                     {"mul", [](double a, double b) { return a * b; }},
                                                     {"div", [](double a, double b) { return a / b; }},
                                                     {"maximum", [](double a, double b) { return std::max(a, b); }},
                                                     {"minimum", [](double a, double b) { return std::min(a, b); }}};
  return kOps;
}

Reals broadcastReference(const Binary& f, const Tensor& a, const Tensor& b, const Ints& shape) {
  Reals expected;
  forEachIndex(shape, [&](const Ints& index) {
    expected.push_back(f(a.values[positionOf(a.shape, index)], b.values[positionOf(b.shape, index)]));
  });
  return expected;
}

struct Shapes {
  Ints a, b, result;
};

const std::vector<Shapes> kBroadcasts = {
    {{}, {}, {}},
    {{7}, {}, {7}},
    {{}, {7}, {7}},
    {{4, 33}, {4, 33}, {4, 33}},
    {{4, 33}, {33}, {4, 33}},
    {{33}, {4, 33}, {4, 33}},
    {{4, 33}, {4, 1}, {4, 33}},
    {{4, 1}, {1, 33}, {4, 33}},
    {{2, 1, 5}, {3, 1}, {2, 3, 5}},
    {{2, 3, 4, 5}, {3, 1, 5}, {2, 3, 4, 5}},
    {{2, 1, 4, 1}, {2, 3, 1, 5}, {2, 3, 4, 5}},
    {{1}, {1, 1, 1}, {1, 1, 1}},
    {{0, 3}, {3}, {0, 3}},
    {{0, 3}, {}, {0, 3}},
};

TEST(Binary, Broadcasting) {
  for (const DType type : kFloats) {
    for (const Shapes& s : kBroadcasts) {
      const Tensor a = sample(type, s.a, 6, 1, 2);
      const Tensor b = sample(type, s.b, 7, 1, 2);
      for (const auto& [name, f] : arithmetic()) {
        // One operation is correctly rounded.
        expectNear(runOne({name, {a, b}, {{type, s.result}}}), broadcastReference(f, a, b, s.result),
                   {epsilonOf(type), 0});
      }
    }
  }
}

TEST(Binary, IntegersAndBool) {
  for (const DType type : {DType::kI32, DType::kI64}) {
    const Tensor a = sample(type, {3, 5}, 8, -50, 50);
    const Tensor b = sample(type, {5}, 9, -50, 50);
    for (const char* name : {"add", "sub", "mul", "maximum", "minimum"}) {
      expectNear(runOne({name, {a, b}, {a.spec()}}), broadcastReference(arithmetic().at(name), a, b, {3, 5}), {});
    }
  }
  const Tensor a = tensor(DType::kBool, {4}, {0, 0, 1, 1});
  const Tensor b = tensor(DType::kBool, {4}, {0, 1, 0, 1});
  expectNear(runOne({"maximum", {a, b}, {a.spec()}}), {0, 1, 1, 1}, {});
  expectNear(runOne({"minimum", {a, b}, {a.spec()}}), {0, 0, 0, 1}, {});
  expectError({"add", {a, b}, {a.spec()}}, absl::StatusCode::kInvalidArgument, "bool");
}

TEST(Unary, NegOfIntegers) {
  for (const DType type : {DType::kI32, DType::kI64}) {
    expectNear(unary("neg", tensor(type, {3}, {5, -7, 0})), {-5, 7, 0}, {});
  }
}

TEST(Binary, NanIsNotHidden) {
  const Tensor a = tensor(DType::kF32, {2}, {kNan, 1});
  const Tensor b = tensor(DType::kF32, {2}, {1, kNan});
  expectNear(runOne({"maximum", {a, b}, {a.spec()}}), {kNan, kNan}, {});
  expectNear(runOne({"minimum", {a, b}, {a.spec()}}), {kNan, kNan}, {});
}

TEST(Compare, AllPredicates) {
  const std::map<std::string, Binary> predicates = {
      {"eq", [](double a, double b) { return a == b; }}, {"ne", [](double a, double b) { return a != b; }},
      {"lt", [](double a, double b) { return a < b; }},  {"le", [](double a, double b) { return a <= b; }},
      {"gt", [](double a, double b) { return a > b; }},  {"ge", [](double a, double b) { return a >= b; }}};
  for (const DType type : {DType::kF32, DType::kF64, DType::kI32, DType::kI64, DType::kBool}) {
    const Tensor a = tensor(type, {2, 3}, {0, 1, 1, 0, 1, 0});
    const Tensor b = tensor(type, {3}, {0, 1, 0});
    for (const auto& [name, f] : predicates) {
      expectNear(runOne({"compare", {a, b}, {{DType::kBool, {2, 3}}}, {{"predicate", name}}}),
                 broadcastReference(f, a, b, {2, 3}), {});
    }
  }
  const Tensor x = scalar(DType::kF32, 1);
  expectError({"compare", {x, x}, {{DType::kBool, {}}}, {{"predicate", "equal"}}}, absl::StatusCode::kInvalidArgument,
              "'equal'");
}

TEST(Select, BroadcastsAllThree) {
  const Tensor condition = tensor(DType::kBool, {2, 1}, {1, 0});
  const Tensor a = sample(DType::kF32, {3}, 10);
  const Tensor b = scalar(DType::kF32, 9);
  const Reals expected = {a.values[0], a.values[1], a.values[2], 9, 9, 9};
  expectNear(runOne({"select", {condition, a, b}, {{DType::kF32, {2, 3}}}}), expected, {});
  const Tensor same = tensor(DType::kBool, {3}, {1, 0, 1});
  expectNear(runOne({"select", {same, a, sample(DType::kF32, {3}, 11)}, {{DType::kF32, {3}}}}),
             {a.values[0], sample(DType::kF32, {3}, 11).values[1], a.values[2]}, {});
}

TEST(Cast, AllPairs) {
  const std::vector<DType> types = {DType::kF32, DType::kF64, DType::kI32, DType::kI64, DType::kBool};
  for (const DType from : types) {
    for (const DType to : types) {
      const Tensor x = tensor(from, {3}, {0, 1, from == DType::kBool ? 1 : 3.0});
      const Reals expected = {0, 1, to == DType::kBool || from == DType::kBool ? 1 : 3.0};
      expectNear(runOne({"cast", {x}, {{to, {3}}}}), expected, {});
    }
  }
}

TEST(Cast, OutsideTheRange) {
  const Tensor x = tensor(DType::kF32, {6}, {2.75, -2.75, kNan, 1e20, -kInf, 0.25});
  expectNear(runOne({"cast", {x}, {{DType::kI32, {6}}}}), {2, -2, 0, 2147483647, -2147483648.0, 0}, {});
  expectNear(runOne({"cast", {x}, {{DType::kBool, {6}}}}), {1, 1, 1, 1, 1, 1}, {});
  const Tensor wide = tensor(DType::kF64, {1}, {1.0 + 0x1p-30});
  expectNear(runOne({"cast", {wide}, {{DType::kF32, {1}}}}), {1}, {});
}

TEST(Elementwise, Errors) {
  const Tensor a = sample(DType::kF32, {4, 8}, 1);
  const auto code = absl::StatusCode::kInvalidArgument;
  expectError({"add", {a, sample(DType::kF32, {3}, 1)}, {a.spec()}}, code, "[3] does not broadcast to [4,8]");
  expectError({"add", {a, sample(DType::kF64, {8}, 1)}, {a.spec()}}, code, "input 1 is f64 [8], it must be f32 [8]");
  expectError({"add", {a, a}, {{DType::kF64, {4, 8}}}}, code, "output 0 is f64 [4,8], it must be f32 [4,8]");
  expectError({"exp", {a}, {{DType::kF32, {8, 4}}}}, code, "output 0 is f32 [8,4], it must be f32 [4,8]");
  expectError({"exp", {a, a}, {a.spec()}}, code, "given 2, 1 and 0");
  expectError({"exp", {sample(DType::kI32, {2}, 1)}, {{DType::kI32, {2}}}}, code, "i32");
}

}  // namespace
}  // namespace weft::testing
