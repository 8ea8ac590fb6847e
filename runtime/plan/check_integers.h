// Is every number of a plan in the range of its field?
#pragma once

#include "absl/status/status.h"
#include "runtime/plan/plan.pb.h"

namespace weft {

// One bound for all integers of a plan, submeshes included, so that nothing which is computed from them overflows: from
// 0 to kMaxPlanInteger (limits.h), but for the fields that check_integers.cc lists with their own ranges. Prices must
// be finite. The error names the field as a path: "functions[1].instructions[0].scalars[2].immediate".
absl::Status checkIntegers(const plan::Plan& plan);

}  // namespace weft
