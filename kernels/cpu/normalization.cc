// Softmax and layer normalisation over the last dimension, with their gradients. Statistics are taken in double.

#include <cmath>

#include "kernels/cpu/families.h"
#include "kernels/cpu/support.h"

namespace weft {
namespace {

using namespace cpu;  // NOLINT

// A tensor as rows of its last dimension.
struct Rows {
  int64_t count = 1;
  int64_t width = 1;
};

Rows rowsOf(const TensorSpec& spec) {
  Rows rows;
  rows.width = spec.shape.empty() ? 1 : spec.shape.back();
  rows.count = rows.width == 0 ? 0 : spec.elements() / rows.width;
  return rows;
}

template <typename T>
KernelOr softmax(const KernelSpec& spec) {
  WEFT_RETURN_IF_ERROR(checkCounts(spec, 1, 1));
  WEFT_RETURN_IF_ERROR(checkSameShape(spec, spec.inputs[0], spec.outputs[0]));
  return makeKernel([rows = rowsOf(spec.inputs[0])](const KernelArguments& args) {
    for (int64_t r = 0; r < rows.count; ++r) {
      const T* x = in<T>(args, 0) + r * rows.width;
      T* y = out<T>(args, 0) + r * rows.width;
      T most = x[0];
      for (int64_t i = 1; i < rows.width; ++i) {
        most = std::max(most, x[i]);
      }
      double total = 0;
      for (int64_t i = 0; i < rows.width; ++i) {
        y[i] = std::exp(x[i] - most);
        total += y[i];
      }
      const T scale = static_cast<T>(1.0 / total);
      for (int64_t i = 0; i < rows.width; ++i) {
        y[i] *= scale;
      }
    }
    return absl::OkStatus();
  });
}

// dx = y * (dy - sum(y * dy)).
template <typename T>
KernelOr softmaxGrad(const KernelSpec& spec) {
  WEFT_RETURN_IF_ERROR(checkCounts(spec, 2, 1));
  WEFT_RETURN_IF_ERROR(checkSameShape(spec, spec.inputs[0], spec.inputs[1]));
  return makeKernel([rows = rowsOf(spec.inputs[0])](const KernelArguments& args) {
    for (int64_t r = 0; r < rows.count; ++r) {
      const T* y = in<T>(args, 0) + r * rows.width;
      const T* dy = in<T>(args, 1) + r * rows.width;
      T* dx = out<T>(args, 0) + r * rows.width;
      double dot = 0;
      for (int64_t i = 0; i < rows.width; ++i) {
        dot += static_cast<double>(y[i]) * dy[i];
      }
      for (int64_t i = 0; i < rows.width; ++i) {
        dx[i] = y[i] * (dy[i] - static_cast<T>(dot));
      }
    }
    return absl::OkStatus();
  });
}

absl::Status checkAffine(const KernelSpec& spec, const TensorSpec& x, const TensorSpec& vector) {
  if (vector.elements() != rowsOf(x).width) {
    return absl::InvalidArgumentError(
        absl::StrCat(spec.name, " of ", shapeText(x.shape), " with a scale or shift of ", shapeText(vector.shape)));
  }
  return absl::OkStatus();
}

template <typename T>
KernelOr layerNorm(const KernelSpec& spec) {
  WEFT_RETURN_IF_ERROR(checkCounts(spec, 3, 3));
  WEFT_RETURN_IF_ERROR(checkAffine(spec, spec.inputs[0], spec.inputs[1]));
  WEFT_RETURN_IF_ERROR(checkAffine(spec, spec.inputs[0], spec.inputs[2]));
  WEFT_ASSIGN_OR_RETURN(const double epsilon, attribute<double>(spec.attributes, "epsilon"));
  return makeKernel([rows = rowsOf(spec.inputs[0]), epsilon](const KernelArguments& args) {
    const T* gamma = in<T>(args, 1);
    const T* beta = in<T>(args, 2);
    const double width = static_cast<double>(rows.width);
    for (int64_t r = 0; r < rows.count; ++r) {
      const T* x = in<T>(args, 0) + r * rows.width;
      T* y = out<T>(args, 0) + r * rows.width;
      double total = 0;
      for (int64_t i = 0; i < rows.width; ++i) {
        total += x[i];
      }
      const double mean = total / width;
      double squares = 0;
      for (int64_t i = 0; i < rows.width; ++i) {
        squares += (x[i] - mean) * (x[i] - mean);
      }
      const double rstd = 1.0 / std::sqrt(squares / width + epsilon);
      for (int64_t i = 0; i < rows.width; ++i) {
        y[i] = static_cast<T>((x[i] - mean) * rstd) * gamma[i] + beta[i];
      }
      out<T>(args, 1)[r] = static_cast<T>(mean);
      out<T>(args, 2)[r] = static_cast<T>(rstd);
    }
    return absl::OkStatus();
  });
}

// With h = (x - mean) * rstd and g = gamma * dy: dx = rstd * (g - mean(g) - h * mean(g * h)); dgamma = sum(dy * h),
// dbeta = sum(dy) over rows. Workspace: both sums in double.
template <typename T>
KernelOr layerNormGrad(const KernelSpec& spec) {
  WEFT_RETURN_IF_ERROR(checkCounts(spec, 5, 3));
  WEFT_RETURN_IF_ERROR(checkAffine(spec, spec.inputs[0], spec.inputs[1]));
  const Rows rows = rowsOf(spec.inputs[0]);
  return makeKernel(
      [rows](const KernelArguments& args) {
        const T* gamma = in<T>(args, 1);
        auto* dgamma = static_cast<double*>(args.workspace);
        double* dbeta = dgamma + rows.width;
        std::fill_n(dgamma, 2 * rows.width, 0.0);
        const double width = static_cast<double>(rows.width);
        for (int64_t r = 0; r < rows.count; ++r) {
          const T* x = in<T>(args, 0) + r * rows.width;
          const T* dy = in<T>(args, 4) + r * rows.width;
          T* dx = out<T>(args, 0) + r * rows.width;
          const double mean = in<T>(args, 2)[r];
          const double rstd = in<T>(args, 3)[r];
          double sum = 0;
          double dot = 0;
          for (int64_t i = 0; i < rows.width; ++i) {
            const double h = (x[i] - mean) * rstd;
            const double g = static_cast<double>(gamma[i]) * dy[i];
            sum += g;
            dot += g * h;
            dgamma[i] += dy[i] * h;
            dbeta[i] += dy[i];
          }
          for (int64_t i = 0; i < rows.width; ++i) {
            const double h = (x[i] - mean) * rstd;
            const double g = static_cast<double>(gamma[i]) * dy[i];
            dx[i] = static_cast<T>(rstd * (g - sum / width - h * dot / width));
          }
        }
        for (int64_t i = 0; i < rows.width; ++i) {
          out<T>(args, 1)[i] = static_cast<T>(dgamma[i]);
          out<T>(args, 2)[i] = static_cast<T>(dbeta[i]);
        }
        return absl::OkStatus();
      },
      2 * rows.width * static_cast<int64_t>(sizeof(double)));
}

}  // namespace

void addNormalizationKernels(KernelRegistry& registry) {
  registry.add("softmax", [](const KernelSpec& spec) {
    return dispatchFloat(spec, spec.inputs.at(0).type, [&]<typename T>() { return softmax<T>(spec); });
  });
  registry.add("softmax_grad", [](const KernelSpec& spec) {
    return dispatchFloat(spec, spec.inputs.at(0).type, [&]<typename T>() { return softmaxGrad<T>(spec); });
  });
  registry.add("layer_norm", [](const KernelSpec& spec) {
    return dispatchFloat(spec, spec.inputs.at(0).type, [&]<typename T>() { return layerNorm<T>(spec); });
  });
  registry.add("layer_norm_grad", [](const KernelSpec& spec) {
    return dispatchFloat(spec, spec.inputs.at(0).type, [&]<typename T>() { return layerNormGrad<T>(spec); });
  });
}

}  // namespace weft
