// An instruction of a plan as kernels see it.
#pragma once

#include "kernels/describe/kernel_spec.h"
#include "runtime/plan/plan.pb.h"

namespace weft {

TensorSpec specOf(const plan::Buffer& buffer);
// The plan must be valid, the instruction a kernel call.
KernelSpec specOf(const plan::Plan& plan, const plan::Instruction& instruction);

}  // namespace weft
