// What the kernels of this folder share: kernels from functions, type dispatch, checks, strided loops.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "kernels/kernel.h"
#include "runtime/base/status.h"

namespace weft::cpu {

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

inline std::string shapeText(const std::vector<int64_t>& shape) {
  return absl::StrCat("[", absl::StrJoin(shape, ","), "]");
}

// Checks that name both sides.
absl::Status checkCounts(const KernelSpec& spec, size_t inputs, size_t outputs);
absl::Status checkSameShape(const KernelSpec& spec, const TensorSpec& a, const TensorSpec& b);
absl::Status checkScalars(const KernelSpec& spec, size_t count);
absl::Status unsupportedType(const KernelSpec& spec, DType type);

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

// Floats, integers and bool (one byte).
template <typename F>
KernelOr dispatchAll(const KernelSpec& spec, DType type, F&& f) {
  switch (type) {
    case DType::kF32:
      return f.template operator()<float>();
    case DType::kF64:
      return f.template operator()<double>();
    case DType::kI32:
      return f.template operator()<int32_t>();
    case DType::kI64:
      return f.template operator()<int64_t>();
    case DType::kBool:
      return f.template operator()<uint8_t>();
    default:
      return unsupportedType(spec, type);
  }
}

// Row-major strides, in elements.
std::vector<int64_t> stridesOf(const std::vector<int64_t>& shape);
// Strides with which a tensor of `shape` is read as `result` by numpy's broadcasting: 0 where it stretches. Error if it
// does not.
absl::StatusOr<std::vector<int64_t>> broadcastStrides(const std::vector<int64_t>& shape,
                                                      const std::vector<int64_t>& result);

// A loop over a shape that follows K tensors by their strides. Dimensions that are contiguous for all of them are
// merged once, when it is made; visiting allocates nothing.
template <size_t K>
class StridedLoop {
 public:
  StridedLoop(const std::vector<int64_t>& shape, const std::vector<std::vector<int64_t>>& strides) {
    for (size_t d = 0; d < shape.size(); ++d) {
      if (shape[d] != 1) {
        push(shape[d], strides, d);
      }
    }
    if (shape_.empty()) {
      shape_.push_back(1);
      strides_.emplace_back();
      strides_.back().fill(0);
    }
  }

  // visit(offsets of the K tensors, count, inner strides of the K tensors): one row at a time.
  template <typename Visit>
  void run(const Visit& visit) const {
    std::array<int64_t, K> offsets{};
    walk(0, offsets, visit);
  }

 private:
  void push(int64_t size, const std::vector<std::vector<int64_t>>& strides, size_t d) {
    std::array<int64_t, K> mine;
    bool merges = !shape_.empty();
    for (size_t k = 0; k < K; ++k) {
      mine[k] = strides[k][d];
      merges = merges && strides_.back()[k] == mine[k] * size;
    }
    if (merges) {
      shape_.back() *= size;
      strides_.back() = mine;
    } else {
      shape_.push_back(size);
      strides_.push_back(mine);
    }
  }

  template <typename Visit>
  void walk(size_t d, std::array<int64_t, K> offsets, const Visit& visit) const {
    if (d + 1 == shape_.size()) {
      visit(offsets, shape_[d], strides_[d]);
      return;
    }
    for (int64_t i = 0; i < shape_[d]; ++i) {
      walk(d + 1, offsets, visit);
      for (size_t k = 0; k < K; ++k) {
        offsets[k] += strides_[d][k];
      }
    }
  }

  std::vector<int64_t> shape_;
  std::vector<std::array<int64_t, K>> strides_;
};

}  // namespace weft::cpu
