// Element-wise kernels: unary functions and their gradients, binary operators with broadcasting, compare, select, cast.
// A NaN operand gives a NaN everywhere but in compare, select's condition and casts to integers, so that a bad value is
// seen and not hidden.

#include "kernels/cpu/elementwise.h"

#include <cmath>
#include <limits>
#include <type_traits>

#include "kernels/cpu/families.h"
#include "kernels/cpu/loops.h"
#include "kernels/cpu/math.h"
#include "kernels/cpu/support.h"

namespace weft {
namespace {

using namespace cpu;  // NOLINT

// GELU (Hendrycks and Gimpel 2016): exact x * Phi(x), and the tanh form 0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715
// x^3))).
constexpr double kSqrtTwoOverPi = 0.79788456080286535588;
constexpr double kGeluCubic = 0.044715;
constexpr double kSqrtHalf = 0.70710678118654752440;
constexpr double kInverseSqrtTwoPi = 0.39894228040143267794;

template <typename T>
T geluTanh(T x) {
  const T inner = T(kSqrtTwoOverPi) * (x + T(kGeluCubic) * x * x * x);
  return T(0.5) * x * (T(1) + math::tanh(inner));
}

template <typename T>
T geluTanhGrad(T x) {
  const T inner = T(kSqrtTwoOverPi) * (x + T(kGeluCubic) * x * x * x);
  const T t = math::tanh(inner);
  const T slope = T(kSqrtTwoOverPi) * (T(1) + T(3 * kGeluCubic) * x * x);
  return T(0.5) * (T(1) + t) + T(0.5) * x * (T(1) - t * t) * slope;
}

template <typename T>
T geluErf(T x) {
  return T(0.5) * x * (T(1) + math::erf(x * T(kSqrtHalf)));
}

template <typename T>
T geluErfGrad(T x) {
  return T(0.5) * (T(1) + math::erf(x * T(kSqrtHalf))) + x * T(kInverseSqrtTwoPi) * math::exp(T(-0.5) * x * x);
}

// -0 of 0 for floats, unlike 0 - x.
template <typename T>
T negated(T x) {
  if constexpr (std::is_integral_v<T>) {
    return wrapping(T(0), x, [](auto a, auto b) { return a - b; });
  } else {
    return -x;
  }
}

template <typename T>
T absolute(T x) {
  if constexpr (std::is_integral_v<T>) {
    return x < 0 ? negated(x) : x;
  } else {
    return std::fabs(x);
  }
}

// One row of a binary operator; steps of 0 and 1 get loops of their own, which become vectors.
template <typename T, typename R, typename F>
void binaryRow(const T* a, const T* b, R* y, int64_t count, const std::array<int64_t, 3>& step, const F& f) {
  if (step[0] == 1 && step[1] == 1) {
    WEFT_INDEPENDENT
    for (int64_t i = 0; i < count; ++i) {
      y[i] = f(a[i], b[i]);
    }
  } else if (step[0] == 1 && step[1] == 0) {
    const T right = *b;
    WEFT_INDEPENDENT
    for (int64_t i = 0; i < count; ++i) {
      y[i] = f(a[i], right);
    }
  } else if (step[0] == 0 && step[1] == 1) {
    const T left = *a;
    WEFT_INDEPENDENT
    for (int64_t i = 0; i < count; ++i) {
      y[i] = f(left, b[i]);
    }
  } else {
    for (int64_t i = 0; i < count; ++i) {
      y[i * step[2]] = f(a[i * step[0]], b[i * step[1]]);
    }
  }
}

template <typename T, typename R, typename F>
KernelOr binary(const KernelSpec& spec, F f) {
  const Ints& shape = spec.outputs[0].shape;
  const DType result = std::is_same_v<T, R> ? spec.inputs[0].type : DType::kBool;
  WEFT_RETURN_IF_ERROR(checkInput(spec, 1, {spec.inputs[0].type, spec.inputs[1].shape}));
  WEFT_RETURN_IF_ERROR(checkOutput(spec, 0, {result, shape}));
  WEFT_ASSIGN_OR_RETURN(const Ints left, broadcastStrides(spec.inputs[0].shape, shape));
  WEFT_ASSIGN_OR_RETURN(const Ints right, broadcastStrides(spec.inputs[1].shape, shape));
  const StridedLoop<3> loop(shape, {left, right, stridesOf(shape)});
  return makeKernel([loop, f](const KernelArguments& args) {
    loop.run([&](const auto& at, int64_t count, const auto& step) {
      binaryRow(in<T>(args, 0) + at[0], in<T>(args, 1) + at[1], out<R>(args, 0) + at[2], count, step, f);
    });
    return absl::OkStatus();
  });
}

template <typename F>
KernelFactory floatBinary(F f) {
  return withArity({2, 1}, [f](const KernelSpec& spec) {
    return dispatchFloat(spec, spec.inputs[0].type, [&]<typename T>() { return binary<T, T>(spec, f); });
  });
}

template <typename F>
KernelFactory numericBinary(F f) {
  return withArity({2, 1}, [f](const KernelSpec& spec) {
    return dispatchNumeric(spec, spec.inputs[0].type, [&]<typename T>() { return binary<T, T>(spec, f); });
  });
}

// Also on bool, where maximum is "or" and minimum "and".
template <typename F>
KernelFactory anyBinary(F f) {
  return withArity({2, 1}, [f](const KernelSpec& spec) {
    return dispatchAll(spec, spec.inputs[0].type, [&]<typename T>() { return binary<T, T>(spec, f); });
  });
}

absl::StatusOr<bool> usesTanh(const KernelSpec& spec) {
  WEFT_ASSIGN_OR_RETURN(const std::string form, attributeOr<std::string>(spec.attributes, "approximate", "tanh"));
  if (form != "tanh" && form != "none") {
    return invalid(spec, "approximate is '", form, "', it must be 'tanh' or 'none'");
  }
  return form == "tanh";
}

KernelOr gelu(const KernelSpec& spec) {
  WEFT_ASSIGN_OR_RETURN(const bool tanh, usesTanh(spec));
  return dispatchFloat(spec, spec.inputs[0].type, [&]<typename T>() -> KernelOr {
    return tanh ? unary<T>(spec, [](T x) { return geluTanh(x); }) : unary<T>(spec, [](T x) { return geluErf(x); });
  });
}

KernelOr geluGrad(const KernelSpec& spec) {
  WEFT_ASSIGN_OR_RETURN(const bool tanh, usesTanh(spec));
  return dispatchFloat(spec, spec.inputs[0].type, [&]<typename T>() -> KernelOr {
    return tanh ? gradient<T>(spec, [](T x, T dy) { return dy * geluTanhGrad(x); })
                : gradient<T>(spec, [](T x, T dy) { return dy * geluErfGrad(x); });
  });
}

KernelOr compare(const KernelSpec& spec) {
  WEFT_ASSIGN_OR_RETURN(const std::string predicate, attribute<std::string>(spec.attributes, "predicate"));
  return dispatchAll(spec, spec.inputs[0].type, [&]<typename T>() -> KernelOr {
    // A type of its own, so that bool operands do not look like a result of the operands' type.
    using B = bool;
    if (predicate == "eq") {
      return binary<T, B>(spec, [](T a, T b) { return a == b; });
    }
    if (predicate == "ne") {
      return binary<T, B>(spec, [](T a, T b) { return a != b; });
    }
    if (predicate == "lt") {
      return binary<T, B>(spec, [](T a, T b) { return a < b; });
    }
    if (predicate == "le") {
      return binary<T, B>(spec, [](T a, T b) { return a <= b; });
    }
    if (predicate == "gt") {
      return binary<T, B>(spec, [](T a, T b) { return a > b; });
    }
    if (predicate == "ge") {
      return binary<T, B>(spec, [](T a, T b) { return a >= b; });
    }
    return invalid(spec, "predicate '", predicate, "' is not one of eq, ne, lt, le, gt, ge");
  });
}

template <typename T>
KernelOr select(const KernelSpec& spec) {
  const Ints& shape = spec.outputs[0].shape;
  const DType type = spec.outputs[0].type;
  WEFT_RETURN_IF_ERROR(checkInput(spec, 0, {DType::kBool, spec.inputs[0].shape}));
  WEFT_RETURN_IF_ERROR(checkInput(spec, 1, {type, spec.inputs[1].shape}));
  WEFT_RETURN_IF_ERROR(checkInput(spec, 2, {type, spec.inputs[2].shape}));
  WEFT_ASSIGN_OR_RETURN(const Ints strides0, broadcastStrides(spec.inputs[0].shape, shape));
  WEFT_ASSIGN_OR_RETURN(const Ints strides1, broadcastStrides(spec.inputs[1].shape, shape));
  WEFT_ASSIGN_OR_RETURN(const Ints strides2, broadcastStrides(spec.inputs[2].shape, shape));
  const StridedLoop<4> loop(shape, {strides0, strides1, strides2, stridesOf(shape)});
  return makeKernel([loop](const KernelArguments& args) {
    loop.run([&](const auto& at, int64_t count, const auto& step) {
      const uint8_t* condition = in<uint8_t>(args, 0) + at[0];
      const T* a = in<T>(args, 1) + at[1];
      const T* b = in<T>(args, 2) + at[2];
      T* y = out<T>(args, 0) + at[3];
      if (step == std::array<int64_t, 4>{1, 1, 1, 1}) {
        WEFT_INDEPENDENT
        for (int64_t i = 0; i < count; ++i) {
          y[i] = condition[i] != 0 ? a[i] : b[i];
        }
        return;
      }
      for (int64_t i = 0; i < count; ++i) {
        y[i * step[3]] = condition[i * step[0]] != 0 ? a[i * step[1]] : b[i * step[2]];
      }
    });
    return absl::OkStatus();
  });
}

template <typename From, typename To>
KernelOr castKernel(const KernelSpec& spec) {
  const int64_t n = spec.outputs[0].elements();
  return makeKernel([n](const KernelArguments& args) {
    const From* x = in<From>(args, 0);
    To* y = out<To>(args, 0);
    for (int64_t i = 0; i < n; ++i) {
      y[i] = convert<To>(x[i]);
    }
    return absl::OkStatus();
  });
}

KernelOr cast(const KernelSpec& spec) {
  WEFT_RETURN_IF_ERROR(checkOutput(spec, 0, {spec.outputs[0].type, spec.inputs[0].shape}));
  return dispatchAll(spec, spec.inputs[0].type, [&]<typename From>() -> KernelOr {
    if (spec.outputs[0].type == DType::kBool) {
      return castKernel<From, bool>(spec);
    }
    return dispatchNumeric(spec, spec.outputs[0].type, [&]<typename To>() { return castKernel<From, To>(spec); });
  });
}

void addGradients(KernelRegistry& registry) {
  registry.add("relu_grad", floatGradient([](auto x, auto dy) { return x > 0 ? dy : x != x ? x : decltype(x)(0); }));
  registry.add("tanh_grad", floatGradient([](auto y, auto dy) { return dy * (decltype(y)(1) - y * y); }));
  registry.add("gelu_grad", withArity({2, 1}, geluGrad));
}

}  // namespace

void addElementwiseKernels(KernelRegistry& registry) {
  registry.add("neg", numericUnary([](auto x) { return negated(x); }));
  registry.add("abs", numericUnary([](auto x) { return absolute(x); }));
  registry.add("sign", numericUnary([](auto x) { return x != x ? x : static_cast<decltype(x)>((x > 0) - (x < 0)); }));
  registry.add("floor", floatUnary([](auto x) { return std::floor(x); }));
  registry.add("ceil", floatUnary([](auto x) { return std::ceil(x); }));
  registry.add("erf", floatUnary([](auto x) { return math::erf(x); }));
  registry.add("sin", floatUnary([](auto x) { return std::sin(x); }));
  registry.add("cos", floatUnary([](auto x) { return std::cos(x); }));
  registry.add("exp", floatUnary([](auto x) { return math::exp(x); }));
  registry.add("log", floatUnary([](auto x) { return std::log(x); }));
  registry.add("sqrt", floatUnary([](auto x) { return std::sqrt(x); }));
  registry.add("rsqrt", floatUnary([](auto x) { return decltype(x)(1) / std::sqrt(x); }));
  registry.add("tanh", floatUnary([](auto x) { return math::tanh(x); }));
  registry.add("relu", floatUnary([](auto x) { return x <= 0 ? decltype(x)(0) : x; }));
  registry.add("gelu", withArity({1, 1}, gelu));
  addGradients(registry);
  registry.add("add", numericBinary([](auto a, auto b) { return wrappingSum(a, b); }));
  registry.add("sub",
               numericBinary([](auto a, auto b) { return wrapping(a, b, [](auto x, auto y) { return x - y; }); }));
  registry.add("mul",
               numericBinary([](auto a, auto b) { return wrapping(a, b, [](auto x, auto y) { return x * y; }); }));
  registry.add("div", floatBinary([](auto a, auto b) { return a / b; }));
  // 1 where b is 0 or a is 1, as everywhere, even beside a NaN.
  registry.add("pow", floatBinary([](auto a, auto b) { return std::pow(a, b); }));
  registry.add("maximum", anyBinary([](auto a, auto b) { return larger(a, b); }));
  registry.add("minimum", anyBinary([](auto a, auto b) { return smaller(a, b); }));
  registry.add("compare", withArity({2, 1}, compare));
  registry.add("select", withArity({3, 1}, [](const KernelSpec& spec) {
                 return dispatchAll(spec, spec.outputs[0].type, [&]<typename T>() { return select<T>(spec); });
               }));
  registry.add("cast", withArity({1, 1}, cast));
}

}  // namespace weft
