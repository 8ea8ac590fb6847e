// Does every rank of a plan come to the end of its schedule?
#pragma once

#include "absl/status/status.h"
#include "runtime/plan/plan.pb.h"

namespace weft {

// Plays `init` and a step of all ranks of all submeshes, what they do together only: a collective waits for its group,
// which must come to the same kind of collective with the same sizes; a send waits while its channel is full, a receive
// while it is empty. No rank may wait for ever, and channels must be empty at the end: then every further step is like
// the first. What is played does not depend on who goes first, since each rank does one thing after another and waits
// for known others; so one play decides for all runs.
//
// Indices must be in range and channels fit (check_channels.h). Errors name the ranks that wait for one another, the
// operators they stand at with their source lines, and what each waits for.
absl::Status checkProgress(const plan::Plan& plan);

}  // namespace weft
