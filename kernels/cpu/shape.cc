// Kernels that move elements: reshape, transpose, slice, pad, flip, concat, broadcast, dynamic_slice,
// dynamic_update_slice; and fill, iota, mask_pad, accumulate.

#include <algorithm>
#include <cstring>

#include "kernels/cpu/families.h"
#include "kernels/cpu/loops.h"
#include "kernels/cpu/support.h"
#include "kernels/describe/describe.h"
#include "runtime/base/limits.h"

namespace weft {
namespace {

using namespace cpu;  // NOLINT

// A value of the type: bool is 1 for anything but 0, integers as casts give them.
template <typename T>
T elementOf(double value) {
  if constexpr (std::is_same_v<T, uint8_t>) {
    return value != 0.0 ? 1 : 0;
  } else {
    return convert<T>(value);
  }
}

// Two strided tensors and where each begins.
struct Move {
  Ints shape;
  Ints from;
  Ints to;
  int64_t fromOffset = 0;
  int64_t toOffset = 0;
  bool zeroFirst = false;  // the result is larger than what is moved
};

KernelOr makeMove(const KernelSpec& spec, const Move& move) {
  const int64_t zeros = move.zeroFirst ? spec.outputs[0].bytes() : 0;
  return dispatchWidth(spec.inputs[0].type, [&]<typename T>() {
    const StridedCopy<T> copy(move.shape, move.from, move.to);
    return makeKernel([=, from = move.fromOffset, to = move.toOffset](const KernelArguments& args) {
      if (zeros > 0) {
        std::memset(args.outputs[0], 0, zeros);
      }
      copy.run(in<T>(args, 0) + from, out<T>(args, 0) + to);
      return absl::OkStatus();
    });
  });
}

KernelOr reshape(const KernelSpec& spec) {
  if (spec.inputs[0].type != spec.outputs[0].type || spec.inputs[0].elements() != spec.outputs[0].elements()) {
    return invalid(spec, tensorText(spec.inputs[0]), " and ", tensorText(spec.outputs[0]),
                   " differ in type or number of elements");
  }
  const int64_t bytes = spec.inputs[0].bytes();
  return makeKernel([bytes](const KernelArguments& args) {
    if (args.inputs[0] != args.outputs[0] && bytes > 0) {
      std::memcpy(args.outputs[0], args.inputs[0], bytes);
    }
    return absl::OkStatus();
  });
}

KernelOr transpose(const KernelSpec& spec) {
  WEFT_ASSIGN_OR_RETURN(const Ints permutation, attribute<Ints>(spec.attributes, "permutation"));
  const Ints& shape = spec.inputs[0].shape;
  const Ints strides = stridesOf(shape);
  std::vector<bool> seen(shape.size(), false);
  TensorSpec result{spec.inputs[0].type, {}};
  Move move;
  if (permutation.size() != shape.size()) {
    return invalid(spec, "permutation ", shapeText(permutation), " does not fit ", tensorText(spec.inputs[0]));
  }
  for (const int64_t from : permutation) {
    if (from < 0 || from >= static_cast<int64_t>(shape.size()) || seen[from]) {
      return invalid(spec, "permutation ", shapeText(permutation), " does not fit ", tensorText(spec.inputs[0]));
    }
    seen[from] = true;
    result.shape.push_back(shape[from]);
    move.from.push_back(strides[from]);
  }
  WEFT_RETURN_IF_ERROR(checkOutput(spec, 0, result));
  move.shape = result.shape;
  move.to = stridesOf(result.shape);
  return makeMove(spec, move);
}

// A box of `size` at `offsets` must lie inside `whole`; returns the box's first element.
absl::StatusOr<int64_t> boxStart(const KernelSpec& spec, const Ints& size, const Ints& offsets, const Ints& whole) {
  const Ints strides = stridesOf(whole);
  int64_t start = 0;
  bool fits = size.size() == whole.size() && offsets.size() == whole.size();
  for (size_t d = 0; fits && d < whole.size(); ++d) {
    fits = size[d] <= whole[d] && offsets[d] >= 0 && offsets[d] <= whole[d] - size[d];
    start += fits ? offsets[d] * strides[d] : 0;
  }
  if (!fits) {
    return invalid(spec, "a box ", shapeText(size), " at ", shapeText(offsets), " is not inside ", shapeText(whole));
  }
  return start;
}

KernelOr slice(const KernelSpec& spec) {
  WEFT_ASSIGN_OR_RETURN(const Ints offsets, attribute<Ints>(spec.attributes, "offsets"));
  const Ints& size = spec.outputs[0].shape;
  WEFT_RETURN_IF_ERROR(checkOutput(spec, 0, {spec.inputs[0].type, size}));
  WEFT_ASSIGN_OR_RETURN(const int64_t start, boxStart(spec, size, offsets, spec.inputs[0].shape));
  return makeMove(spec, {size, stridesOf(spec.inputs[0].shape), stridesOf(size), start, 0, false});
}

KernelOr pad(const KernelSpec& spec) {
  WEFT_ASSIGN_OR_RETURN(const Ints low, attribute<Ints>(spec.attributes, "low"));
  const Ints& size = spec.inputs[0].shape;
  WEFT_RETURN_IF_ERROR(checkOutput(spec, 0, {spec.inputs[0].type, spec.outputs[0].shape}));
  WEFT_ASSIGN_OR_RETURN(const int64_t start, boxStart(spec, size, low, spec.outputs[0].shape));
  WEFT_ASSIGN_OR_RETURN(const double value, attributeOr<double>(spec.attributes, "value", 0.0));
  const Ints to = stridesOf(spec.outputs[0].shape);
  if (value == 0) {
    return makeMove(spec, {size, stridesOf(size), to, 0, start, true});
  }
  const int64_t n = spec.outputs[0].elements();
  return dispatchAll(spec, spec.inputs[0].type, [&]<typename T>() {
    const StridedCopy<T> copy(size, stridesOf(size), to);
    return makeKernel([=, element = elementOf<T>(value)](const KernelArguments& args) {
      std::fill_n(out<T>(args, 0), n, element);
      copy.run(in<T>(args, 0), out<T>(args, 0) + start);
      return absl::OkStatus();
    });
  });
}

// Reads the flipped dimensions from their ends.
KernelOr flip(const KernelSpec& spec) {
  WEFT_ASSIGN_OR_RETURN(const Ints dims, attribute<Ints>(spec.attributes, "dims"));
  WEFT_RETURN_IF_ERROR(checkOutput(spec, 0, spec.inputs[0]));
  const Ints& shape = spec.inputs[0].shape;
  Move move = {shape, stridesOf(shape), stridesOf(shape)};
  for (const int64_t dim : dims) {
    if (dim < 0 || dim >= static_cast<int64_t>(shape.size()) || move.from[dim] < 0) {
      return invalid(spec, "dimension ", dim, " of ", tensorText(spec.inputs[0]), " is not there or listed twice");
    }
    move.fromOffset += std::max<int64_t>(shape[dim] - 1, 0) * move.from[dim];
    move.from[dim] = -move.from[dim];
  }
  return makeMove(spec, move);
}

KernelOr broadcast(const KernelSpec& spec) {
  const Ints& shape = spec.outputs[0].shape;
  WEFT_RETURN_IF_ERROR(checkOutput(spec, 0, {spec.inputs[0].type, shape}));
  WEFT_ASSIGN_OR_RETURN(const Ints from, broadcastStrides(spec.inputs[0].shape, shape));
  return makeMove(spec, {shape, from, stridesOf(shape), 0, 0, false});
}

// A box in a tensor, whose place a kernel gets with each call.
struct MovingBox {
  const char* kernel;
  Ints size;
  Ints whole;  // shape of the tensor
  Ints strides = stridesOf(whole);

  // Its first element where it begins at the kernel's scalars, one for each dimension.
  absl::StatusOr<int64_t> startAt(const KernelArguments& args) const {
    int64_t start = 0;
    for (size_t d = 0; d < whole.size(); ++d) {
      if (args.scalars[d] < 0 || args.scalars[d] > whole[d] - size[d]) {
        return absl::OutOfRangeError(absl::StrCat("kernel ", kernel, ": [", args.scalars[d], ", ",
                                                  wrappingSum(args.scalars[d], size[d]), ") is not inside dimension ",
                                                  d, " of size ", whole[d]));
      }
      start += args.scalars[d] * strides[d];
    }
    return start;
  }
};

// Scalars: the start in each dimension.
KernelOr dynamicSlice(const KernelSpec& spec) {
  const Ints whole = spec.inputs[0].shape;
  const Ints size = spec.outputs[0].shape;
  WEFT_RETURN_IF_ERROR(checkArity(spec, {1, 1, whole.size()}));
  WEFT_RETURN_IF_ERROR(checkOutput(spec, 0, {spec.inputs[0].type, size}));
  WEFT_RETURN_IF_ERROR(boxStart(spec, size, Ints(whole.size(), 0), whole).status());
  return dispatchWidth(spec.inputs[0].type, [&]<typename T>() {
    const StridedCopy<T> copy(size, stridesOf(whole), stridesOf(size));
    return makeKernel(
        [copy, box = MovingBox{kDynamicSliceKernel, size, whole}](const KernelArguments& args) -> absl::Status {
          WEFT_ASSIGN_OR_RETURN(const int64_t start, box.startAt(args));
          copy.run(in<T>(args, 0) + start, out<T>(args, 0));
          return absl::OkStatus();
        });
  });
}

// Inputs: the whole and a part of it. Scalars: the start of the part in each dimension.
KernelOr dynamicUpdateSlice(const KernelSpec& spec) {
  const Ints whole = spec.inputs[0].shape;
  const Ints size = spec.inputs[1].shape;
  WEFT_RETURN_IF_ERROR(checkArity(spec, {2, 1, whole.size()}));
  WEFT_RETURN_IF_ERROR(checkInput(spec, 1, {spec.inputs[0].type, size}));
  WEFT_RETURN_IF_ERROR(checkOutput(spec, 0, spec.inputs[0]));
  WEFT_RETURN_IF_ERROR(boxStart(spec, size, Ints(whole.size(), 0), whole).status());
  const int64_t n = spec.outputs[0].elements();
  return dispatchWidth(spec.inputs[0].type, [&]<typename T>() {
    const StridedCopy<T> copy(size, stridesOf(size), stridesOf(whole));
    return makeKernel([copy, n, box = MovingBox{kDynamicUpdateSliceKernel, size, whole}](
                          const KernelArguments& args) -> absl::Status {
      WEFT_ASSIGN_OR_RETURN(const int64_t start, box.startAt(args));
      T* y = out<T>(args, 0);
      if (args.inputs[0] != args.outputs[0]) {
        std::copy_n(in<T>(args, 0), n, y);
      }
      copy.run(in<T>(args, 1), y + start);
      return absl::OkStatus();
    });
  });
}

absl::Status checkConcat(const KernelSpec& spec, int64_t dim) {
  const Ints& shape = spec.outputs[0].shape;
  if (dim < 0 || dim >= static_cast<int64_t>(shape.size())) {
    return invalid(spec, "dimension ", dim, " of a result ", shapeText(shape));
  }
  int64_t total = 0;
  for (size_t i = 0; i < spec.inputs.size(); ++i) {
    TensorSpec expected = spec.outputs[0];
    if (spec.inputs[i].shape.size() == shape.size()) {
      expected.shape[dim] = spec.inputs[i].shape[dim];
    }
    WEFT_RETURN_IF_ERROR(checkInput(spec, i, expected));
    total += expected.shape[dim];
  }
  if (total != shape[dim]) {
    return invalid(spec, "the inputs have ", total, " elements along dimension ", dim, ", the result ", shape[dim]);
  }
  return absl::OkStatus();
}

// Any number of inputs.
KernelOr concat(const KernelSpec& spec) {
  WEFT_RETURN_IF_ERROR(checkArity(spec, {spec.inputs.size(), 1}));
  WEFT_ASSIGN_OR_RETURN(const int64_t dim, attribute<int64_t>(spec.attributes, "dim"));
  WEFT_RETURN_IF_ERROR(checkConcat(spec, dim));
  int64_t outer = 1;
  for (int64_t d = 0; d < dim; ++d) {
    outer *= spec.outputs[0].shape[d];
  }
  Ints runs;  // bytes of each input per outer index
  for (const TensorSpec& input : spec.inputs) {
    runs.push_back(input.bytes() / std::max<int64_t>(outer, 1));
  }
  return makeKernel([=](const KernelArguments& args) {
    char* y = static_cast<char*>(args.outputs[0]);
    for (int64_t o = 0; o < outer; ++o) {
      for (size_t i = 0; i < runs.size(); ++i) {
        if (runs[i] > 0) {
          std::memcpy(y, static_cast<const char*>(args.inputs[i]) + o * runs[i], runs[i]);
          y += runs[i];
        }
      }
    }
    return absl::OkStatus();
  });
}

template <typename T>
KernelOr fill(const KernelSpec& spec) {
  WEFT_ASSIGN_OR_RETURN(const double value, attribute<double>(spec.attributes, "value"));
  const int64_t n = spec.outputs[0].elements();
  return makeKernel([n, element = elementOf<T>(value)](const KernelArguments& args) {
    std::fill_n(out<T>(args, 0), n, element);
    return absl::OkStatus();
  });
}

// Scalars: the origin of dimension `dim`.
template <typename T>
KernelOr iota(const KernelSpec& spec) {
  const Ints& shape = spec.outputs[0].shape;
  WEFT_ASSIGN_OR_RETURN(const int64_t dim, attribute<int64_t>(spec.attributes, "dim"));
  if (dim < 0 || dim >= static_cast<int64_t>(shape.size())) {
    return invalid(spec, "dimension ", dim, " of ", tensorText(spec.outputs[0]));
  }
  const int64_t inner = stridesOf(shape)[dim];
  const int64_t length = shape[dim];
  const int64_t n = spec.outputs[0].elements();
  return makeKernel([=](const KernelArguments& args) {
    T* y = out<T>(args, 0);
    for (int64_t i = 0; i < n; ++i) {
      y[i] = static_cast<T>(args.scalars[0] + i / inner % length);
    }
    return absl::OkStatus();
  });
}

absl::Status checkMask(const KernelSpec& spec, const Ints& dims, const Ints& valid) {
  WEFT_RETURN_IF_ERROR(checkArity(spec, {1, 1, dims.size()}));
  WEFT_RETURN_IF_ERROR(checkOutput(spec, 0, spec.inputs[0]));
  if (dims.size() != valid.size()) {
    return invalid(spec, dims.size(), " dims and ", valid.size(), " valid sizes");
  }
  for (const int64_t dim : dims) {
    if (dim < 0 || dim >= static_cast<int64_t>(spec.inputs[0].shape.size()) ||
        std::count(dims.begin(), dims.end(), dim) > 1) {
      return invalid(spec, "dimension ", dim, " of ", tensorText(spec.inputs[0]), " is not there or listed twice");
    }
  }
  return absl::OkStatus();
}

// How the elements of a masked dimension lie in the whole: runs of `run`, whose first are `stride` apart.
struct Runs {
  int64_t run = 0;
  int64_t stride = 0;
};

// Of each of `dims`; one run but for `run_dim`.
absl::StatusOr<std::vector<Runs>> runsOf(const KernelSpec& spec, const Ints& dims) {
  WEFT_ASSIGN_OR_RETURN(const int64_t dim, attributeOr<int64_t>(spec.attributes, "run_dim", -1));
  WEFT_ASSIGN_OR_RETURN(const int64_t run, attributeOr<int64_t>(spec.attributes, "run", 0));
  WEFT_ASSIGN_OR_RETURN(const int64_t stride, attributeOr<int64_t>(spec.attributes, "stride", 0));
  std::vector<Runs> runs;
  for (const int64_t masked : dims) {
    const int64_t length = spec.inputs[0].shape[masked];
    runs.push_back(masked == dim ? Runs{run, stride} : Runs{length, length});
    if (masked == dim && (run < 1 || length % run != 0 || stride < run || stride > kMaxBytes / (length / run))) {
      return invalid(spec, "runs of ", run, ", ", stride, " apart, in dimension ", dim, " of ",
                     tensorText(spec.inputs[0]), "; they must divide it and not overlap");
    }
  }
  return runs;
}

// Elements whose global index in dims[i] is >= valid[i] become `fill`. Scalars: the origin of each listed dimension.
template <typename T>
KernelOr maskPad(const KernelSpec& spec) {
  WEFT_ASSIGN_OR_RETURN(const Ints dims, attribute<Ints>(spec.attributes, "dims"));
  WEFT_ASSIGN_OR_RETURN(const Ints valid, attribute<Ints>(spec.attributes, "valid"));
  WEFT_ASSIGN_OR_RETURN(const double value, attribute<double>(spec.attributes, "fill"));
  WEFT_RETURN_IF_ERROR(checkMask(spec, dims, valid));
  WEFT_ASSIGN_OR_RETURN(const std::vector<Runs> runs, runsOf(spec, dims));
  const Ints shape = spec.inputs[0].shape;
  const Ints strides = stridesOf(shape);
  const int64_t n = spec.inputs[0].elements();
  return makeKernel([=, element = elementOf<T>(value)](const KernelArguments& args) {
    T* y = out<T>(args, 0);
    if (args.inputs[0] != args.outputs[0]) {
      std::copy_n(in<T>(args, 0), n, y);
    }
    for (size_t k = 0; k < dims.size() && n > 0; ++k) {
      const int64_t inner = strides[dims[k]];
      const int64_t ofDim = shape[dims[k]] / runs[k].run;  // runs in the dimension
      for (int64_t r = 0; r < n / (runs[k].run * inner); ++r) {
        const int64_t first = args.scalars[k] + r % ofDim * runs[k].stride;
        const int64_t keep = std::clamp<int64_t>(valid[k] - first, 0, runs[k].run);
        std::fill(y + (r * runs[k].run + keep) * inner, y + (r + 1) * runs[k].run * inner, element);
      }
    }
    return absl::OkStatus();
  });
}

// acc' = x in micro-batch 0, later acc + x, or the greater or smaller of them. Scalars: the micro-batch.
template <typename T, typename F>
KernelOr accumulateWith(const KernelSpec& spec, const F& f) {
  WEFT_RETURN_IF_ERROR(checkInput(spec, 1, spec.inputs[0]));
  WEFT_RETURN_IF_ERROR(checkOutput(spec, 0, spec.inputs[0]));
  const int64_t n = spec.outputs[0].elements();
  return makeKernel([n, f](const KernelArguments& args) {
    const T* acc = in<T>(args, 0);
    const T* x = in<T>(args, 1);
    T* y = out<T>(args, 0);
    if (args.scalars[0] == 0) {
      if (x != y) {
        std::copy_n(x, n, y);
      }
      return absl::OkStatus();
    }
    WEFT_INDEPENDENT
    for (int64_t i = 0; i < n; ++i) {
      y[i] = f(acc[i], x[i]);
    }
    return absl::OkStatus();
  });
}

KernelOr accumulate(const KernelSpec& spec) {
  WEFT_ASSIGN_OR_RETURN(const std::string reduce, attributeOr<std::string>(spec.attributes, "reduce", "sum"));
  if (reduce == "sum") {
    return dispatchNumeric(spec, spec.inputs[0].type, [&]<typename T>() {
      return accumulateWith<T>(spec, [](T a, T b) { return wrappingSum(a, b); });
    });
  }
  if (reduce != "max" && reduce != "min") {
    return invalid(spec, "reduce is '", reduce, "'; it should be sum, max or min");
  }
  return dispatchAll(spec, spec.inputs[0].type, [&]<typename T>() {
    return reduce == "max" ? accumulateWith<T>(spec, [](T a, T b) { return larger(a, b); })
                           : accumulateWith<T>(spec, [](T a, T b) { return smaller(a, b); });
  });
}

}  // namespace

void addShapeKernels(KernelRegistry& registry) {
  registry.add("reshape", withArity({1, 1}, reshape));
  registry.add("transpose", withArity({1, 1}, transpose));
  registry.add("slice", withArity({1, 1}, slice));
  registry.add("pad", withArity({1, 1}, pad));
  registry.add("flip", withArity({1, 1}, flip));
  registry.add("broadcast", withArity({1, 1}, broadcast));
  registry.add("concat", [](const KernelSpec& spec) { return concat(spec); });
  registry.add("dynamic_slice", [](const KernelSpec& spec) -> KernelOr {
    WEFT_RETURN_IF_ERROR(checkArity(spec, {1, 1, spec.scalars}));
    return dynamicSlice(spec);
  });
  registry.add("dynamic_update_slice", [](const KernelSpec& spec) -> KernelOr {
    WEFT_RETURN_IF_ERROR(checkArity(spec, {2, 1, spec.scalars}));
    return dynamicUpdateSlice(spec);
  });
  registry.add("fill", withArity({0, 1}, [](const KernelSpec& spec) {
                 return dispatchAll(spec, spec.outputs[0].type, [&]<typename T>() { return fill<T>(spec); });
               }));
  registry.add("iota", withArity({0, 1, 1}, [](const KernelSpec& spec) {
                 return dispatchNumeric(spec, spec.outputs[0].type, [&]<typename T>() { return iota<T>(spec); });
               }));
  registry.add("mask_pad", [](const KernelSpec& spec) -> KernelOr {
    WEFT_RETURN_IF_ERROR(checkArity(spec, {1, 1, spec.scalars}));
    return dispatchAll(spec, spec.inputs[0].type, [&]<typename T>() { return maskPad<T>(spec); });
  });
  registry.add("accumulate", withArity({2, 1, 1}, accumulate));
}

}  // namespace weft
