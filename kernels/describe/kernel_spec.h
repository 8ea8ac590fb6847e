// What the compiler and the runtime both know of a kernel call: its name, the shapes and types it runs on, its
// attributes.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "kernels/describe/attributes.h"
#include "runtime/base/arithmetic.h"
#include "runtime/base/dtype.h"

namespace weft {

struct TensorSpec {
  DType type = DType::kF32;
  std::vector<int64_t> shape;

  // At most kMostSize, whatever the shape claims.
  int64_t elements() const { return boundedElements(shape); }
  int64_t bytes() const { return boundedProduct(elements(), byteSize(type)); }
};

struct KernelSpec {
  std::string name;
  std::vector<TensorSpec> inputs;
  std::vector<TensorSpec> outputs;
  AttributeMap attributes;
  size_t scalars = 0;
};

// An error that starts with the kernel's name.
template <typename... Parts>
absl::Status invalid(const KernelSpec& spec, const Parts&... parts) {
  return absl::InvalidArgumentError(absl::StrCat("kernel ", spec.name, ": ", parts...));
}

// "[4,8]"
inline std::string shapeText(const std::vector<int64_t>& shape) {
  return absl::StrCat("[", absl::StrJoin(shape, ","), "]");
}

// Of a dense row-major tensor, in elements.
inline std::vector<int64_t> stridesOf(const std::vector<int64_t>& shape) {
  std::vector<int64_t> strides(shape.size(), 1);
  for (size_t d = shape.size(); d-- > 1;) {
    strides[d - 1] = boundedProduct(strides[d], shape[d]);
  }
  return strides;
}

// A matrix product, one over the letters of a spec, and one of those that is added to a sum over micro-batches.
inline constexpr const char* kMatmulKernel = "matmul";
inline constexpr const char* kContractKernel = "contract";
inline constexpr const char* kContractAccumulateKernel = "contract_accumulate";

}  // namespace weft
