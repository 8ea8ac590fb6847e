// Do the collectives of all ranks meet?
#pragma once

#include "absl/status/status.h"
#include "runtime/plan/plan.pb.h"

namespace weft {

// Plays the schedules of all ranks, collectives only: each group's members must come to the same kind of collective
// with the same sizes, and no rank may wait for ever. The plan's indices must be in range. Errors name the ranks and
// the instructions they stand at.
absl::Status matchCollectives(const plan::Plan& plan);

}  // namespace weft
