// The rings of slots that a plan's activations lie in.
#pragma once

#include <cstdint>
#include <map>
#include <set>

#include "absl/status/status.h"
#include "runtime/plan/plan.pb.h"

namespace weft {

// Indices of the functions that touch each ring. The plan's indices must be in range.
std::map<uint32_t, std::set<uint32_t>> ringFunctions(const plan::Plan& plan);

// Two micro-batches in flight at once in a ring must not share a slot: else one overwrites what the other still reads.
// A micro-batch is in flight from the first to the last call, in a rank's step, of a function that touches the ring.
// The plan's indices must be in range. Errors name ring, slot, the two micro-batches and the function that comes too
// early.
absl::Status checkRings(const plan::Plan& plan);

}  // namespace weft
