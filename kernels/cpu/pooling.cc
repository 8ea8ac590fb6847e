// Pooling over windows of images [n, c, h, w], with gradients. Each plane of h x w is treated by itself, windows row by
// row.

#include <algorithm>

#include "kernels/cpu/families.h"
#include "kernels/cpu/loops.h"
#include "kernels/cpu/support.h"

namespace weft {
namespace {

using namespace cpu;  // NOLINT

struct Geometry {
  int64_t planes, h, w;
  int64_t ho, wo;
  int64_t window[2];
  int64_t strides[2];
  int64_t paddings[2];
};

// `x` is the image and `y` the pooled one, whichever of them are results.
absl::StatusOr<Geometry> geometryOf(const KernelSpec& spec, const TensorSpec& x, const TensorSpec& y) {
  if (x.shape.size() != 4 || y.shape.size() != 4) {
    return invalid(spec, "takes tensors of four dimensions, it was given ", tensorText(x), " and ", tensorText(y));
  }
  Geometry g{x.shape[0] * x.shape[1], x.shape[2], x.shape[3], y.shape[2], y.shape[3], {}, {}, {}};
  WEFT_RETURN_IF_ERROR(readPair(spec, "window", 1, g.window));
  WEFT_RETURN_IF_ERROR(readPair(spec, "strides", 1, g.strides));
  WEFT_RETURN_IF_ERROR(readPair(spec, "paddings", 0, g.paddings));
  TensorSpec expected = x;
  for (int d = 0; d < 2; ++d) {
    const int64_t room = x.shape[2 + d] + 2 * g.paddings[d] - g.window[d];
    if (room < 0 || g.paddings[d] >= g.window[d] || x.shape[2 + d] == 0) {
      return invalid(spec, "a window ", g.window[0], " x ", g.window[1], " with paddings ", g.paddings[0], ", ",
                     g.paddings[1], " does not fit ", tensorText(x));
    }
    expected.shape[2 + d] = room / g.strides[d] + 1;
  }
  WEFT_RETURN_IF_ERROR(checkTensor(spec, "the pooled image", y, expected));
  return g;
}

// Elements of a window, those in the pad included.
double sizeOf(const Geometry& g) {
  return static_cast<double>(g.window[0]) * static_cast<double>(g.window[1]);
}

// The part of a window that lies inside the image. There is one: paddings are smaller than the window.
struct Window {
  int64_t rows[2];  // from, to
  int64_t columns[2];
};

Window windowAt(const Geometry& g, int64_t i, int64_t j) {
  const int64_t row = i * g.strides[0] - g.paddings[0];
  const int64_t column = j * g.strides[1] - g.paddings[1];
  return {{std::max<int64_t>(row, 0), std::min(row + g.window[0], g.h)},
          {std::max<int64_t>(column, 0), std::min(column + g.window[1], g.w)}};
}

// visit(plane, position in the pooled plane, window) for all of them.
template <typename Visit>
void forEachWindow(const Geometry& g, const Visit& visit) {
  for (int64_t plane = 0; plane < g.planes; ++plane) {
    for (int64_t i = 0; i < g.ho; ++i) {
      for (int64_t j = 0; j < g.wo; ++j) {
        visit(plane, i * g.wo + j, windowAt(g, i, j));
      }
    }
  }
}

// Position in the plane of the first greatest element; a NaN is the greatest.
template <typename T>
int64_t greatest(const T* x, const Geometry& g, const Window& window) {
  int64_t best = window.rows[0] * g.w + window.columns[0];
  for (int64_t r = window.rows[0]; r < window.rows[1]; ++r) {
    for (int64_t c = window.columns[0]; c < window.columns[1]; ++c) {
      const T value = x[r * g.w + c];
      if (value > x[best] || (value != value && x[best] == x[best])) {
        best = r * g.w + c;
      }
    }
  }
  return best;
}

template <typename T>
KernelOr maxPool(const KernelSpec& spec) {
  WEFT_ASSIGN_OR_RETURN(const Geometry g, geometryOf(spec, spec.inputs[0], spec.outputs[0]));
  return makeKernel([g](const KernelArguments& args) {
    forEachWindow(g, [&](int64_t plane, int64_t at, const Window& window) {
      const T* x = in<T>(args, 0) + plane * g.h * g.w;
      out<T>(args, 0)[plane * g.ho * g.wo + at] = x[greatest(x, g, window)];
    });
    return absl::OkStatus();
  });
}

template <typename T>
KernelOr maxPoolGrad(const KernelSpec& spec) {
  WEFT_ASSIGN_OR_RETURN(const Geometry g, geometryOf(spec, spec.inputs[0], spec.inputs[1]));
  WEFT_RETURN_IF_ERROR(checkOutput(spec, 0, spec.inputs[0]));
  return makeKernel([g](const KernelArguments& args) {
    T* dx = out<T>(args, 0);
    std::fill_n(dx, g.planes * g.h * g.w, T(0));
    forEachWindow(g, [&](int64_t plane, int64_t at, const Window& window) {
      const T* x = in<T>(args, 0) + plane * g.h * g.w;
      dx[plane * g.h * g.w + greatest(x, g, window)] += in<T>(args, 1)[plane * g.ho * g.wo + at];
    });
    return absl::OkStatus();
  });
}

template <typename T>
KernelOr avgPool(const KernelSpec& spec) {
  WEFT_ASSIGN_OR_RETURN(const Geometry g, geometryOf(spec, spec.inputs[0], spec.outputs[0]));
  return makeKernel([g, size = sizeOf(g)](const KernelArguments& args) {
    forEachWindow(g, [&](int64_t plane, int64_t at, const Window& window) {
      const T* x = in<T>(args, 0) + plane * g.h * g.w;
      double sum = 0;
      for (int64_t r = window.rows[0]; r < window.rows[1]; ++r) {
        for (int64_t c = window.columns[0]; c < window.columns[1]; ++c) {
          sum += x[r * g.w + c];
        }
      }
      out<T>(args, 0)[plane * g.ho * g.wo + at] = static_cast<T>(sum / size);
    });
    return absl::OkStatus();
  });
}

template <typename T>
KernelOr avgPoolGrad(const KernelSpec& spec) {
  WEFT_ASSIGN_OR_RETURN(const Geometry g, geometryOf(spec, spec.outputs[0], spec.inputs[0]));
  return makeKernel([g, size = static_cast<T>(sizeOf(g))](const KernelArguments& args) {
    std::fill_n(out<T>(args, 0), g.planes * g.h * g.w, T(0));
    forEachWindow(g, [&](int64_t plane, int64_t at, const Window& window) {
      T* dx = out<T>(args, 0) + plane * g.h * g.w;
      const T share = in<T>(args, 0)[plane * g.ho * g.wo + at] / size;
      for (int64_t r = window.rows[0]; r < window.rows[1]; ++r) {
        for (int64_t c = window.columns[0]; c < window.columns[1]; ++c) {
          dx[r * g.w + c] += share;
        }
      }
    });
    return absl::OkStatus();
  });
}

}  // namespace

void addPoolingKernels(KernelRegistry& registry) {
  registry.add("max_pool2d", withArity({1, 1}, [](const KernelSpec& spec) {
                 return dispatchFloat(spec, spec.inputs[0].type, [&]<typename T>() { return maxPool<T>(spec); });
               }));
  registry.add("max_pool2d_grad", withArity({2, 1}, [](const KernelSpec& spec) {
                 return dispatchFloat(spec, spec.inputs[0].type, [&]<typename T>() { return maxPoolGrad<T>(spec); });
               }));
  registry.add("avg_pool2d", withArity({1, 1}, [](const KernelSpec& spec) {
                 return dispatchFloat(spec, spec.inputs[0].type, [&]<typename T>() { return avgPool<T>(spec); });
               }));
  registry.add("avg_pool2d_grad", withArity({1, 1}, [](const KernelSpec& spec) {
                 return dispatchFloat(spec, spec.inputs[0].type, [&]<typename T>() { return avgPoolGrad<T>(spec); });
               }));
}

}  // namespace weft
