// Optimizer updates, one fused pass over parameter, gradient and state; each output may be its input's memory. An
// optional last operand `apply` (bool scalar) leaves everything as it was where false.
//
// SGD: d = g + wd p; buf = mu buf + d; p -= lr * (nesterov ? d + mu buf : buf).
// Adam (Kingma and Ba 2015), t from 1: m = b1 m + (1-b1) g, v = b2 v + (1-b2) g^2,
// p -= lr (m / (1-b1^t)) / (sqrt(v / (1-b2^t)) + eps). Decoupled decay (AdamW, Loshchilov and Hutter 2019): p *= 1 - lr
// wd first; else g += wd p first.
//
// Directions of composed optimizers, and the step along one: ir/nn/update.td has the formulas.

#include <algorithm>
#include <cmath>

#include "kernels/cpu/families.h"
#include "kernels/cpu/loops.h"
#include "kernels/cpu/support.h"

namespace weft {
namespace {

using namespace cpu;  // NOLINT

// A float scalar operand, f32 or f64.
double realAt(const KernelArguments& args, size_t i, DType type) {
  return type == DType::kF64 ? *in<double>(args, i) : *in<float>(args, i);
}

absl::Status checkLearningRate(const KernelSpec& spec, size_t i) {
  const bool isReal = spec.inputs[i].type == DType::kF64;
  return checkInput(spec, i, {isReal ? DType::kF64 : DType::kF32, {}});
}

absl::Status checkApply(const KernelSpec& spec, size_t i) {
  return spec.inputs.size() > i ? checkInput(spec, i, {DType::kBool, {}}) : absl::OkStatus();
}

template <typename T>
void keep(const KernelArguments& args, size_t input, size_t output, int64_t n) {
  if (args.inputs[input] != args.outputs[output]) {
    std::copy_n(in<T>(args, input), n, out<T>(args, output));
  }
}

absl::Status checkSgd(const KernelSpec& spec) {
  WEFT_RETURN_IF_ERROR(checkInput(spec, 1, spec.inputs[0]));
  WEFT_RETURN_IF_ERROR(checkInput(spec, 2, spec.inputs[0]));
  WEFT_RETURN_IF_ERROR(checkLearningRate(spec, 3));
  WEFT_RETURN_IF_ERROR(checkApply(spec, 4));
  WEFT_RETURN_IF_ERROR(checkOutput(spec, 0, spec.inputs[0]));
  return checkOutput(spec, 1, spec.inputs[0]);
}

template <typename T>
KernelOr sgd(const KernelSpec& spec) {
  WEFT_RETURN_IF_ERROR(checkSgd(spec));
  WEFT_ASSIGN_OR_RETURN(const double momentum, attributeOr<double>(spec.attributes, "momentum", 0.0));
  WEFT_ASSIGN_OR_RETURN(const double decay, attributeOr<double>(spec.attributes, "weight_decay", 0.0));
  WEFT_ASSIGN_OR_RETURN(const int64_t nesterov, attributeOr<int64_t>(spec.attributes, "nesterov", 0));
  const int64_t n = spec.inputs[0].elements();
  const bool maySkip = spec.inputs.size() > 4;
  const DType lrType = spec.inputs[3].type;
  return makeKernel([=](const KernelArguments& args) {
    if (maySkip && *in<uint8_t>(args, 4) == 0) {
      keep<T>(args, 0, 0, n);
      keep<T>(args, 2, 1, n);
      return absl::OkStatus();
    }
    const T lr = static_cast<T>(realAt(args, 3, lrType));
    const T mu = static_cast<T>(momentum);
    const T wd = static_cast<T>(decay);
    // Both forms are a step along a d + b buffer.
    const T alongD = nesterov != 0 ? T(1) : T(0);
    const T alongBuffer = nesterov != 0 ? mu : T(1);
    const T* p = in<T>(args, 0);
    const T* g = in<T>(args, 1);
    const T* velocity = in<T>(args, 2);
    T* newP = out<T>(args, 0);
    T* newVelocity = out<T>(args, 1);
    WEFT_INDEPENDENT
    for (int64_t i = 0; i < n; ++i) {
      const T d = g[i] + wd * p[i];
      const T buffer = mu * velocity[i] + d;
      newVelocity[i] = buffer;
      newP[i] = p[i] - lr * (alongD * d + alongBuffer * buffer);
    }
    return absl::OkStatus();
  });
}

struct AdamAttributes {
  double beta1, beta2, epsilon, decay;
  bool decoupled;
};

absl::StatusOr<AdamAttributes> adamAttributes(const KernelSpec& spec) {
  AdamAttributes a;
  WEFT_ASSIGN_OR_RETURN(a.beta1, attributeOr<double>(spec.attributes, "beta1", 0.9));
  WEFT_ASSIGN_OR_RETURN(a.beta2, attributeOr<double>(spec.attributes, "beta2", 0.999));
  WEFT_ASSIGN_OR_RETURN(a.epsilon, attributeOr<double>(spec.attributes, "epsilon", 1e-8));
  WEFT_ASSIGN_OR_RETURN(a.decay, attributeOr<double>(spec.attributes, "weight_decay", 0.0));
  WEFT_ASSIGN_OR_RETURN(const int64_t decoupled, attributeOr<int64_t>(spec.attributes, "decoupled", 0));
  a.decoupled = decoupled != 0;
  return a;
}

// The number of the step, an i64 or i32 scalar operand.
absl::StatusOr<double> stepAt(const KernelArguments& args, size_t i, bool isWide, const char* kernel) {
  const int64_t t = isWide ? *in<int64_t>(args, i) : *in<int32_t>(args, i);
  if (t < 1) {
    return absl::OutOfRangeError(absl::StrCat("kernel ", kernel, ": step ", t, "; steps count from 1"));
  }
  return static_cast<double>(t);
}

absl::Status checkAdam(const KernelSpec& spec) {
  for (size_t i = 1; i < 4; ++i) {
    WEFT_RETURN_IF_ERROR(checkInput(spec, i, spec.inputs[0]));
  }
  WEFT_RETURN_IF_ERROR(checkLearningRate(spec, 4));
  const bool wide = spec.inputs[5].type == DType::kI64;
  WEFT_RETURN_IF_ERROR(checkInput(spec, 5, {wide ? DType::kI64 : DType::kI32, {}}));
  WEFT_RETURN_IF_ERROR(checkApply(spec, 6));
  for (size_t i = 0; i < 3; ++i) {
    WEFT_RETURN_IF_ERROR(checkOutput(spec, i, spec.inputs[0]));
  }
  return absl::OkStatus();
}

// What is the same for all elements of one step.
template <typename T>
struct AdamStep {
  T shrink, coupled, b1, b2, c1, c2, stepSize, correction, epsilon;

  AdamStep(const AdamAttributes& a, double lr, double t)
      : shrink(a.decoupled ? static_cast<T>(1.0 - lr * a.decay) : T(1)),
        coupled(a.decoupled ? T(0) : static_cast<T>(a.decay)),
        b1(static_cast<T>(a.beta1)),
        b2(static_cast<T>(a.beta2)),
        c1(static_cast<T>(1.0 - a.beta1)),
        c2(static_cast<T>(1.0 - a.beta2)),
        stepSize(static_cast<T>(lr / (1.0 - std::pow(a.beta1, t)))),
        correction(static_cast<T>(1.0 / std::sqrt(1.0 - std::pow(a.beta2, t)))),
        epsilon(static_cast<T>(a.epsilon)) {}

  void run(const KernelArguments& args, int64_t n) const {
    const AdamStep s = *this;
    const T* p = in<T>(args, 0);
    const T* g = in<T>(args, 1);
    const T* m = in<T>(args, 2);
    const T* v = in<T>(args, 3);
    T* newP = out<T>(args, 0);
    T* newM = out<T>(args, 1);
    T* newV = out<T>(args, 2);
    WEFT_INDEPENDENT
    for (int64_t i = 0; i < n; ++i) {
      const T d = g[i] + s.coupled * p[i];
      const T first = s.b1 * m[i] + s.c1 * d;
      const T second = s.b2 * v[i] + s.c2 * d * d;
      newM[i] = first;
      newV[i] = second;
      newP[i] = p[i] * s.shrink - s.stepSize * first / (std::sqrt(second) * s.correction + s.epsilon);
    }
  }
};

template <typename T>
KernelOr adam(const KernelSpec& spec) {
  WEFT_RETURN_IF_ERROR(checkAdam(spec));
  WEFT_ASSIGN_OR_RETURN(const AdamAttributes attributes, adamAttributes(spec));
  const int64_t n = spec.inputs[0].elements();
  const bool maySkip = spec.inputs.size() > 6;
  const DType lrType = spec.inputs[4].type;
  const bool wideStep = spec.inputs[5].type == DType::kI64;
  return makeKernel([=](const KernelArguments& args) -> absl::Status {
    if (maySkip && *in<uint8_t>(args, 6) == 0) {
      keep<T>(args, 0, 0, n);
      keep<T>(args, 2, 1, n);
      keep<T>(args, 3, 2, n);
      return absl::OkStatus();
    }
    WEFT_ASSIGN_OR_RETURN(const double t, stepAt(args, 5, wideStep, "adam"));
    AdamStep<T>(attributes, realAt(args, 4, lrType), t).run(args, n);
    return absl::OkStatus();
  });
}

// --- directions ---

// The first `tensors` inputs and all outputs are alike.
absl::Status checkAlike(const KernelSpec& spec, size_t tensors) {
  for (size_t i = 1; i < tensors; ++i) {
    WEFT_RETURN_IF_ERROR(checkInput(spec, i, spec.inputs[0]));
  }
  for (size_t i = 0; i < spec.outputs.size(); ++i) {
    WEFT_RETURN_IF_ERROR(checkOutput(spec, i, spec.inputs[0]));
  }
  return absl::OkStatus();
}

template <typename T>
KernelOr adamDirection(const KernelSpec& spec) {
  WEFT_RETURN_IF_ERROR(checkAlike(spec, 3));
  const bool wideStep = spec.inputs[3].type == DType::kI64;
  WEFT_RETURN_IF_ERROR(checkInput(spec, 3, {wideStep ? DType::kI64 : DType::kI32, {}}));
  WEFT_ASSIGN_OR_RETURN(const AdamAttributes attributes, adamAttributes(spec));
  const int64_t n = spec.inputs[0].elements();
  return makeKernel([=](const KernelArguments& args) -> absl::Status {
    WEFT_ASSIGN_OR_RETURN(const double t, stepAt(args, 3, wideStep, "adam_direction"));
    const AdamStep<T> s(attributes, 1.0, t);
    const T* g = in<T>(args, 0);
    const T* m = in<T>(args, 1);
    const T* v = in<T>(args, 2);
    T* direction = out<T>(args, 0);
    T* newM = out<T>(args, 1);
    T* newV = out<T>(args, 2);
    WEFT_INDEPENDENT
    for (int64_t i = 0; i < n; ++i) {
      const T d = g[i];
      const T first = s.b1 * m[i] + s.c1 * d;
      const T second = s.b2 * v[i] + s.c2 * d * d;
      newM[i] = first;
      newV[i] = second;
      direction[i] = s.stepSize * first / (std::sqrt(second) * s.correction + s.epsilon);
    }
    return absl::OkStatus();
  });
}

template <typename T>
KernelOr rmsDirection(const KernelSpec& spec) {
  WEFT_RETURN_IF_ERROR(checkAlike(spec, 2));
  WEFT_ASSIGN_OR_RETURN(const double decay, attributeOr<double>(spec.attributes, "decay", 1.0));
  WEFT_ASSIGN_OR_RETURN(const double gain, attributeOr<double>(spec.attributes, "gain", 1.0));
  WEFT_ASSIGN_OR_RETURN(const double epsilon, attributeOr<double>(spec.attributes, "epsilon", 1e-8));
  const int64_t n = spec.inputs[0].elements();
  const T a = static_cast<T>(decay);
  const T b = static_cast<T>(gain);
  const T eps = static_cast<T>(epsilon);
  return makeKernel([=](const KernelArguments& args) {
    const T* g = in<T>(args, 0);
    const T* v = in<T>(args, 1);
    T* direction = out<T>(args, 0);
    T* newV = out<T>(args, 1);
    WEFT_INDEPENDENT
    for (int64_t i = 0; i < n; ++i) {
      const T d = g[i];
      const T square = a * v[i] + b * d * d;
      newV[i] = square;
      direction[i] = d / (std::sqrt(square) + eps);
    }
    return absl::OkStatus();
  });
}

template <typename T>
KernelOr lionDirection(const KernelSpec& spec) {
  WEFT_RETURN_IF_ERROR(checkAlike(spec, 2));
  WEFT_ASSIGN_OR_RETURN(const double beta1, attributeOr<double>(spec.attributes, "beta1", 0.9));
  WEFT_ASSIGN_OR_RETURN(const double beta2, attributeOr<double>(spec.attributes, "beta2", 0.99));
  const int64_t n = spec.inputs[0].elements();
  const T b1 = static_cast<T>(beta1);
  const T c1 = static_cast<T>(1.0 - beta1);
  const T b2 = static_cast<T>(beta2);
  const T c2 = static_cast<T>(1.0 - beta2);
  return makeKernel([=](const KernelArguments& args) {
    const T* g = in<T>(args, 0);
    const T* m = in<T>(args, 1);
    T* direction = out<T>(args, 0);
    T* newM = out<T>(args, 1);
    WEFT_INDEPENDENT
    for (int64_t i = 0; i < n; ++i) {
      const T d = g[i];
      const T mixed = b1 * m[i] + c1 * d;
      newM[i] = b2 * m[i] + c2 * d;
      direction[i] = mixed > T(0) ? T(1) : mixed < T(0) ? T(-1) : mixed;  // 0 and NaN stay what they are
    }
    return absl::OkStatus();
  });
}

template <typename T>
KernelOr descend(const KernelSpec& spec) {
  WEFT_RETURN_IF_ERROR(checkAlike(spec, 2));
  WEFT_RETURN_IF_ERROR(checkLearningRate(spec, 2));
  WEFT_RETURN_IF_ERROR(checkLearningRate(spec, 3));
  WEFT_ASSIGN_OR_RETURN(const double decay, attributeOr<double>(spec.attributes, "weight_decay", 0.0));
  const int64_t n = spec.inputs[0].elements();
  const DType rateType = spec.inputs[2].type;
  const DType lrType = spec.inputs[3].type;
  return makeKernel([=](const KernelArguments& args) {
    const T rate = static_cast<T>(realAt(args, 2, rateType));
    const T shrink = static_cast<T>(1.0 - realAt(args, 3, lrType) * decay);
    const T* p = in<T>(args, 0);
    const T* direction = in<T>(args, 1);
    T* newP = out<T>(args, 0);
    WEFT_INDEPENDENT
    for (int64_t i = 0; i < n; ++i) {
      newP[i] = p[i] * shrink - rate * direction[i];
    }
    return absl::OkStatus();
  });
}

}  // namespace

void addUpdateKernels(KernelRegistry& registry) {
  registry.add("sgd", withArity({4, 2, 0, 1}, [](const KernelSpec& spec) {
                 return dispatchFloat(spec, spec.inputs[0].type, [&]<typename T>() { return sgd<T>(spec); });
               }));
  registry.add("adam", withArity({6, 3, 0, 1}, [](const KernelSpec& spec) {
                 return dispatchFloat(spec, spec.inputs[0].type, [&]<typename T>() { return adam<T>(spec); });
               }));
  registry.add("adam_direction", withArity({4, 3}, [](const KernelSpec& spec) {
                 return dispatchFloat(spec, spec.inputs[0].type, [&]<typename T>() { return adamDirection<T>(spec); });
               }));
  registry.add("rms_direction", withArity({2, 2}, [](const KernelSpec& spec) {
                 return dispatchFloat(spec, spec.inputs[0].type, [&]<typename T>() { return rmsDirection<T>(spec); });
               }));
  registry.add("lion_direction", withArity({2, 2}, [](const KernelSpec& spec) {
                 return dispatchFloat(spec, spec.inputs[0].type, [&]<typename T>() { return lionDirection<T>(spec); });
               }));
  registry.add("descend", withArity({4, 1}, [](const KernelSpec& spec) {
                 return dispatchFloat(spec, spec.inputs[0].type, [&]<typename T>() { return descend<T>(spec); });
               }));
}

}  // namespace weft
