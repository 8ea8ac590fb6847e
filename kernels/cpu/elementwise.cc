// Element-wise kernels: unary functions and their gradients, binary operators with broadcasting, compare, select, cast.

#include <cmath>
#include <map>

#include "kernels/cpu/families.h"
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
  return T(0.5) * x * (T(1) + std::tanh(inner));
}

template <typename T>
T geluTanhGrad(T x) {
  const T inner = T(kSqrtTwoOverPi) * (x + T(kGeluCubic) * x * x * x);
  const T t = std::tanh(inner);
  const T slope = T(kSqrtTwoOverPi) * (T(1) + T(3 * kGeluCubic) * x * x);
  return T(0.5) * (T(1) + t) + T(0.5) * x * (T(1) - t * t) * slope;
}

template <typename T>
T geluErf(T x) {
  return T(0.5) * x * (T(1) + std::erf(x * T(kSqrtHalf)));
}

template <typename T>
T geluErfGrad(T x) {
  return T(0.5) * (T(1) + std::erf(x * T(kSqrtHalf))) + x * T(kInverseSqrtTwoPi) * std::exp(T(-0.5) * x * x);
}

template <typename T, typename F>
KernelOr unary(const KernelSpec& spec, F f) {
  WEFT_RETURN_IF_ERROR(checkCounts(spec, 1, 1));
  WEFT_RETURN_IF_ERROR(checkSameShape(spec, spec.inputs[0], spec.outputs[0]));
  const int64_t n = spec.outputs[0].elements();
  return makeKernel([n, f](const KernelArguments& args) {
    const T* x = in<T>(args, 0);
    T* y = out<T>(args, 0);
    for (int64_t i = 0; i < n; ++i) {
      y[i] = f(x[i]);
    }
    return absl::OkStatus();
  });
}

// y = f(first operand, gradient), all of one shape.
template <typename T, typename F>
KernelOr gradient(const KernelSpec& spec, F f) {
  WEFT_RETURN_IF_ERROR(checkCounts(spec, 2, 1));
  WEFT_RETURN_IF_ERROR(checkSameShape(spec, spec.inputs[0], spec.inputs[1]));
  WEFT_RETURN_IF_ERROR(checkSameShape(spec, spec.inputs[0], spec.outputs[0]));
  const int64_t n = spec.outputs[0].elements();
  return makeKernel([n, f](const KernelArguments& args) {
    const T* x = in<T>(args, 0);
    const T* dy = in<T>(args, 1);
    T* dx = out<T>(args, 0);
    for (int64_t i = 0; i < n; ++i) {
      dx[i] = f(x[i], dy[i]);
    }
    return absl::OkStatus();
  });
}

template <typename T, typename R, typename F>
KernelOr binary(const KernelSpec& spec, F f) {
  WEFT_RETURN_IF_ERROR(checkCounts(spec, 2, 1));
  const std::vector<int64_t>& shape = spec.outputs[0].shape;
  WEFT_ASSIGN_OR_RETURN(auto strides0, broadcastStrides(spec.inputs[0].shape, shape));
  WEFT_ASSIGN_OR_RETURN(auto strides1, broadcastStrides(spec.inputs[1].shape, shape));
  if (spec.inputs[0].type != spec.inputs[1].type) {
    return absl::InvalidArgumentError(absl::StrCat("kernel ", spec.name, " was given ", dtypeName(spec.inputs[0].type),
                                                   " and ", dtypeName(spec.inputs[1].type)));
  }
  const StridedLoop<3> loop(shape, {strides0, strides1, stridesOf(shape)});
  return makeKernel([loop, f](const KernelArguments& args) {
    const T* a = in<T>(args, 0);
    const T* b = in<T>(args, 1);
    R* y = out<R>(args, 0);
    loop.run([&](const auto& at, int64_t count, const auto& step) {
      const T* pa = a + at[0];
      const T* pb = b + at[1];
      R* py = y + at[2];
      if (step[0] == 1 && step[1] == 1) {
        for (int64_t i = 0; i < count; ++i) {
          py[i] = f(pa[i], pb[i]);
        }
      } else if (step[0] == 1 && step[1] == 0) {
        const T other = *pb;
        for (int64_t i = 0; i < count; ++i) {
          py[i] = f(pa[i], other);
        }
      } else {
        for (int64_t i = 0; i < count; ++i) {
          py[i * step[2]] = f(pa[i * step[0]], pb[i * step[1]]);
        }
      }
    });
    return absl::OkStatus();
  });
}

template <typename F>
KernelFactory floatUnary(F f) {
  return [f](const KernelSpec& spec) {
    return dispatchFloat(spec, spec.inputs.at(0).type, [&]<typename T>() { return unary<T>(spec, f); });
  };
}

template <typename F>
KernelFactory floatGradient(F f) {
  return [f](const KernelSpec& spec) {
    return dispatchFloat(spec, spec.inputs.at(0).type, [&]<typename T>() { return gradient<T>(spec, f); });
  };
}

template <typename F>
KernelFactory anyBinary(F f) {
  return [f](const KernelSpec& spec) {
    return dispatchAll(spec, spec.inputs.at(0).type, [&]<typename T>() { return binary<T, T>(spec, f); });
  };
}

KernelOr gelu(const KernelSpec& spec, bool isGradient) {
  WEFT_ASSIGN_OR_RETURN(const std::string form, attribute<std::string>(spec.attributes, "approximate"));
  const bool tanh = form == "tanh";
  return dispatchFloat(spec, spec.inputs.at(0).type, [&]<typename T>() -> KernelOr {
    if (isGradient) {
      return tanh ? gradient<T>(spec, [](T x, T dy) { return dy * geluTanhGrad(x); })
                  : gradient<T>(spec, [](T x, T dy) { return dy * geluErfGrad(x); });
    }
    return tanh ? unary<T>(spec, [](T x) { return geluTanh(x); }) : unary<T>(spec, [](T x) { return geluErf(x); });
  });
}

KernelOr compare(const KernelSpec& spec) {
  WEFT_ASSIGN_OR_RETURN(const std::string predicate, attribute<std::string>(spec.attributes, "predicate"));
  return dispatchAll(spec, spec.inputs.at(0).type, [&]<typename T>() -> KernelOr {
    using B = uint8_t;
    if (predicate == "eq") {
      return binary<T, B>(spec, [](T a, T b) { return B(a == b); });
    }
    if (predicate == "ne") {
      return binary<T, B>(spec, [](T a, T b) { return B(a != b); });
    }
    if (predicate == "lt") {
      return binary<T, B>(spec, [](T a, T b) { return B(a < b); });
    }
    if (predicate == "le") {
      return binary<T, B>(spec, [](T a, T b) { return B(a <= b); });
    }
    if (predicate == "gt") {
      return binary<T, B>(spec, [](T a, T b) { return B(a > b); });
    }
    if (predicate == "ge") {
      return binary<T, B>(spec, [](T a, T b) { return B(a >= b); });
    }
    return absl::InvalidArgumentError(absl::StrCat("predicate '", predicate, "' is not one of eq, ne, lt, le, gt, ge"));
  });
}

template <typename T>
KernelOr select(const KernelSpec& spec) {
  WEFT_RETURN_IF_ERROR(checkCounts(spec, 3, 1));
  const std::vector<int64_t>& shape = spec.outputs[0].shape;
  WEFT_ASSIGN_OR_RETURN(auto strides0, broadcastStrides(spec.inputs[0].shape, shape));
  WEFT_ASSIGN_OR_RETURN(auto strides1, broadcastStrides(spec.inputs[1].shape, shape));
  WEFT_ASSIGN_OR_RETURN(auto strides2, broadcastStrides(spec.inputs[2].shape, shape));
  const StridedLoop<4> loop(shape, {strides0, strides1, strides2, stridesOf(shape)});
  return makeKernel([loop](const KernelArguments& args) {
    loop.run([&](const auto& at, int64_t count, const auto& step) {
      const uint8_t* condition = in<uint8_t>(args, 0) + at[0];
      const T* a = in<T>(args, 1) + at[1];
      const T* b = in<T>(args, 2) + at[2];
      T* y = out<T>(args, 0) + at[3];
      for (int64_t i = 0; i < count; ++i) {
        y[i * step[3]] = condition[i * step[0]] != 0 ? a[i * step[1]] : b[i * step[2]];
      }
    });
    return absl::OkStatus();
  });
}

template <typename From, typename To>
KernelOr castKernel(const KernelSpec& spec) {
  WEFT_RETURN_IF_ERROR(checkSameShape(spec, spec.inputs[0], spec.outputs[0]));
  const int64_t n = spec.outputs[0].elements();
  const bool toBool = spec.outputs[0].type == DType::kBool;
  return makeKernel([n, toBool](const KernelArguments& args) {
    const From* x = in<From>(args, 0);
    To* y = out<To>(args, 0);
    for (int64_t i = 0; i < n; ++i) {
      y[i] = toBool ? To(x[i] != From(0)) : static_cast<To>(x[i]);
    }
    return absl::OkStatus();
  });
}

KernelOr cast(const KernelSpec& spec) {
  WEFT_RETURN_IF_ERROR(checkCounts(spec, 1, 1));
  return dispatchAll(spec, spec.inputs[0].type, [&]<typename From>() {
    return dispatchAll(spec, spec.outputs[0].type, [&]<typename To>() { return castKernel<From, To>(spec); });
  });
}

}  // namespace

void addElementwiseKernels(KernelRegistry& registry) {
  registry.add("neg", floatUnary([](auto x) { return -x; }));
  registry.add("exp", floatUnary([](auto x) { return std::exp(x); }));
  registry.add("log", floatUnary([](auto x) { return std::log(x); }));
  registry.add("sqrt", floatUnary([](auto x) { return std::sqrt(x); }));
  registry.add("rsqrt", floatUnary([](auto x) { return decltype(x)(1) / std::sqrt(x); }));
  registry.add("tanh", floatUnary([](auto x) { return std::tanh(x); }));
  registry.add("relu", floatUnary([](auto x) { return x > 0 ? x : decltype(x)(0); }));
  registry.add("gelu", [](const KernelSpec& spec) { return gelu(spec, false); });
  registry.add("relu_grad", floatGradient([](auto x, auto dy) { return x > 0 ? dy : decltype(x)(0); }));
  registry.add("tanh_grad", floatGradient([](auto y, auto dy) { return dy * (decltype(y)(1) - y * y); }));
  registry.add("gelu_grad", [](const KernelSpec& spec) { return gelu(spec, true); });
  registry.add("add", anyBinary([](auto a, auto b) { return decltype(a)(a + b); }));
  registry.add("sub", anyBinary([](auto a, auto b) { return decltype(a)(a - b); }));
  registry.add("mul", anyBinary([](auto a, auto b) { return decltype(a)(a * b); }));
  registry.add("div", [](const KernelSpec& spec) {
    return dispatchFloat(spec, spec.inputs.at(0).type,
                         [&]<typename T>() { return binary<T, T>(spec, [](T a, T b) { return a / b; }); });
  });
  registry.add("maximum", anyBinary([](auto a, auto b) { return a > b ? a : b; }));
  registry.add("minimum", anyBinary([](auto a, auto b) { return a < b ? a : b; }));
  registry.add("compare", compare);
  registry.add("select", [](const KernelSpec& spec) {
    return dispatchAll(spec, spec.outputs.at(0).type, [&]<typename T>() { return select<T>(spec); });
  });
  registry.add("cast", cast);
}

}  // namespace weft
