// What the compiler must know of a kernel call without seeing the kernel: the scratch memory it needs, and which inputs
// its outputs may be written over.
#pragma once

#include <vector>

#include "kernels/describe/kernel_spec.h"

namespace weft {

// Where a kernel runs.
enum class Target { kCpu };

// Output `output` may lie in the memory of input `input`: the kernel reads each element before it writes the one of the
// same number, and reads nothing of the input after that.
struct InPlacePair {
  size_t input = 0;
  size_t output = 0;
  bool operator==(const InPlacePair& other) const { return input == other.input && output == other.output; }
};

struct KernelDescription {
  // Upper bound of the scratch memory. The compiler reserves it; the loader refuses a plan that reserves less than the
  // kernel asks for. At most kMostSize, for any shapes.
  int64_t workspaceBytes = 0;
  // Only operands of one type and as many bytes; each alone, not two at once for one output.
  std::vector<InPlacePair> inPlace;

  bool mayRunInPlace(size_t input, size_t output) const;
};

// Kernels of operations that the compiler itself puts into a program.
inline constexpr const char* kDynamicSliceKernel = "dynamic_slice";
inline constexpr const char* kDynamicUpdateSliceKernel = "dynamic_update_slice";
inline constexpr const char* kMaskPadKernel = "mask_pad";
inline constexpr const char* kAccumulateKernel = "accumulate";

// Attributes by which a kernel that is not built in describes itself; without them it needs no scratch memory and
// writes over no input. Lists of integers: the input and the output of each pair, one after another; the bytes of
// scratch memory whatever the shapes are, and those for each element of its outputs.
inline constexpr const char* kInPlaceAttribute = "in_place";
inline constexpr const char* kScratchAttribute = "scratch";

KernelDescription describe(const KernelSpec& spec, Target target);

}  // namespace weft
