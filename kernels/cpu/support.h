// What the kernels of this folder share: kernels from functions, checks that name both sides, type dispatch.
#pragma once

#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "kernels/kernel.h"
#include "runtime/base/arithmetic.h"
#include "runtime/base/status.h"

namespace weft::cpu {

using Ints = std::vector<int64_t>;
using KernelOr = absl::StatusOr<std::unique_ptr<Kernel>>;
using RunFunction = std::function<absl::Status(const KernelArguments&)>;

// A kernel from a function.
KernelOr makeKernel(RunFunction run, int64_t workspaceBytes = 0);

template <typename T>
const T* in(const KernelArguments& args, size_t i) {
  return static_cast<const T*>(args.inputs[i]);
}
template <typename T>
T* out(const KernelArguments& args, size_t i) {
  return static_cast<T*>(args.outputs[i]);
}

// "f32 [4,8]"
std::string tensorText(const TensorSpec& tensor);

// How many tensors and scalars a kernel takes; `optionalInputs` may follow the inputs.
struct Arity {
  size_t inputs = 1;
  size_t outputs = 1;
  size_t scalars = 0;
  size_t optionalInputs = 0;
};
absl::Status checkArity(const KernelSpec& spec, const Arity& arity);
// `factory` behind checkArity, so that it may index what it was promised.
KernelFactory withArity(const Arity& arity, KernelFactory factory);

// Errors: `given` has another type or shape than the kernel derives; `what` is "input 1", "output 0".
absl::Status checkTensor(const KernelSpec& spec, const std::string& what, const TensorSpec& given,
                         const TensorSpec& expected);
absl::Status checkInput(const KernelSpec& spec, size_t i, const TensorSpec& expected);
absl::Status checkOutput(const KernelSpec& spec, size_t i, const TensorSpec& expected);
// At least `dims` dimensions.
absl::Status checkDims(const KernelSpec& spec, const TensorSpec& given, size_t dims);
// An attribute of two numbers, [vertical, horizontal], each at least `least`.
absl::Status readPair(const KernelSpec& spec, const std::string& name, int64_t least, int64_t (&pair)[2]);
absl::Status unsupportedType(const KernelSpec& spec, DType type);

// The single operand or attribute forms the families share.
Ints withoutLast(const Ints& shape);

// A tensor as rows of its last dimension; a scalar is one row of one.
struct Rows {
  int64_t count = 1;
  int64_t width = 1;
};
Rows rowsOf(const Ints& shape);

// A tensor around dimension `dim`, an attribute: [outer, count, inner].
struct Along {
  int64_t outer = 1;
  int64_t count = 1;
  int64_t inner = 1;
  Ints others;  // the shape without the dimension
};
absl::StatusOr<Along> alongOf(const KernelSpec& spec, const TensorSpec& tensor);

// Strides with which a tensor of `shape` is read as `result` by numpy's broadcasting: 0 where it stretches. Error if it
// does not.
absl::StatusOr<Ints> broadcastStrides(const Ints& shape, const Ints& result);

// To bool: x is not 0. Float to integer: towards zero, the nearest end of the range outside it, 0 for NaN.
template <typename To, typename From>
To convert(From x) {
  if constexpr (std::is_same_v<To, bool>) {
    return x != From(0);
  } else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    constexpr double kLimit = sizeof(To) == 4 ? 0x1p31 : 0x1p63;
    const double wide = static_cast<double>(x);
    if (!(wide < kLimit)) {
      return wide != wide ? To(0) : std::numeric_limits<To>::max();
    }
    return wide < -kLimit ? std::numeric_limits<To>::min() : static_cast<To>(wide);
  } else {
    return static_cast<To>(x);
  }
}

// Integers wrap around; in unsigned arithmetic, so that this is defined.
template <typename T, typename F>
T wrapping(T a, T b, const F& f) {
  if constexpr (std::is_integral_v<T>) {
    using U = std::make_unsigned_t<T>;
    return static_cast<T>(f(static_cast<U>(a), static_cast<U>(b)));
  } else {
    return f(a, b);
  }
}
template <typename T>
T wrappingSum(T a, T b) {
  return wrapping(a, b, [](auto x, auto y) { return x + y; });
}

// Calls f.template operator()<T>() for float or double.
template <typename F>
KernelOr dispatchFloat(const KernelSpec& spec, DType type, F&& f) {
  switch (type) {
    case DType::kF32:
      return f.template operator()<float>();
    case DType::kF64:
      return f.template operator()<double>();
    default:
      return unsupportedType(spec, type);
  }
}

template <typename F>
KernelOr dispatchIds(const KernelSpec& spec, DType type, F&& f) {
  switch (type) {
    case DType::kI32:
      return f.template operator()<int32_t>();
    case DType::kI64:
      return f.template operator()<int64_t>();
    default:
      return unsupportedType(spec, type);
  }
}

// Floats and integers.
template <typename F>
KernelOr dispatchNumeric(const KernelSpec& spec, DType type, F&& f) {
  if (type == DType::kI32 || type == DType::kI64) {
    return dispatchIds(spec, type, std::forward<F>(f));
  }
  return dispatchFloat(spec, type, std::forward<F>(f));
}

// Floats, integers and bool (uint8_t, one byte that is 0 or 1).
template <typename F>
KernelOr dispatchAll(const KernelSpec& spec, DType type, F&& f) {
  if (type == DType::kBool) {
    return f.template operator()<uint8_t>();
  }
  return dispatchNumeric(spec, type, std::forward<F>(f));
}

// An unsigned integer as wide as the element: for kernels that only move elements.
template <typename F>
KernelOr dispatchWidth(DType type, F&& f) {
  switch (byteSize(type)) {
    case 1:
      return f.template operator()<uint8_t>();
    case 2:
      return f.template operator()<uint16_t>();
    case 4:
      return f.template operator()<uint32_t>();
    default:
      return f.template operator()<uint64_t>();
  }
}

}  // namespace weft::cpu
