// What batch norm is made of: x is [n, c, ...], statistics are [micro-batches, c], where equal runs of rows form the
// micro-batches. In a step that runs in micro-batches a kernel sees one micro-batch at a time. Sums run in double, row
// after row.

#include "kernels/cpu/families.h"
#include "kernels/cpu/loops.h"
#include "kernels/cpu/support.h"

namespace weft {
namespace {

using namespace cpu;  // NOLINT

struct Extents {
  int64_t rows = 0;
  int64_t channels = 0;
  int64_t plane = 1;  // elements of one channel of one row
  int64_t rowsOfMicroBatch = 1;

  // The statistic of row n and channel c.
  int64_t statistic(int64_t n, int64_t c) const { return n / rowsOfMicroBatch * channels + c; }
};

absl::StatusOr<Extents> extentsOf(const KernelSpec& spec, const TensorSpec& x, const TensorSpec& statistic) {
  WEFT_RETURN_IF_ERROR(checkDims(spec, x, 2));
  Extents extents{x.shape[0], x.shape[1]};
  for (size_t d = 2; d < x.shape.size(); ++d) {
    extents.plane *= x.shape[d];
  }
  const bool fits = statistic.type == x.type && statistic.shape.size() == 2 && statistic.shape[0] > 0 &&
                    statistic.shape[1] == extents.channels && extents.rows % statistic.shape[0] == 0;
  if (!fits) {
    return invalid(spec, "a statistic is ", tensorText(statistic), ", x is ", tensorText(x),
                   "; it should be [micro-batches, channels] of x's type, micro-batches a divisor of the rows");
  }
  extents.rowsOfMicroBatch = std::max<int64_t>(extents.rows / statistic.shape[0], 1);
  return extents;
}

// Calls visit(row, channel, offset of the plane's first element).
template <typename Visit>
void forEachPlane(const Extents& extents, const Visit& visit) {
  int64_t at = 0;
  for (int64_t n = 0; n < extents.rows; ++n) {
    for (int64_t c = 0; c < extents.channels; ++c, at += extents.plane) {
      visit(extents.statistic(n, c), at);
    }
  }
}

// The sum of value(i, statistic) over each micro-batch and channel. Workspace: the totals, 8 bytes each.
template <typename T, typename MakeValue>
KernelOr channelTotals(const KernelSpec& spec, const Extents& extents, const MakeValue& makeValue) {
  const int64_t count = spec.outputs[0].elements();
  return makeKernel(
      [extents, count, makeValue](const KernelArguments& args) {
        auto* total = static_cast<double*>(args.workspace);
        std::fill_n(total, count, 0.0);
        forEachPlane(extents, [&](int64_t statistic, int64_t at) {
          total[statistic] += laneSum(extents.plane, makeValue(args, statistic, at));
        });
        std::transform(total, total + count, out<T>(args, 0), [](double value) { return static_cast<T>(value); });
        return absl::OkStatus();
      },
      count * static_cast<int64_t>(sizeof(double)));
}

template <typename T>
KernelOr channelSum(const KernelSpec& spec) {
  WEFT_ASSIGN_OR_RETURN(const Extents extents, extentsOf(spec, spec.inputs[0], spec.outputs[0]));
  return channelTotals<T>(spec, extents, [](const KernelArguments& args, int64_t /*statistic*/, int64_t at) {
    return [x = in<T>(args, 0) + at](int64_t i) { return x[i]; };
  });
}

template <typename T>
KernelOr channelDot(const KernelSpec& spec) {
  WEFT_ASSIGN_OR_RETURN(const Extents extents, extentsOf(spec, spec.inputs[0], spec.outputs[0]));
  WEFT_RETURN_IF_ERROR(checkInput(spec, 1, spec.inputs[0]));
  WEFT_RETURN_IF_ERROR(checkInput(spec, 2, spec.outputs[0]));
  return channelTotals<T>(spec, extents, [](const KernelArguments& args, int64_t statistic, int64_t at) {
    const double center = in<T>(args, 2)[statistic];
    return [x = in<T>(args, 0) + at, z = in<T>(args, 1) + at, center](int64_t i) {
      return static_cast<double>(x[i]) * (static_cast<double>(z[i]) - center);
    };
  });
}

template <typename T>
KernelOr channelAffine(const KernelSpec& spec) {
  const size_t terms = spec.inputs.size() / 2;
  if (terms < 1 || spec.inputs.size() != 2 * terms + 1) {
    return invalid(spec, "has ", spec.inputs.size(), " inputs; it takes x and a factor for each term, and an offset");
  }
  WEFT_RETURN_IF_ERROR(checkOutput(spec, 0, spec.inputs[0]));
  WEFT_ASSIGN_OR_RETURN(const Extents extents, extentsOf(spec, spec.inputs[0], spec.inputs.back()));
  for (size_t t = 0; t < terms; ++t) {
    WEFT_RETURN_IF_ERROR(checkInput(spec, 2 * t, spec.inputs[0]));
    WEFT_RETURN_IF_ERROR(checkInput(spec, 2 * t + 1, spec.inputs.back()));
  }
  return makeKernel([extents, terms](const KernelArguments& args) {
    forEachPlane(extents, [&](int64_t statistic, int64_t at) {
      T* y = out<T>(args, 0) + at;
      const T* first = in<T>(args, 0) + at;
      const T slope = in<T>(args, 1)[statistic];
      const T offset = in<T>(args, 2 * terms)[statistic];
      WEFT_INDEPENDENT
      for (int64_t i = 0; i < extents.plane; ++i) {
        y[i] = first[i] * slope + offset;
      }
      for (size_t t = 1; t < terms; ++t) {
        const T* x = in<T>(args, 2 * t) + at;
        const T factor = in<T>(args, 2 * t + 1)[statistic];
        WEFT_INDEPENDENT
        for (int64_t i = 0; i < extents.plane; ++i) {
          y[i] += x[i] * factor;
        }
      }
    });
    return absl::OkStatus();
  });
}

}  // namespace

void addChannelKernels(KernelRegistry& registry) {
  registry.add("channel_sum", withArity({1, 1}, [](const KernelSpec& spec) {
                 return dispatchFloat(spec, spec.inputs[0].type, [&]<typename T>() { return channelSum<T>(spec); });
               }));
  registry.add("channel_dot", withArity({3, 1}, [](const KernelSpec& spec) {
                 return dispatchFloat(spec, spec.inputs[0].type, [&]<typename T>() { return channelDot<T>(spec); });
               }));
  registry.add("channel_affine", [](const KernelSpec& spec) -> KernelOr {
    WEFT_RETURN_IF_ERROR(checkArity(spec, {std::max<size_t>(spec.inputs.size(), 1), 1}));
    return dispatchFloat(spec, spec.inputs[0].type, [&]<typename T>() { return channelAffine<T>(spec); });
  });
}

}  // namespace weft
