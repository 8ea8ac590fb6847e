// Kernels that work along one dimension: cumsum, prod, argmax, argmin, sort, log_softmax, and gradients of these. A
// tensor is seen as [outer, count, inner] around the dimension; where inner is more than 1, loops over it become
// vectors.

#include <algorithm>
#include <cmath>
#include <numeric>

#include "kernels/cpu/families.h"
#include "kernels/cpu/loops.h"
#include "kernels/cpu/rows.h"
#include "kernels/cpu/support.h"

namespace weft {
namespace {

using namespace cpu;  // NOLINT

// Totals are taken in double, and in unsigned integers, in which what wraps around is defined.
template <typename T>
using Total = std::conditional_t<std::is_integral_v<T>, uint64_t, double>;

// Workspace: a total for each element of `inner`.
template <typename T>
KernelOr cumsum(const KernelSpec& spec) {
  WEFT_ASSIGN_OR_RETURN(const Along along, alongOf(spec, spec.inputs[0]));
  WEFT_ASSIGN_OR_RETURN(const int64_t reverse, attributeOr<int64_t>(spec.attributes, "reverse", 0));
  WEFT_RETURN_IF_ERROR(checkOutput(spec, 0, spec.inputs[0]));
  const auto run = [along, reverse](const KernelArguments& args) {
    const int64_t inner = along.inner;
    auto* total = static_cast<Total<T>*>(args.workspace);
    for (int64_t o = 0; o < along.outer; ++o) {
      std::fill_n(total, inner, Total<T>(0));
      for (int64_t c = 0; c < along.count; ++c) {
        const int64_t at = (o * along.count + (reverse != 0 ? along.count - 1 - c : c)) * inner;
        const T* x = in<T>(args, 0) + at;
        T* y = out<T>(args, 0) + at;
        WEFT_INDEPENDENT
        for (int64_t i = 0; i < inner; ++i) {
          total[i] += static_cast<Total<T>>(x[i]);
          y[i] = static_cast<T>(total[i]);
        }
      }
    }
    return absl::OkStatus();
  };
  return makeKernel(run, along.inner * static_cast<int64_t>(sizeof(Total<T>)));
}

// Workspace: a total for each element of `inner`.
template <typename T>
KernelOr prod(const KernelSpec& spec) {
  WEFT_ASSIGN_OR_RETURN(const Along along, alongOf(spec, spec.inputs[0]));
  WEFT_RETURN_IF_ERROR(checkOutput(spec, 0, {spec.inputs[0].type, along.others}));
  const auto run = [along](const KernelArguments& args) {
    const int64_t inner = along.inner;
    auto* total = static_cast<Total<T>*>(args.workspace);
    for (int64_t o = 0; o < along.outer; ++o) {
      std::fill_n(total, inner, Total<T>(1));
      for (int64_t c = 0; c < along.count; ++c) {
        const T* x = in<T>(args, 0) + (o * along.count + c) * inner;
        WEFT_INDEPENDENT
        for (int64_t i = 0; i < inner; ++i) {
          total[i] *= static_cast<Total<T>>(x[i]);
        }
      }
      std::transform(total, total + inner, out<T>(args, 0) + o * inner,
                     [](Total<T> value) { return static_cast<T>(value); });
    }
    return absl::OkStatus();
  };
  return makeKernel(run, along.inner * static_cast<int64_t>(sizeof(Total<T>)));
}

// dx[c] = the product before c, times dy and the product behind c. Workspace: a total for each element of `inner`.
template <typename T>
KernelOr prodGrad(const KernelSpec& spec) {
  WEFT_ASSIGN_OR_RETURN(const Along along, alongOf(spec, spec.inputs[0]));
  WEFT_RETURN_IF_ERROR(checkInput(spec, 1, {spec.inputs[0].type, along.others}));
  WEFT_RETURN_IF_ERROR(checkOutput(spec, 0, spec.inputs[0]));
  const auto run = [along](const KernelArguments& args) {
    const int64_t inner = along.inner;
    auto* total = static_cast<double*>(args.workspace);
    for (int64_t o = 0; o < along.outer; ++o) {
      const T* x = in<T>(args, 0) + o * along.count * inner;
      T* dx = out<T>(args, 0) + o * along.count * inner;
      std::fill_n(total, inner, 1.0);
      for (int64_t at = 0; at < along.count * inner; at += inner) {
        WEFT_INDEPENDENT
        for (int64_t i = 0; i < inner; ++i) {
          dx[at + i] = static_cast<T>(total[i]);
          total[i] *= x[at + i];
        }
      }
      std::copy_n(in<T>(args, 1) + o * inner, inner, total);
      for (int64_t at = (along.count - 1) * inner; at >= 0; at -= inner) {
        WEFT_INDEPENDENT
        for (int64_t i = 0; i < inner; ++i) {
          dx[at + i] = static_cast<T>(dx[at + i] * total[i]);
          total[i] *= x[at + i];
        }
      }
    }
    return absl::OkStatus();
  };
  return makeKernel(run, along.inner * static_cast<int64_t>(sizeof(double)));
}

// The first index whose element nothing is before: `before(a, b)` orders the elements, a NaN first of all.
template <typename T, typename Before>
KernelOr argExtremum(const KernelSpec& spec, Before before) {
  WEFT_ASSIGN_OR_RETURN(const Along along, alongOf(spec, spec.inputs[0]));
  WEFT_RETURN_IF_ERROR(checkOutput(spec, 0, {DType::kI32, along.others}));
  if (along.count > std::numeric_limits<int32_t>::max()) {
    return invalid(spec, "counts ", along.count, " elements, more than an i32 can");
  }
  return makeKernel([along, before](const KernelArguments& args) {
    const int64_t inner = along.inner;
    for (int64_t o = 0; o < along.outer; ++o) {
      const T* x = in<T>(args, 0) + o * along.count * inner;
      int32_t* best = out<int32_t>(args, 0) + o * inner;
      std::fill_n(best, inner, 0);
      for (int64_t c = 1; c < along.count; ++c) {
        for (int64_t i = 0; i < inner; ++i) {
          const T value = x[c * inner + i];
          const T known = x[best[i] * inner + i];
          if (before(value, known) || (value != value && known == known)) {
            best[i] = static_cast<int32_t>(c);
          }
        }
      }
    }
    return absl::OkStatus();
  });
}

// Workspace: the indices of a row.
template <typename T>
KernelOr sort(const KernelSpec& spec) {
  WEFT_RETURN_IF_ERROR(checkDims(spec, spec.inputs[0], 1));
  WEFT_ASSIGN_OR_RETURN(const int64_t kept, attribute<int64_t>(spec.attributes, "count"));
  WEFT_ASSIGN_OR_RETURN(const int64_t descending, attributeOr<int64_t>(spec.attributes, "descending", 0));
  const Rows rows = rowsOf(spec.inputs[0].shape);
  if (kept < 0 || kept > rows.width || rows.width > std::numeric_limits<int32_t>::max()) {
    return invalid(spec, "count is ", kept, ", it must lie in 0..", rows.width, ", of at most 2^31 - 1 elements");
  }
  Ints shape = spec.inputs[0].shape;
  shape.back() = kept;
  WEFT_RETURN_IF_ERROR(checkOutput(spec, 0, {spec.inputs[0].type, shape}));
  WEFT_RETURN_IF_ERROR(checkOutput(spec, 1, {DType::kI32, shape}));
  const auto run = [rows, kept, descending](const KernelArguments& args) {
    auto* order = static_cast<int32_t*>(args.workspace);
    int32_t* const end = order + rows.width;
    for (int64_t r = 0; r < rows.count; ++r) {
      const T* x = in<T>(args, 0) + r * rows.width;
      const auto above = [](T a, T b) { return a > b || (a != a && b == b); };
      // The index decides between equal elements, so no other memory is needed to keep their order.
      const auto before = [&](int32_t a, int32_t b) {
        const bool first = descending != 0 ? above(x[a], x[b]) : above(x[b], x[a]);
        const bool second = descending != 0 ? above(x[b], x[a]) : above(x[a], x[b]);
        return first || (!second && a < b);
      };
      std::iota(order, end, 0);
      if (kept < rows.width) {
        std::partial_sort(order, order + kept, end, before);
      } else {
        std::sort(order, end, before);
      }
      std::copy_n(order, kept, out<int32_t>(args, 1) + r * kept);
      std::transform(order, order + kept, out<T>(args, 0) + r * kept, [x](int32_t i) { return x[i]; });
    }
    return absl::OkStatus();
  };
  return makeKernel(run, rows.width * static_cast<int64_t>(sizeof(int32_t)));
}

template <typename T>
KernelOr logSoftmax(const KernelSpec& spec) {
  WEFT_RETURN_IF_ERROR(checkDims(spec, spec.inputs[0], 1));
  WEFT_RETURN_IF_ERROR(checkOutput(spec, 0, spec.inputs[0]));
  return makeKernel([rows = rowsOf(spec.inputs[0].shape)](const KernelArguments& args) {
    for (int64_t r = 0; r < rows.count && rows.width > 0; ++r) {
      const T* x = in<T>(args, 0) + r * rows.width;
      T* y = out<T>(args, 0) + r * rows.width;
      const T most = largest(x, rows.width);
      const T rest = static_cast<T>(std::log(sumOfExponentials(x, most, rows.width)));
      WEFT_INDEPENDENT
      for (int64_t i = 0; i < rows.width; ++i) {
        y[i] = (x[i] - most) - rest;
      }
    }
    return absl::OkStatus();
  });
}

// dx = dy - exp(y) sum(dy).
template <typename T>
KernelOr logSoftmaxGrad(const KernelSpec& spec) {
  WEFT_RETURN_IF_ERROR(checkDims(spec, spec.inputs[0], 1));
  WEFT_RETURN_IF_ERROR(checkInput(spec, 1, spec.inputs[0]));
  WEFT_RETURN_IF_ERROR(checkOutput(spec, 0, spec.inputs[0]));
  return makeKernel([rows = rowsOf(spec.inputs[0].shape)](const KernelArguments& args) {
    for (int64_t r = 0; r < rows.count; ++r) {
      const T* y = in<T>(args, 0) + r * rows.width;
      const T* dy = in<T>(args, 1) + r * rows.width;
      T* dx = out<T>(args, 0) + r * rows.width;
      const T sum = static_cast<T>(laneSum(rows.width, [&](int64_t i) { return dy[i]; }));
      WEFT_INDEPENDENT
      for (int64_t i = 0; i < rows.width; ++i) {
        dx[i] = dy[i] - math::exp(y[i]) * sum;
      }
    }
    return absl::OkStatus();
  });
}

}  // namespace

void addAlongKernels(KernelRegistry& registry) {
  registry.add("cumsum", withArity({1, 1}, [](const KernelSpec& spec) {
                 return dispatchNumeric(spec, spec.inputs[0].type, [&]<typename T>() { return cumsum<T>(spec); });
               }));
  registry.add("prod", withArity({1, 1}, [](const KernelSpec& spec) {
                 return dispatchNumeric(spec, spec.inputs[0].type, [&]<typename T>() { return prod<T>(spec); });
               }));
  registry.add("prod_grad", withArity({2, 1}, [](const KernelSpec& spec) {
                 return dispatchFloat(spec, spec.inputs[0].type, [&]<typename T>() { return prodGrad<T>(spec); });
               }));
  registry.add("argmax", withArity({1, 1}, [](const KernelSpec& spec) {
                 return dispatchAll(spec, spec.inputs[0].type,
                                    [&]<typename T>() { return argExtremum<T>(spec, [](T a, T b) { return a > b; }); });
               }));
  registry.add("argmin", withArity({1, 1}, [](const KernelSpec& spec) {
                 return dispatchAll(spec, spec.inputs[0].type,
                                    [&]<typename T>() { return argExtremum<T>(spec, [](T a, T b) { return a < b; }); });
               }));
  registry.add("sort", withArity({1, 2}, [](const KernelSpec& spec) {
                 return dispatchNumeric(spec, spec.inputs[0].type, [&]<typename T>() { return sort<T>(spec); });
               }));
  registry.add("log_softmax", withArity({1, 1}, [](const KernelSpec& spec) {
                 return dispatchFloat(spec, spec.inputs[0].type, [&]<typename T>() { return logSoftmax<T>(spec); });
               }));
  registry.add("log_softmax_grad", withArity({2, 1}, [](const KernelSpec& spec) {
                 return dispatchFloat(spec, spec.inputs[0].type, [&]<typename T>() { return logSoftmaxGrad<T>(spec); });
               }));
}

}  // namespace weft
