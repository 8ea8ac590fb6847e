// What the compiler and the runtime both know of a kernel call: its name, the shapes and types it runs on, its
// attributes.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
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

// Scratch of one matrix product; the kernels choose an implementation that keeps to it.
inline constexpr int64_t kGemmScratchLimit = int64_t{1} << 20;

}  // namespace weft
