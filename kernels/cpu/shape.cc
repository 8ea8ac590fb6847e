// Kernels that move elements: reshape, transpose, slice, pad, concat, broadcast, dynamic_slice; and fill, iota,
// mask_pad, accumulate.

#include <cstring>

#include "kernels/cpu/families.h"
#include "kernels/cpu/support.h"

namespace weft {
namespace {

using namespace cpu;  // NOLINT

using Ints = std::vector<int64_t>;

// Copies with strides; for any type of the element's width.
template <typename T>
KernelOr stridedCopy(const Ints& shape, const Ints& from, int64_t fromOffset, const Ints& to, int64_t toOffset) {
  const StridedLoop<2> loop(shape, {from, to});
  return makeKernel([loop, fromOffset, toOffset](const KernelArguments& args) {
    const T* x = in<T>(args, 0) + fromOffset;
    T* y = out<T>(args, 0) + toOffset;
    loop.run([&](const auto& at, int64_t count, const auto& step) {
      const T* px = x + at[0];
      T* py = y + at[1];
      if (step[0] == 1 && step[1] == 1) {
        std::memcpy(py, px, count * sizeof(T));
        return;
      }
      for (int64_t i = 0; i < count; ++i) {
        py[i * step[1]] = px[i * step[0]];
      }
    });
    return absl::OkStatus();
  });
}

KernelOr reshape(const KernelSpec& spec) {
  WEFT_RETURN_IF_ERROR(checkCounts(spec, 1, 1));
  if (spec.inputs[0].bytes() != spec.outputs[0].bytes()) {
    return absl::InvalidArgumentError(absl::StrCat("reshape from ", shapeText(spec.inputs[0].shape), " to ",
                                                   shapeText(spec.outputs[0].shape),
                                                   " changes the number of elements"));
  }
  const int64_t bytes = spec.inputs[0].bytes();
  return makeKernel([bytes](const KernelArguments& args) {
    std::memmove(args.outputs[0], args.inputs[0], bytes);
    return absl::OkStatus();
  });
}

KernelOr transpose(const KernelSpec& spec) {
  WEFT_RETURN_IF_ERROR(checkCounts(spec, 1, 1));
  WEFT_ASSIGN_OR_RETURN(const Ints permutation, attribute<Ints>(spec.attributes, "permutation"));
  const Ints strides = stridesOf(spec.inputs[0].shape);
  Ints from;
  for (size_t d = 0; d < permutation.size(); ++d) {
    if (permutation[d] < 0 || permutation[d] >= static_cast<int64_t>(strides.size()) ||
        spec.outputs[0].shape.at(d) != spec.inputs[0].shape[permutation[d]]) {
      return absl::InvalidArgumentError(absl::StrCat("transpose of ", shapeText(spec.inputs[0].shape), " by ",
                                                     shapeText(permutation), " is not ",
                                                     shapeText(spec.outputs[0].shape)));
    }
    from.push_back(strides[permutation[d]]);
  }
  return dispatchAll(spec, spec.inputs[0].type, [&]<typename T>() {
    return stridedCopy<T>(spec.outputs[0].shape, from, 0, stridesOf(spec.outputs[0].shape), 0);
  });
}

KernelOr slice(const KernelSpec& spec) {
  WEFT_RETURN_IF_ERROR(checkCounts(spec, 1, 1));
  WEFT_ASSIGN_OR_RETURN(const Ints offsets, attribute<Ints>(spec.attributes, "offsets"));
  const Ints strides = stridesOf(spec.inputs[0].shape);
  int64_t start = 0;
  for (size_t d = 0; d < strides.size(); ++d) {
    if (offsets.size() != strides.size() || offsets[d] < 0 ||
        offsets[d] + spec.outputs[0].shape.at(d) > spec.inputs[0].shape[d]) {
      return absl::InvalidArgumentError(absl::StrCat("slice ", shapeText(spec.outputs[0].shape), " at ",
                                                     shapeText(offsets), " leaves ", shapeText(spec.inputs[0].shape)));
    }
    start += offsets[d] * strides[d];
  }
  return dispatchAll(spec, spec.inputs[0].type, [&]<typename T>() {
    return stridedCopy<T>(spec.outputs[0].shape, strides, start, stridesOf(spec.outputs[0].shape), 0);
  });
}

// Scalars: the start in each dimension.
template <typename T>
KernelOr dynamicSlice(const KernelSpec& spec) {
  const Ints strides = stridesOf(spec.inputs[0].shape);
  const StridedLoop<2> loop(spec.outputs[0].shape, {strides, stridesOf(spec.outputs[0].shape)});
  const Ints inShape = spec.inputs[0].shape;
  const Ints outShape = spec.outputs[0].shape;
  return makeKernel([=](const KernelArguments& args) {
    int64_t start = 0;
    for (size_t d = 0; d < strides.size(); ++d) {
      if (args.scalars[d] < 0 || args.scalars[d] + outShape[d] > inShape[d]) {
        return absl::OutOfRangeError(absl::StrCat("slice [", args.scalars[d], ", ", args.scalars[d] + outShape[d],
                                                  ") of dimension ", d, " of size ", inShape[d]));
      }
      start += args.scalars[d] * strides[d];
    }
    const T* x = in<T>(args, 0) + start;
    T* y = out<T>(args, 0);
    loop.run([&](const auto& at, int64_t count, const auto& step) {
      if (step[0] == 1) {
        std::memcpy(y + at[1], x + at[0], count * sizeof(T));
        return;
      }
      for (int64_t i = 0; i < count; ++i) {
        y[at[1] + i * step[1]] = x[at[0] + i * step[0]];
      }
    });
    return absl::OkStatus();
  });
}

template <typename T>
KernelOr pad(const KernelSpec& spec, const Ints& low) {
  const Ints strides = stridesOf(spec.outputs[0].shape);
  int64_t start = 0;
  for (size_t d = 0; d < strides.size(); ++d) {
    if (low.size() != strides.size() || low[d] < 0 || low[d] + spec.inputs[0].shape[d] > spec.outputs[0].shape[d]) {
      return absl::InvalidArgumentError(absl::StrCat("pad of ", shapeText(spec.inputs[0].shape), " by ", shapeText(low),
                                                     " leaves ", shapeText(spec.outputs[0].shape)));
    }
    start += low[d] * strides[d];
  }
  const StridedLoop<2> loop(spec.inputs[0].shape, {stridesOf(spec.inputs[0].shape), strides});
  const int64_t bytes = spec.outputs[0].bytes();
  return makeKernel([=](const KernelArguments& args) {
    std::memset(args.outputs[0], 0, bytes);
    const T* x = in<T>(args, 0);
    T* y = out<T>(args, 0) + start;
    loop.run([&](const auto& at, int64_t count, const auto& step) {
      for (int64_t i = 0; i < count; ++i) {
        y[at[1] + i * step[1]] = x[at[0] + i * step[0]];
      }
    });
    return absl::OkStatus();
  });
}

KernelOr concat(const KernelSpec& spec) {
  WEFT_ASSIGN_OR_RETURN(const int64_t dim, attribute<int64_t>(spec.attributes, "dim"));
  const Ints& shape = spec.outputs.at(0).shape;
  int64_t outer = 1;
  int64_t total = 0;
  std::vector<int64_t> runs;
  for (int64_t d = 0; d < dim; ++d) {
    outer *= shape.at(d);
  }
  for (const TensorSpec& input : spec.inputs) {
    runs.push_back(input.bytes() / std::max<int64_t>(outer, 1));
    total += runs.back();
  }
  if (total * outer != spec.outputs[0].bytes()) {
    return absl::InvalidArgumentError(
        absl::StrCat("concat of ", spec.inputs.size(), " tensors does not give ", shapeText(shape)));
  }
  return makeKernel([=](const KernelArguments& args) {
    char* y = static_cast<char*>(args.outputs[0]);
    for (int64_t o = 0; o < outer; ++o) {
      for (size_t i = 0; i < runs.size(); ++i) {
        std::memcpy(y, static_cast<const char*>(args.inputs[i]) + o * runs[i], runs[i]);
        y += runs[i];
      }
    }
    return absl::OkStatus();
  });
}

KernelOr broadcast(const KernelSpec& spec) {
  WEFT_RETURN_IF_ERROR(checkCounts(spec, 1, 1));
  WEFT_ASSIGN_OR_RETURN(const Ints strides, broadcastStrides(spec.inputs[0].shape, spec.outputs[0].shape));
  return dispatchAll(spec, spec.inputs[0].type, [&]<typename T>() {
    return stridedCopy<T>(spec.outputs[0].shape, strides, 0, stridesOf(spec.outputs[0].shape), 0);
  });
}

template <typename T>
KernelOr fill(const KernelSpec& spec) {
  WEFT_ASSIGN_OR_RETURN(const double value, attribute<double>(spec.attributes, "value"));
  const int64_t n = spec.outputs[0].elements();
  return makeKernel([n, element = static_cast<T>(value)](const KernelArguments& args) {
    std::fill_n(out<T>(args, 0), n, element);
    return absl::OkStatus();
  });
}

// Scalars: the origin of dimension `dim`.
template <typename T>
KernelOr iota(const KernelSpec& spec) {
  WEFT_ASSIGN_OR_RETURN(const int64_t dim, attribute<int64_t>(spec.attributes, "dim"));
  const int64_t inner = stridesOf(spec.outputs[0].shape).at(dim);
  const int64_t length = spec.outputs[0].shape[dim];
  const int64_t n = spec.outputs[0].elements();
  return makeKernel([=](const KernelArguments& args) {
    T* y = out<T>(args, 0);
    for (int64_t i = 0; i < n; ++i) {
      y[i] = static_cast<T>(args.scalars[0] + i / inner % length);
    }
    return absl::OkStatus();
  });
}

// Elements whose global index in dims[i] is >= valid[i] become `fill`. Scalars: the origin of each listed dimension.
template <typename T>
KernelOr maskPad(const KernelSpec& spec) {
  WEFT_ASSIGN_OR_RETURN(const Ints dims, attribute<Ints>(spec.attributes, "dims"));
  WEFT_ASSIGN_OR_RETURN(const Ints valid, attribute<Ints>(spec.attributes, "valid"));
  WEFT_ASSIGN_OR_RETURN(const double value, attribute<double>(spec.attributes, "fill"));
  WEFT_RETURN_IF_ERROR(checkScalars(spec, dims.size()));
  const Ints shape = spec.inputs[0].shape;
  const Ints strides = stridesOf(shape);
  const int64_t bytes = spec.inputs[0].bytes();
  const int64_t n = spec.inputs[0].elements();
  return makeKernel([=, element = static_cast<T>(value)](const KernelArguments& args) {
    T* y = out<T>(args, 0);
    if (args.inputs[0] != args.outputs[0]) {
      std::memcpy(y, args.inputs[0], bytes);
    }
    for (size_t k = 0; k < dims.size(); ++k) {
      const int64_t length = shape[dims[k]];
      const int64_t inner = strides[dims[k]];
      const int64_t keep = std::clamp<int64_t>(valid[k] - args.scalars[k], 0, length);
      for (int64_t o = 0; keep < length && o < n / (length * inner); ++o) {
        std::fill(y + (o * length + keep) * inner, y + (o + 1) * length * inner, element);
      }
    }
    return absl::OkStatus();
  });
}

// acc' = x in piece 0, acc + x later. Scalars: the piece.
template <typename T>
KernelOr accumulate(const KernelSpec& spec) {
  WEFT_RETURN_IF_ERROR(checkCounts(spec, 2, 1));
  WEFT_RETURN_IF_ERROR(checkSameShape(spec, spec.inputs[0], spec.inputs[1]));
  const int64_t n = spec.outputs[0].elements();
  return makeKernel([n](const KernelArguments& args) {
    const T* acc = in<T>(args, 0);
    const T* x = in<T>(args, 1);
    T* y = out<T>(args, 0);
    if (args.scalars[0] == 0) {
      std::memcpy(y, x, n * sizeof(T));
      return absl::OkStatus();
    }
    for (int64_t i = 0; i < n; ++i) {
      y[i] = acc[i] + x[i];
    }
    return absl::OkStatus();
  });
}

}  // namespace

void addShapeKernels(KernelRegistry& registry) {
  registry.add("reshape", reshape);
  registry.add("transpose", transpose);
  registry.add("slice", slice);
  registry.add("concat", concat);
  registry.add("broadcast", broadcast);
  registry.add("dynamic_slice", [](const KernelSpec& spec) -> KernelOr {
    WEFT_RETURN_IF_ERROR(checkCounts(spec, 1, 1));
    WEFT_RETURN_IF_ERROR(checkScalars(spec, spec.inputs[0].shape.size()));
    return dispatchAll(spec, spec.inputs[0].type, [&]<typename T>() { return dynamicSlice<T>(spec); });
  });
  registry.add("pad", [](const KernelSpec& spec) -> KernelOr {
    WEFT_RETURN_IF_ERROR(checkCounts(spec, 1, 1));
    WEFT_ASSIGN_OR_RETURN(const Ints low, attribute<Ints>(spec.attributes, "low"));
    return dispatchAll(spec, spec.inputs[0].type, [&]<typename T>() { return pad<T>(spec, low); });
  });
  registry.add("fill", [](const KernelSpec& spec) {
    return dispatchAll(spec, spec.outputs.at(0).type, [&]<typename T>() { return fill<T>(spec); });
  });
  registry.add("iota", [](const KernelSpec& spec) {
    return dispatchAll(spec, spec.outputs.at(0).type, [&]<typename T>() { return iota<T>(spec); });
  });
  registry.add("mask_pad", [](const KernelSpec& spec) {
    return dispatchAll(spec, spec.inputs.at(0).type, [&]<typename T>() { return maskPad<T>(spec); });
  });
  registry.add("accumulate", [](const KernelSpec& spec) {
    return dispatchAll(spec, spec.inputs.at(0).type, [&]<typename T>() { return accumulate<T>(spec); });
  });
}

}  // namespace weft
