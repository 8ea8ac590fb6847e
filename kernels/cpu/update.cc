// Optimizer updates, one fused pass over parameter, gradient and state; outputs may be the inputs' memory. An optional
// last operand `apply` (bool scalar) leaves everything as it was where false.
//
// SGD: d = g + wd p; buf = mu buf + d; p -= lr * (nesterov ? d + mu buf : buf).
// Adam (Kingma and Ba 2015): m = b1 m + (1-b1) g, v = b2 v + (1-b2) g^2, p -= lr (m / (1-b1^t)) / (sqrt(v / (1-b2^t)) +
// eps); decoupled decay (AdamW, Loshchilov and Hutter 2019): p *= 1 - lr wd first; else g += wd p first.

#include <cmath>
#include <cstring>

#include "kernels/cpu/families.h"
#include "kernels/cpu/support.h"

namespace weft {
namespace {

using namespace cpu;  // NOLINT

// The scalar operand `i`, f32 or f64.
double scalarAt(const KernelArguments& args, size_t i, DType type) {
  return type == DType::kF64 ? *in<double>(args, i) : *in<float>(args, i);
}

bool skipped(const KernelArguments& args, size_t applyIndex, size_t inputs) {
  return inputs > applyIndex && *in<uint8_t>(args, applyIndex) == 0;
}

void keep(const KernelArguments& args, size_t input, size_t output, int64_t bytes) {
  if (args.inputs[input] != args.outputs[output]) {
    std::memcpy(args.outputs[output], args.inputs[input], bytes);
  }
}

template <typename T>
KernelOr sgd(const KernelSpec& spec) {
  if (spec.inputs.size() < 4 || spec.inputs.size() > 5 || spec.outputs.size() != 2) {
    return checkCounts(spec, 4, 2);
  }
  WEFT_ASSIGN_OR_RETURN(const double momentum, attributeOr<double>(spec.attributes, "momentum", 0.0));
  WEFT_ASSIGN_OR_RETURN(const double decay, attributeOr<double>(spec.attributes, "weight_decay", 0.0));
  WEFT_ASSIGN_OR_RETURN(const int64_t nesterov, attributeOr<int64_t>(spec.attributes, "nesterov", 0));
  const int64_t n = spec.inputs[0].elements();
  const size_t inputs = spec.inputs.size();
  const DType lrType = spec.inputs[3].type;
  return makeKernel([=](const KernelArguments& args) {
    if (skipped(args, 4, inputs)) {
      keep(args, 0, 0, n * sizeof(T));
      keep(args, 2, 1, n * sizeof(T));
      return absl::OkStatus();
    }
    const T lr = static_cast<T>(scalarAt(args, 3, lrType));
    const T mu = static_cast<T>(momentum);
    const T wd = static_cast<T>(decay);
    const T* p = in<T>(args, 0);
    const T* g = in<T>(args, 1);
    const T* velocity = in<T>(args, 2);
    T* newP = out<T>(args, 0);
    T* newVelocity = out<T>(args, 1);
    for (int64_t i = 0; i < n; ++i) {
      const T d = g[i] + wd * p[i];
      const T buffer = mu * velocity[i] + d;
      newVelocity[i] = buffer;
      newP[i] = p[i] - lr * (nesterov != 0 ? d + mu * buffer : buffer);
    }
    return absl::OkStatus();
  });
}

template <typename T>
KernelOr adam(const KernelSpec& spec) {
  if (spec.inputs.size() < 6 || spec.inputs.size() > 7 || spec.outputs.size() != 3) {
    return checkCounts(spec, 6, 3);
  }
  WEFT_ASSIGN_OR_RETURN(const double beta1, attributeOr<double>(spec.attributes, "beta1", 0.9));
  WEFT_ASSIGN_OR_RETURN(const double beta2, attributeOr<double>(spec.attributes, "beta2", 0.999));
  WEFT_ASSIGN_OR_RETURN(const double epsilon, attributeOr<double>(spec.attributes, "epsilon", 1e-8));
  WEFT_ASSIGN_OR_RETURN(const double decay, attributeOr<double>(spec.attributes, "weight_decay", 0.0));
  WEFT_ASSIGN_OR_RETURN(const int64_t decoupled, attributeOr<int64_t>(spec.attributes, "decoupled", 0));
  const int64_t n = spec.inputs[0].elements();
  const size_t inputs = spec.inputs.size();
  const DType lrType = spec.inputs[4].type;
  const bool wideStep = spec.inputs[5].type == DType::kI64;
  return makeKernel([=](const KernelArguments& args) {
    if (skipped(args, 6, inputs)) {
      keep(args, 0, 0, n * sizeof(T));
      keep(args, 2, 1, n * sizeof(T));
      keep(args, 3, 2, n * sizeof(T));
      return absl::OkStatus();
    }
    const double lr = scalarAt(args, 4, lrType);
    const double t = static_cast<double>(wideStep ? *in<int64_t>(args, 5) : *in<int32_t>(args, 5));
    const T shrink = decoupled != 0 ? static_cast<T>(1.0 - lr * decay) : T(1);
    const T coupled = decoupled != 0 ? T(0) : static_cast<T>(decay);
    const T b1 = static_cast<T>(beta1);
    const T b2 = static_cast<T>(beta2);
    const T c1 = static_cast<T>(1.0 - beta1);
    const T c2 = static_cast<T>(1.0 - beta2);
    const T stepSize = static_cast<T>(lr / (1.0 - std::pow(beta1, t)));
    const T correction = static_cast<T>(1.0 / std::sqrt(1.0 - std::pow(beta2, t)));
    const T eps = static_cast<T>(epsilon);
    const T* p = in<T>(args, 0);
    const T* g = in<T>(args, 1);
    const T* m = in<T>(args, 2);
    const T* v = in<T>(args, 3);
    T* newP = out<T>(args, 0);
    T* newM = out<T>(args, 1);
    T* newV = out<T>(args, 2);
    for (int64_t i = 0; i < n; ++i) {
      const T d = g[i] + coupled * p[i];
      const T first = b1 * m[i] + c1 * d;
      const T second = b2 * v[i] + c2 * d * d;
      newM[i] = first;
      newV[i] = second;
      newP[i] = p[i] * shrink - stepSize * first / (std::sqrt(second) * correction + eps);
    }
    return absl::OkStatus();
  });
}

}  // namespace

void addUpdateKernels(KernelRegistry& registry) {
  registry.add("sgd", [](const KernelSpec& spec) {
    return dispatchFloat(spec, spec.inputs.at(0).type, [&]<typename T>() { return sgd<T>(spec); });
  });
  registry.add("adam", [](const KernelSpec& spec) {
    return dispatchFloat(spec, spec.inputs.at(0).type, [&]<typename T>() { return adam<T>(spec); });
  });
}

}  // namespace weft
