// What lies in the host's memory instead of the device's, while it is not needed.
//
//   none   nothing
//   state  the optimizer's state, which is brought and taken back once in a step (planner/cost/offload_state.h)
//   auto   of a request: what makes the best plan, state or nothing
//
// It is planned and priced; ranks that run keep all in one memory.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"

namespace weft {

enum class Offload : uint8_t { kNone, kState, kAuto };

std::string offloadName(Offload offload);  // "none"
// Error: an unknown name, with the nearest.
absl::StatusOr<Offload> parseOffload(const std::string& name);

}  // namespace weft
