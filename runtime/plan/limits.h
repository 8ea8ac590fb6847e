// What a plan may ask for at most. Below these limits no sum or product that the validator, the runtime or a tool forms
// of a plan's numbers overflows, and none of them loops or allocates for long.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/limits.h"

namespace weft {

// Bytes of a region, elements of a tensor, and every other integer of a plan for which check_integers.cc names no range
// of its own.
inline constexpr int64_t kMaxPlanInteger = kMaxBytes;
inline constexpr int64_t kMaxDimensions = 32;
// Operations of one instruction, and of one rank in one step.
inline constexpr int64_t kMaxFlops = int64_t{1} << 60;
// What a rank executes in one step or in `init`, counted as calls, instructions and their operands: of one rank, and of
// all ranks together.
inline constexpr int64_t kMaxWorkOfRank = int64_t{1} << 25;
inline constexpr int64_t kMaxWork = int64_t{1} << 32;
// Elements that a tensor without elements would have if its empty dimensions had one: kernels may loop over the others.
inline constexpr int64_t kMaxEmptyElements = int64_t{1} << 20;
// Ranks that receive, summed over the channels: each has a queue of messages while the plan is checked.
inline constexpr int64_t kMaxReceivers = int64_t{1} << 22;
// Boxes that one rank of a channel is sent; each is compared with all others.
inline constexpr int64_t kMaxBoxesOfTarget = 1024;

// What is wrong with a plan.
template <typename... Parts>
absl::Status inconsistentPlan(const Parts&... parts) {
  return absl::DataLossError(absl::StrCat("plan is inconsistent: ", parts..., "; compile the plan again"));
}

}  // namespace weft
