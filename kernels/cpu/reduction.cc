// Reductions over dimensions: sum, mean, max; and the whole-tensor sum_squares and all_finite. Sums run in index order
// in double, so f32 results depend on the local shape alone.

#include <cmath>
#include <limits>

#include "kernels/cpu/families.h"
#include "kernels/cpu/support.h"

namespace weft {
namespace {

using namespace cpu;  // NOLINT

using Ints = std::vector<int64_t>;

// The loop over the input that follows the output with stride 0 in reduced dimensions.
absl::StatusOr<StridedLoop<2>> reductionLoop(const KernelSpec& spec) {
  WEFT_RETURN_IF_ERROR(checkCounts(spec, 1, 1));
  WEFT_ASSIGN_OR_RETURN(const Ints dims, attribute<Ints>(spec.attributes, "dims"));
  const Ints& shape = spec.inputs[0].shape;
  std::vector<bool> reduced(shape.size(), false);
  for (const int64_t dim : dims) {
    if (dim < 0 || dim >= static_cast<int64_t>(shape.size())) {
      return absl::InvalidArgumentError(
          absl::StrCat(spec.name, " over dimension ", dim, " of a tensor with ", shape.size(), " dimensions"));
    }
    reduced[dim] = true;
  }
  int64_t kept = 1;
  Ints strides(shape.size(), 0);
  for (size_t d = shape.size(); d-- > 0;) {
    if (!reduced[d]) {
      strides[d] = kept;
      kept *= shape[d];
    }
  }
  if (kept != spec.outputs[0].elements()) {
    return absl::InvalidArgumentError(absl::StrCat(spec.name, " of ", shapeText(shape), " over ", shapeText(dims),
                                                   " does not give ", shapeText(spec.outputs[0].shape)));
  }
  return StridedLoop<2>(shape, {stridesOf(shape), strides});
}

template <typename T>
KernelOr sum(const KernelSpec& spec, double scale) {
  WEFT_ASSIGN_OR_RETURN(const StridedLoop<2> loop, reductionLoop(spec));
  const int64_t n = spec.outputs[0].elements();
  return makeKernel(
      [loop, n, scale](const KernelArguments& args) {
        auto* total = static_cast<double*>(args.workspace);
        std::fill_n(total, n, 0.0);
        const T* x = in<T>(args, 0);
        loop.run([&](const auto& at, int64_t count, const auto& step) {
          const T* row = x + at[0];
          if (step[1] == 0) {
            double partial = total[at[1]];
            for (int64_t i = 0; i < count; ++i) {
              partial += row[i * step[0]];
            }
            total[at[1]] = partial;
            return;
          }
          double* to = total + at[1];
          for (int64_t i = 0; i < count; ++i) {
            to[i * step[1]] += row[i * step[0]];
          }
        });
        T* y = out<T>(args, 0);
        for (int64_t i = 0; i < n; ++i) {
          y[i] = static_cast<T>(total[i] * scale);
        }
        return absl::OkStatus();
      },
      n * static_cast<int64_t>(sizeof(double)));
}

template <typename T>
KernelOr maximum(const KernelSpec& spec) {
  WEFT_ASSIGN_OR_RETURN(const StridedLoop<2> loop, reductionLoop(spec));
  const int64_t n = spec.outputs[0].elements();
  const T lowest =
      std::numeric_limits<T>::has_infinity ? -std::numeric_limits<T>::infinity() : std::numeric_limits<T>::lowest();
  return makeKernel([loop, n, lowest](const KernelArguments& args) {
    T* y = out<T>(args, 0);
    std::fill_n(y, n, lowest);
    const T* x = in<T>(args, 0);
    loop.run([&](const auto& at, int64_t count, const auto& step) {
      for (int64_t i = 0; i < count; ++i) {
        T& most = y[at[1] + i * step[1]];
        const T value = x[at[0] + i * step[0]];
        most = value > most ? value : most;
      }
    });
    return absl::OkStatus();
  });
}

template <typename T>
KernelOr sumSquares(const KernelSpec& spec) {
  WEFT_RETURN_IF_ERROR(checkCounts(spec, 1, 1));
  const int64_t n = spec.inputs[0].elements();
  return makeKernel([n](const KernelArguments& args) {
    const T* x = in<T>(args, 0);
    double total = 0;
    for (int64_t i = 0; i < n; ++i) {
      total += static_cast<double>(x[i]) * x[i];
    }
    *out<T>(args, 0) = static_cast<T>(total);
    return absl::OkStatus();
  });
}

template <typename T>
KernelOr allFinite(const KernelSpec& spec) {
  WEFT_RETURN_IF_ERROR(checkCounts(spec, 1, 1));
  const int64_t n = spec.inputs[0].elements();
  return makeKernel([n](const KernelArguments& args) {
    const T* x = in<T>(args, 0);
    bool finite = true;
    for (int64_t i = 0; i < n; ++i) {
      finite &= std::isfinite(x[i]);
    }
    *out<uint8_t>(args, 0) = finite ? 1 : 0;
    return absl::OkStatus();
  });
}

}  // namespace

void addReductionKernels(KernelRegistry& registry) {
  registry.add("sum", [](const KernelSpec& spec) {
    return dispatchAll(spec, spec.inputs.at(0).type, [&]<typename T>() { return sum<T>(spec, 1.0); });
  });
  registry.add("mean", [](const KernelSpec& spec) -> KernelOr {
    WEFT_ASSIGN_OR_RETURN(const int64_t count, attribute<int64_t>(spec.attributes, "count"));
    if (count < 1) {
      return absl::InvalidArgumentError(absl::StrCat("mean over ", count, " elements"));
    }
    return dispatchFloat(spec, spec.inputs.at(0).type,
                         [&]<typename T>() { return sum<T>(spec, 1.0 / static_cast<double>(count)); });
  });
  registry.add("max", [](const KernelSpec& spec) {
    return dispatchAll(spec, spec.inputs.at(0).type, [&]<typename T>() { return maximum<T>(spec); });
  });
  registry.add("sum_squares", [](const KernelSpec& spec) {
    return dispatchFloat(spec, spec.inputs.at(0).type, [&]<typename T>() { return sumSquares<T>(spec); });
  });
  registry.add("all_finite", [](const KernelSpec& spec) {
    return dispatchFloat(spec, spec.inputs.at(0).type, [&]<typename T>() { return allFinite<T>(spec); });
  });
}

}  // namespace weft
