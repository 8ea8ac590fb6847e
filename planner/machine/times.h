// How long a machine takes for arithmetic and for messages.
#pragma once

#include <algorithm>

#include "planner/machine/machine.h"
#include "planner/machine/picoseconds.h"

namespace weft {

// One kernel: its launch, then its arithmetic while its bytes are moved, whichever takes longer (the roofline of
// Williams, Waterman, Patterson, "Roofline: an insightful visual performance model", 2009).
inline Picoseconds kernelTime(const Machine& machine, double flops, int64_t bytes) {
  return picosecondsOf(machine.launchLatency +
                       std::max(flops / machine.flops, static_cast<double>(bytes) / machine.memoryBandwidth));
}

// From the end of the action that sends to the arrival of so many bytes.
inline Picoseconds transferTime(const Machine& machine, int64_t bytes) {
  return picosecondsOf(machine.linkLatency + static_cast<double>(bytes) / machine.linkBandwidth);
}

}  // namespace weft
