// Softmax, layer and rms normalization over the last dimension, with their gradients. Statistics are taken in double.

#include <cmath>

#include "kernels/cpu/families.h"
#include "kernels/cpu/loops.h"
#include "kernels/cpu/rows.h"
#include "kernels/cpu/support.h"

namespace weft {
namespace {

using namespace cpu;  // NOLINT

absl::Status checkLastDim(const KernelSpec& spec) {
  WEFT_RETURN_IF_ERROR(checkDims(spec, spec.inputs[0], 1));
  const int64_t last = static_cast<int64_t>(spec.inputs[0].shape.size()) - 1;
  WEFT_ASSIGN_OR_RETURN(const int64_t dim, attributeOr<int64_t>(spec.attributes, "dim", last));
  if (dim != last) {
    return invalid(spec, "runs over the last dimension, ", last, ", it was given ", dim, "; transpose first");
  }
  return absl::OkStatus();
}

template <typename T>
KernelOr softmax(const KernelSpec& spec) {
  WEFT_RETURN_IF_ERROR(checkLastDim(spec));
  WEFT_RETURN_IF_ERROR(checkOutput(spec, 0, spec.inputs[0]));
  return makeKernel([rows = rowsOf(spec.inputs[0].shape)](const KernelArguments& args) {
    for (int64_t r = 0; r < rows.count && rows.width > 0; ++r) {
      const T* x = in<T>(args, 0) + r * rows.width;
      T* y = out<T>(args, 0) + r * rows.width;
      const double total = exponentials(x, largest(x, rows.width), rows.width, y);
      scaleRow(y, static_cast<T>(1.0 / total), rows.width);
    }
    return absl::OkStatus();
  });
}

// dx = y * (dy - sum(y * dy)).
template <typename T>
KernelOr softmaxGrad(const KernelSpec& spec) {
  WEFT_RETURN_IF_ERROR(checkLastDim(spec));
  WEFT_RETURN_IF_ERROR(checkInput(spec, 1, spec.inputs[0]));
  WEFT_RETURN_IF_ERROR(checkOutput(spec, 0, spec.inputs[0]));
  return makeKernel([rows = rowsOf(spec.inputs[0].shape)](const KernelArguments& args) {
    for (int64_t r = 0; r < rows.count; ++r) {
      const T* y = in<T>(args, 0) + r * rows.width;
      const T* dy = in<T>(args, 1) + r * rows.width;
      T* dx = out<T>(args, 0) + r * rows.width;
      const T mean = static_cast<T>(dotRow(y, dy, rows.width));
      WEFT_INDEPENDENT
      for (int64_t i = 0; i < rows.width; ++i) {
        dx[i] = y[i] * (dy[i] - mean);
      }
    }
    return absl::OkStatus();
  });
}

// x's width as a vector, and x's leading dimensions.
TensorSpec columnsOf(const TensorSpec& x) {
  return {x.type, {x.shape.back()}};
}
TensorSpec leadingOf(const TensorSpec& x) {
  return {x.type, withoutLast(x.shape)};
}

template <typename T>
KernelOr layerNorm(const KernelSpec& spec) {
  const TensorSpec& x = spec.inputs[0];
  WEFT_RETURN_IF_ERROR(checkDims(spec, x, 1));
  WEFT_RETURN_IF_ERROR(checkInput(spec, 1, columnsOf(x)));
  WEFT_RETURN_IF_ERROR(checkInput(spec, 2, columnsOf(x)));
  WEFT_RETURN_IF_ERROR(checkOutput(spec, 0, x));
  WEFT_RETURN_IF_ERROR(checkOutput(spec, 1, leadingOf(x)));
  WEFT_RETURN_IF_ERROR(checkOutput(spec, 2, leadingOf(x)));
  WEFT_ASSIGN_OR_RETURN(const double epsilon, attributeOr<double>(spec.attributes, "epsilon", 1e-5));
  return makeKernel([rows = rowsOf(x.shape), epsilon](const KernelArguments& args) {
    const T* gamma = in<T>(args, 1);
    const T* beta = in<T>(args, 2);
    const double width = static_cast<double>(rows.width);
    for (int64_t r = 0; r < rows.count; ++r) {
      const T* x = in<T>(args, 0) + r * rows.width;
      T* y = out<T>(args, 0) + r * rows.width;
      const double mean = laneSum(rows.width, [&](int64_t i) { return x[i]; }) / width;
      const double squares = laneSum(rows.width, [&](int64_t i) { return (x[i] - mean) * (x[i] - mean); });
      const double rstd = 1.0 / std::sqrt(squares / width + epsilon);
      WEFT_INDEPENDENT
      for (int64_t i = 0; i < rows.width; ++i) {
        y[i] = static_cast<T>((x[i] - mean) * rstd) * gamma[i] + beta[i];
      }
      out<T>(args, 1)[r] = static_cast<T>(mean);
      out<T>(args, 2)[r] = static_cast<T>(rstd);
    }
    return absl::OkStatus();
  });
}

// One row of the gradient; sums are added to dgamma and dbeta.
template <typename T>
struct NormRow {
  const T* x;
  const T* gamma;
  const T* dy;
  double mean;
  double rstd;
  int64_t width;

  double normal(int64_t i) const { return (x[i] - mean) * rstd; }
  double slope(int64_t i) const { return static_cast<double>(gamma[i]) * dy[i]; }

  void run(T* dx, double* dgamma, double* dbeta) const {
    WEFT_INDEPENDENT
    for (int64_t i = 0; i < width; ++i) {
      dgamma[i] += dy[i] * normal(i);
      dbeta[i] += dy[i];
    }
    const double meanSlope = laneSum(width, [&](int64_t i) { return slope(i); }) / static_cast<double>(width);
    const double meanDot = laneSum(width, [&](int64_t i) { return slope(i) * normal(i); }) / static_cast<double>(width);
    WEFT_INDEPENDENT
    for (int64_t i = 0; i < width; ++i) {
      dx[i] = static_cast<T>(rstd * (slope(i) - meanSlope - normal(i) * meanDot));
    }
  }
};

// With h = (x - mean) * rstd and g = gamma * dy: dx = rstd * (g - mean(g) - h * mean(g * h)); dgamma = sum(dy * h),
// dbeta = sum(dy) over rows. Workspace: both sums in double.
template <typename T>
KernelOr layerNormGrad(const KernelSpec& spec) {
  const TensorSpec& x = spec.inputs[0];
  WEFT_RETURN_IF_ERROR(checkDims(spec, x, 1));
  WEFT_RETURN_IF_ERROR(checkInput(spec, 1, columnsOf(x)));
  WEFT_RETURN_IF_ERROR(checkInput(spec, 2, leadingOf(x)));
  WEFT_RETURN_IF_ERROR(checkInput(spec, 3, leadingOf(x)));
  WEFT_RETURN_IF_ERROR(checkInput(spec, 4, x));
  WEFT_RETURN_IF_ERROR(checkOutput(spec, 0, x));
  WEFT_RETURN_IF_ERROR(checkOutput(spec, 1, columnsOf(x)));
  WEFT_RETURN_IF_ERROR(checkOutput(spec, 2, columnsOf(x)));
  const Rows rows = rowsOf(x.shape);
  return makeKernel(
      [rows](const KernelArguments& args) {
        double* dgamma = static_cast<double*>(args.workspace);
        double* dbeta = dgamma + rows.width;
        std::fill_n(dgamma, 2 * rows.width, 0.0);
        for (int64_t r = 0; r < rows.count; ++r) {
          const int64_t at = r * rows.width;
          const NormRow<T> row{in<T>(args, 0) + at, in<T>(args, 1),    in<T>(args, 4) + at,
                               in<T>(args, 2)[r],   in<T>(args, 3)[r], rows.width};
          row.run(out<T>(args, 0) + at, dgamma, dbeta);
        }
        for (int64_t i = 0; i < rows.width; ++i) {
          out<T>(args, 1)[i] = static_cast<T>(dgamma[i]);
          out<T>(args, 2)[i] = static_cast<T>(dbeta[i]);
        }
        return absl::OkStatus();
      },
      2 * rows.width * static_cast<int64_t>(sizeof(double)));
}

template <typename T>
KernelOr rmsNorm(const KernelSpec& spec) {
  const TensorSpec& x = spec.inputs[0];
  WEFT_RETURN_IF_ERROR(checkDims(spec, x, 1));
  WEFT_RETURN_IF_ERROR(checkInput(spec, 1, columnsOf(x)));
  WEFT_RETURN_IF_ERROR(checkOutput(spec, 0, x));
  WEFT_RETURN_IF_ERROR(checkOutput(spec, 1, leadingOf(x)));
  WEFT_ASSIGN_OR_RETURN(const double epsilon, attributeOr<double>(spec.attributes, "epsilon", 1e-6));
  return makeKernel([rows = rowsOf(x.shape), epsilon](const KernelArguments& args) {
    const T* gamma = in<T>(args, 1);
    for (int64_t r = 0; r < rows.count; ++r) {
      const T* x = in<T>(args, 0) + r * rows.width;
      T* y = out<T>(args, 0) + r * rows.width;
      const double rstd = 1.0 / std::sqrt(dotRow(x, x, rows.width) / static_cast<double>(rows.width) + epsilon);
      WEFT_INDEPENDENT
      for (int64_t i = 0; i < rows.width; ++i) {
        y[i] = static_cast<T>(x[i] * rstd) * gamma[i];
      }
      out<T>(args, 1)[r] = static_cast<T>(rstd);
    }
    return absl::OkStatus();
  });
}

// With h = x * rstd and g = gamma * dy: dx = rstd * (g - h * mean(g * h)); dgamma = sum(dy * h) over rows. Workspace:
// the sum in double.
template <typename T>
KernelOr rmsNormGrad(const KernelSpec& spec) {
  const TensorSpec& x = spec.inputs[0];
  WEFT_RETURN_IF_ERROR(checkDims(spec, x, 1));
  WEFT_RETURN_IF_ERROR(checkInput(spec, 1, columnsOf(x)));
  WEFT_RETURN_IF_ERROR(checkInput(spec, 2, leadingOf(x)));
  WEFT_RETURN_IF_ERROR(checkInput(spec, 3, x));
  WEFT_RETURN_IF_ERROR(checkOutput(spec, 0, x));
  WEFT_RETURN_IF_ERROR(checkOutput(spec, 1, columnsOf(x)));
  const Rows rows = rowsOf(x.shape);
  return makeKernel(
      [rows](const KernelArguments& args) {
        const T* gamma = in<T>(args, 1);
        double* dgamma = static_cast<double*>(args.workspace);
        std::fill_n(dgamma, rows.width, 0.0);
        for (int64_t r = 0; r < rows.count; ++r) {
          const T* x = in<T>(args, 0) + r * rows.width;
          const T* dy = in<T>(args, 3) + r * rows.width;
          T* dx = out<T>(args, 0) + r * rows.width;
          const double rstd = in<T>(args, 2)[r];
          WEFT_INDEPENDENT
          for (int64_t i = 0; i < rows.width; ++i) {
            dgamma[i] += dy[i] * (x[i] * rstd);
          }
          const auto slope = [&](int64_t i) { return static_cast<double>(gamma[i]) * dy[i]; };
          const double dot = laneSum(rows.width, [&](int64_t i) { return slope(i) * (x[i] * rstd); });
          const double mean = dot / static_cast<double>(rows.width);
          WEFT_INDEPENDENT
          for (int64_t i = 0; i < rows.width; ++i) {
            dx[i] = static_cast<T>(rstd * (slope(i) - x[i] * rstd * mean));
          }
        }
        for (int64_t i = 0; i < rows.width; ++i) {
          out<T>(args, 1)[i] = static_cast<T>(dgamma[i]);
        }
        return absl::OkStatus();
      },
      rows.width * static_cast<int64_t>(sizeof(double)));
}

}  // namespace

void addNormalizationKernels(KernelRegistry& registry) {
  registry.add("softmax", withArity({1, 1}, [](const KernelSpec& spec) {
                 return dispatchFloat(spec, spec.inputs[0].type, [&]<typename T>() { return softmax<T>(spec); });
               }));
  registry.add("softmax_grad", withArity({2, 1}, [](const KernelSpec& spec) {
                 return dispatchFloat(spec, spec.inputs[0].type, [&]<typename T>() { return softmaxGrad<T>(spec); });
               }));
  registry.add("layer_norm", withArity({3, 3}, [](const KernelSpec& spec) {
                 return dispatchFloat(spec, spec.inputs[0].type, [&]<typename T>() { return layerNorm<T>(spec); });
               }));
  registry.add("layer_norm_grad", withArity({5, 3}, [](const KernelSpec& spec) {
                 return dispatchFloat(spec, spec.inputs[0].type, [&]<typename T>() { return layerNormGrad<T>(spec); });
               }));
  registry.add("rms_norm", withArity({2, 2}, [](const KernelSpec& spec) {
                 return dispatchFloat(spec, spec.inputs[0].type, [&]<typename T>() { return rmsNorm<T>(spec); });
               }));
  registry.add("rms_norm_grad", withArity({4, 2}, [](const KernelSpec& spec) {
                 return dispatchFloat(spec, spec.inputs[0].type, [&]<typename T>() { return rmsNormGrad<T>(spec); });
               }));
}

}  // namespace weft
