// How many bytes parameters may take that are gathered once per step instead of in each call
// (planner/derive/gathers.h), where memory is limited.
//
// Three compilations at most. With all of them gathered once; if that fits and nothing had to be recomputed for it,
// it is taken. Otherwise with none, and then with as many bytes as that leaves below the limit. The shortest that fits
// is taken, by the simulation of the micro-batches and the prologue.
#pragma once

#include <cstdint>
#include <functional>

#include "absl/status/statusor.h"
#include "planner/machine/machine.h"
#include "runtime/plan/plan.pb.h"

namespace weft {

// Returns the bytes; negative: no bound. `compile` makes the plan for so many, or says that the limit is exceeded
// (kResourceExhausted). Errors: those of `compile`, the last one where nothing fits.
absl::StatusOr<int64_t> chooseGathers(int64_t memoryLimit, const Machine& machine,
                                      const std::function<absl::StatusOr<plan::Plan>(int64_t gatherBytes)>& compile);

}  // namespace weft
