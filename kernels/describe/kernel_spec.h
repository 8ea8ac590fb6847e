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

// Upper bound, in bytes, of the scratch memory a kernel needs on the CPU. The planner reserves it; the loader refuses a
// plan whose reservation is smaller than what the kernel asks for. At most kMostSize, for any shapes.
int64_t workspaceBound(const KernelSpec& spec);

// May output 0 use the memory of input `input` (same bytes, element by element, each element read before it is
// written)?
bool mayRunInPlace(const std::string& kernel, size_t input);

}  // namespace weft
