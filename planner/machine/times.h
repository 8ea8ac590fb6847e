// How long a machine takes for arithmetic and for messages.
#pragma once

#include <algorithm>

#include "planner/machine/machine.h"
#include "planner/machine/picoseconds.h"

namespace weft {

// One kernel on elements of that type: its launch, then its arithmetic while its bytes are moved, whichever takes
// longer (the roofline of Williams, Waterman, Patterson, "Roofline: an insightful visual performance model", 2009).
inline Picoseconds kernelTime(const Machine& machine, DType type, double flops, int64_t bytes) {
  return picosecondsOf(machine.launchLatency +
                       std::max(flops / machine.rate(type), static_cast<double>(bytes) / machine.memoryBandwidth));
}

// A kernel that only moves bytes: those it reads and those it writes.
inline Picoseconds copyTime(const Machine& machine, int64_t bytes) {
  return kernelTime(machine, DType::kF32, 0, bytes);
}

// From the end of the action that sends to the arrival of so many bytes, of a program on so many ranks: between nodes
// where the ranks do not fit on one, as the slowest of the transfers between its stages.
inline Picoseconds transferTime(const Machine& machine, int64_t ranks, int64_t bytes) {
  const bool onOneNode = machine.devicesPerNode == 0 || ranks <= machine.devicesPerNode;
  return picosecondsOf((onOneNode ? machine.linkLatency : machine.networkLatency) +
                       static_cast<double>(bytes) / (onOneNode ? machine.linkBandwidth : machine.networkShare()));
}

}  // namespace weft
