// Activations but for relu, gelu and tanh (elementwise.cc), and their gradients. A NaN operand gives a NaN.

#include <cmath>

#include "kernels/cpu/elementwise.h"
#include "kernels/cpu/families.h"
#include "kernels/cpu/math.h"

namespace weft {
namespace {

using namespace cpu;  // NOLINT

template <typename T>
T sigmoid(T x) {
  return T(1) / (T(1) + math::exp(-x));
}

template <typename T>
T siluGrad(T x) {
  const T s = sigmoid(x);
  return s * (T(1) + x * (T(1) - s));
}

// max(x, 0) + log(1 + e^-|x|), which overflows nowhere.
template <typename T>
T softplus(T x) {
  return (x < 0 ? T(0) : x) + math::log1p(math::exp(-std::fabs(x)));
}

template <typename T>
T hardSwish(T x) {
  return x <= T(-3) ? T(0) : x >= T(3) ? x : x * (x + T(3)) * T(1.0 / 6);
}

template <typename T>
T hardSwishGrad(T x) {
  return x <= T(-3) ? T(0) : x >= T(3) ? T(1) : x * T(1.0 / 3) + T(0.5);
}

// A unary activation with one number, and its gradient: f(number, x) and g(number, x) dy.
template <typename F>
KernelFactory numbered(const char* attributeName, F f) {
  return withArity({1, 1}, [attributeName, f](const KernelSpec& spec) -> KernelOr {
    WEFT_ASSIGN_OR_RETURN(const double number, attribute<double>(spec.attributes, attributeName));
    return dispatchFloat(spec, spec.inputs[0].type, [&]<typename T>() {
      return unary<T>(spec, [f, factor = static_cast<T>(number)](T x) { return f(factor, x); });
    });
  });
}
template <typename G>
KernelFactory numberedGradient(const char* attributeName, G g) {
  return withArity({2, 1}, [attributeName, g](const KernelSpec& spec) -> KernelOr {
    WEFT_ASSIGN_OR_RETURN(const double number, attribute<double>(spec.attributes, attributeName));
    return dispatchFloat(spec, spec.inputs[0].type, [&]<typename T>() {
      return gradient<T>(spec, [g, factor = static_cast<T>(number)](T x, T dy) { return dy * g(factor, x); });
    });
  });
}

}  // namespace

void addActivationKernels(KernelRegistry& registry) {
  registry.add("sigmoid", floatUnary([](auto x) { return sigmoid(x); }));
  registry.add("sigmoid_grad", floatGradient([](auto y, auto dy) { return dy * y * (decltype(y)(1) - y); }));
  registry.add("silu", floatUnary([](auto x) { return x * sigmoid(x); }));
  registry.add("silu_grad", floatGradient([](auto x, auto dy) { return dy * siluGrad(x); }));
  registry.add("softplus", floatUnary([](auto x) { return softplus(x); }));
  registry.add("softplus_grad", floatGradient([](auto x, auto dy) { return dy * sigmoid(x); }));
  registry.add("hard_swish", floatUnary([](auto x) { return hardSwish(x); }));
  registry.add("hard_swish_grad", floatGradient([](auto x, auto dy) { return dy * hardSwishGrad(x); }));
  registry.add("leaky_relu", numbered("slope", [](auto slope, auto x) { return x > 0 ? x : slope * x; }));
  registry.add("leaky_relu_grad", numberedGradient("slope", [](auto slope, auto x) {
                 return x > 0 ? decltype(x)(1) : x != x ? x : slope;
               }));
  registry.add("elu", numbered("alpha", [](auto alpha, auto x) { return x > 0 ? x : alpha * std::expm1(x); }));
  registry.add("elu_grad", numberedGradient("alpha", [](auto alpha, auto x) {
                 return x > 0 ? decltype(x)(1) : alpha * math::exp(x);
               }));
}

}  // namespace weft
