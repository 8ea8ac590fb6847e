// Do an instruction's operands share memory?
#pragma once

#include "absl/status/status.h"
#include "runtime/plan/plan.pb.h"

namespace weft {

// An output is the same memory as another operand, byte for byte, or none of it: kernels read and write in any order,
// and copy memory that must not overlap. Only a collective may write over part of an input, the one that belongs to the
// output: that it copies before. The instruction's operands must be in range.
absl::Status checkOverlap(const plan::Plan& plan, const plan::Instruction& instruction);

}  // namespace weft
