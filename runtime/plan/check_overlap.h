// Do an instruction's operands share memory?
#pragma once

#include "absl/status/status.h"
#include "runtime/plan/plan.pb.h"

namespace weft {

// A kernel may write in place of what it reads, byte for byte, and nowhere else over it: kernels read and write in any
// order, and copy memory that must not overlap. Outputs share no memory with one another. A collective copies an input
// that its own output overlaps, but other ranks still read its other inputs. The instruction's operands must be in
// range.
absl::Status checkOverlap(const plan::Plan& plan, const plan::Instruction& instruction);

}  // namespace weft
