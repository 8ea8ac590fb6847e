// Finds the instruction that made the first nan or infinity of a step.
//
// A nan is always an error. An infinity is passed along where it was meant: it stands among the attributes of the
// instruction (the fill of a mask), it was in an input already, or it came from another rank in a collective that does
// not add. Pads of tensors count as elements.
#pragma once

#include "absl/status/status.h"
#include "runtime/plan/plan.pb.h"

namespace weft {

class FiniteCheck {
 public:
  // Looks at the inputs of an instruction that is about to run.
  FiniteCheck(const plan::Plan& plan, const plan::Instruction& instruction, const void* const* inputs);
  // Looks at what it has written. The error names tensor, index and value.
  absl::Status after(void* const* outputs) const;

 private:
  bool mayBeInfinite() const;

  const plan::Plan& plan_;
  const plan::Instruction& instruction_;
  int nanInput_ = -1;  // the first input with a nan
  bool infiniteInput_ = false;
};

}  // namespace weft
