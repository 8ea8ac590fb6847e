// The order in which each pipeline stage runs its micro-batches.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace weft {

struct StageAction {
  bool backward = false;
  int64_t piece = 0;
};

struct StageSchedule {
  std::vector<StageAction> actions;
  int64_t inFlight = 1;  // most pieces between their forward and the end of their backward
};

// One schedule per stage. Kinds: "gpipe" (all forwards, then all backwards), "1f1b" (as soon as a piece's backward can
// run it does; stage s holds at most stages - s pieces). Without `backward` only forwards. Errors: another kind.
absl::StatusOr<std::vector<StageSchedule>> scheduleStages(const std::string& kind, int64_t stages, int64_t pieces,
                                                          bool backward);

}  // namespace weft
