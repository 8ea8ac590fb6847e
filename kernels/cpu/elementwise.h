// Element-wise kernels of one operand, and gradients of such.
#pragma once

#include "kernels/cpu/loops.h"
#include "kernels/cpu/support.h"

namespace weft::cpu {

template <typename T, typename F>
KernelOr unary(const KernelSpec& spec, F f) {
  WEFT_RETURN_IF_ERROR(checkOutput(spec, 0, spec.inputs[0]));
  const int64_t n = spec.outputs[0].elements();
  return makeKernel([n, f](const KernelArguments& args) {
    const T* x = in<T>(args, 0);
    T* y = out<T>(args, 0);
    WEFT_INDEPENDENT
    for (int64_t i = 0; i < n; ++i) {
      y[i] = f(x[i]);
    }
    return absl::OkStatus();
  });
}

// y = f(first operand, gradient), all of one shape.
template <typename T, typename F>
KernelOr gradient(const KernelSpec& spec, F f) {
  WEFT_RETURN_IF_ERROR(checkInput(spec, 1, spec.inputs[0]));
  WEFT_RETURN_IF_ERROR(checkOutput(spec, 0, spec.inputs[0]));
  const int64_t n = spec.outputs[0].elements();
  return makeKernel([n, f](const KernelArguments& args) {
    const T* x = in<T>(args, 0);
    const T* dy = in<T>(args, 1);
    T* dx = out<T>(args, 0);
    WEFT_INDEPENDENT
    for (int64_t i = 0; i < n; ++i) {
      dx[i] = f(x[i], dy[i]);
    }
    return absl::OkStatus();
  });
}

template <typename F>
KernelFactory floatUnary(F f) {
  return withArity({1, 1}, [f](const KernelSpec& spec) {
    return dispatchFloat(spec, spec.inputs[0].type, [&]<typename T>() { return unary<T>(spec, f); });
  });
}

template <typename F>
KernelFactory floatGradient(F f) {
  return withArity({2, 1}, [f](const KernelSpec& spec) {
    return dispatchFloat(spec, spec.inputs[0].type, [&]<typename T>() { return gradient<T>(spec, f); });
  });
}

template <typename F>
KernelFactory numericUnary(F f) {
  return withArity({1, 1}, [f](const KernelSpec& spec) {
    return dispatchNumeric(spec, spec.inputs[0].type, [&]<typename T>() { return unary<T>(spec, f); });
  });
}

}  // namespace weft::cpu
