// Reductions over dimensions: sum, mean, max, min; and the whole-tensor sum_squares and all_finite. Float sums run in
// double in an order that the local shape fixes, so a result depends on the local data and shape alone; integers sum in
// 64 bits.

#include <cmath>
#include <limits>
#include <type_traits>

#include "kernels/cpu/families.h"
#include "kernels/cpu/loops.h"
#include "kernels/cpu/support.h"

namespace weft {
namespace {

using namespace cpu;  // NOLINT

// The dimensions that are reduced, by index.
absl::StatusOr<std::vector<bool>> reducedDims(const KernelSpec& spec) {
  WEFT_ASSIGN_OR_RETURN(const Ints dims, attribute<Ints>(spec.attributes, "dims"));
  std::vector<bool> reduced(spec.inputs[0].shape.size(), false);
  for (const int64_t dim : dims) {
    if (dim < 0 || dim >= static_cast<int64_t>(reduced.size()) || reduced[dim]) {
      return invalid(spec, "reduces dimension ", dim, " of ", tensorText(spec.inputs[0]),
                     ", which is not there or listed twice");
    }
    reduced[dim] = true;
  }
  return reduced;
}

// The loop over the input that follows the output with stride 0 in reduced dimensions.
absl::StatusOr<StridedLoop<2>> reductionLoop(const KernelSpec& spec) {
  WEFT_ASSIGN_OR_RETURN(const std::vector<bool> reduced, reducedDims(spec));
  WEFT_ASSIGN_OR_RETURN(const int64_t keepDims, attributeOr<int64_t>(spec.attributes, "keep_dims", 0));
  const Ints& shape = spec.inputs[0].shape;
  TensorSpec result{spec.inputs[0].type, {}};
  Ints kept;
  for (size_t d = 0; d < shape.size(); ++d) {
    kept.push_back(reduced[d] ? 1 : shape[d]);
    if (!reduced[d] || keepDims != 0) {
      result.shape.push_back(kept.back());
    }
  }
  WEFT_RETURN_IF_ERROR(checkOutput(spec, 0, result));
  Ints strides = stridesOf(kept);
  for (size_t d = 0; d < shape.size(); ++d) {
    strides[d] = reduced[d] ? 0 : strides[d];
  }
  return StridedLoop<2>(shape, {stridesOf(shape), strides});
}

// Adds one row of the loop to the totals it meets.
template <typename A, typename T>
void addRow(const T* x, A* total, int64_t count, const std::array<int64_t, 2>& step) {
  if (step[1] == 0 && step[0] == 1) {
    *total += laneSum<A>(count, [&](int64_t i) { return x[i]; });
  } else if (step[0] == 1 && step[1] == 1) {
    WEFT_INDEPENDENT
    for (int64_t i = 0; i < count; ++i) {
      total[i] += static_cast<A>(x[i]);
    }
  } else {
    for (int64_t i = 0; i < count; ++i) {
      total[i * step[1]] += static_cast<A>(x[i * step[0]]);
    }
  }
}

// Workspace: the totals, 8 bytes each.
template <typename T>
KernelOr sum(const KernelSpec& spec, double scale) {
  // Unsigned, so that what wraps around is defined.
  using A = std::conditional_t<std::is_integral_v<T>, uint64_t, double>;
  WEFT_ASSIGN_OR_RETURN(const StridedLoop<2> loop, reductionLoop(spec));
  const int64_t n = spec.outputs[0].elements();
  return makeKernel(
      [loop, n, scale](const KernelArguments& args) {
        A* total = static_cast<A*>(args.workspace);
        std::fill_n(total, n, A(0));
        loop.run([&](const auto& at, int64_t count, const auto& step) {
          addRow(in<T>(args, 0) + at[0], total + at[1], count, step);
        });
        T* y = out<T>(args, 0);
        for (int64_t i = 0; i < n; ++i) {
          y[i] = static_cast<T>(scale == 1.0 ? total[i] : static_cast<A>(static_cast<double>(total[i]) * scale));
        }
        return absl::OkStatus();
      },
      n * static_cast<int64_t>(sizeof(A)));
}

KernelOr mean(const KernelSpec& spec) {
  WEFT_ASSIGN_OR_RETURN(const int64_t count, attribute<int64_t>(spec.attributes, "count"));
  if (count < 1) {
    return invalid(spec, "count is ", count, ", it must be the global number of elements reduced, at least 1");
  }
  const double scale = 1.0 / static_cast<double>(count);
  return dispatchFloat(spec, spec.inputs[0].type, [&]<typename T>() { return sum<T>(spec, scale); });
}

// The ends of a type's range; infinite for floats. The only unsigned type is that of bool.
template <typename T>
T leastOf() {
  using Limits = std::numeric_limits<T>;
  return Limits::has_infinity ? -Limits::infinity() : Limits::lowest();
}
template <typename T>
T greatestOf() {
  using Limits = std::numeric_limits<T>;
  return Limits::has_infinity ? Limits::infinity() : std::is_unsigned_v<T> ? T(1) : Limits::max();
}

// Folds elements to the larger or smaller one. Of no elements: `start`.
template <typename T, typename Fold>
KernelOr extremum(const KernelSpec& spec, T start, const Fold& fold) {
  WEFT_ASSIGN_OR_RETURN(const StridedLoop<2> loop, reductionLoop(spec));
  const int64_t n = spec.outputs[0].elements();
  return makeKernel([loop, n, start, fold](const KernelArguments& args) {
    std::fill_n(out<T>(args, 0), n, start);
    loop.run([&](const auto& at, int64_t count, const auto& step) {
      const T* x = in<T>(args, 0) + at[0];
      T* most = out<T>(args, 0) + at[1];
      if (step[0] == 1 && step[1] == 0) {
        *most = fold(*most, laneFold(count, x[0], [&](int64_t i) { return x[i]; }, fold));
        return;
      }
      for (int64_t i = 0; i < count; ++i) {
        most[i * step[1]] = fold(most[i * step[1]], x[i * step[0]]);
      }
    });
    return absl::OkStatus();
  });
}

template <typename T>
KernelOr sumSquares(const KernelSpec& spec) {
  WEFT_RETURN_IF_ERROR(checkOutput(spec, 0, {spec.inputs[0].type, {}}));
  const int64_t n = spec.inputs[0].elements();
  return makeKernel([n](const KernelArguments& args) {
    const T* x = in<T>(args, 0);
    *out<T>(args, 0) = static_cast<T>(laneSum(n, [&](int64_t i) { return static_cast<double>(x[i]) * x[i]; }));
    return absl::OkStatus();
  });
}

// x - x is 0 for a finite x and NaN otherwise.
template <typename T>
KernelOr allFinite(const KernelSpec& spec) {
  WEFT_RETURN_IF_ERROR(checkOutput(spec, 0, {DType::kBool, {}}));
  const int64_t n = spec.inputs[0].elements();
  return makeKernel([n](const KernelArguments& args) {
    const T* x = in<T>(args, 0);
    int32_t bad = 0;
    for (int64_t i = 0; i < n; ++i) {
      bad |= static_cast<int32_t>(!(x[i] - x[i] == T(0)));
    }
    *out<uint8_t>(args, 0) = bad == 0 ? 1 : 0;
    return absl::OkStatus();
  });
}

}  // namespace

void addReductionKernels(KernelRegistry& registry) {
  registry.add("sum", withArity({1, 1}, [](const KernelSpec& spec) {
                 return dispatchNumeric(spec, spec.inputs[0].type, [&]<typename T>() { return sum<T>(spec, 1.0); });
               }));
  registry.add("mean", withArity({1, 1}, mean));
  registry.add("max", withArity({1, 1}, [](const KernelSpec& spec) {
                 return dispatchAll(spec, spec.inputs[0].type, [&]<typename T>() {
                   return extremum<T>(spec, leastOf<T>(), [](T a, T b) { return larger(a, b); });
                 });
               }));
  registry.add("min", withArity({1, 1}, [](const KernelSpec& spec) {
                 return dispatchAll(spec, spec.inputs[0].type, [&]<typename T>() {
                   return extremum<T>(spec, greatestOf<T>(), [](T a, T b) { return smaller(a, b); });
                 });
               }));
  registry.add("sum_squares", withArity({1, 1}, [](const KernelSpec& spec) {
                 return dispatchFloat(spec, spec.inputs[0].type, [&]<typename T>() { return sumSquares<T>(spec); });
               }));
  registry.add("all_finite", withArity({1, 1}, [](const KernelSpec& spec) {
                 return dispatchFloat(spec, spec.inputs[0].type, [&]<typename T>() { return allFinite<T>(spec); });
               }));
}

}  // namespace weft
