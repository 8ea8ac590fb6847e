// The optimizer's state in the host's memory: what that frees, holds and takes on one rank.
//
// State is read and written by the update alone, once in a step (ZeRO-Offload, Ren et al., "ZeRO-Offload: democratizing
// billion-scale model training", 2021; there the host also computes the update, here the device does). What the update
// of one parameter touches is a bucket, brought before it and taken back after it:
//
//   host    -> m0 v0 ->            -> m1 v1 ->
//   device              adam(w0)              adam(w1)
//   host                  -> m0 v0 ->           -> m1 v1
//
// The device has room for two buckets of the size of the largest: one that is updated, one under way. Parameters,
// gradients, and state that anything else reads stay on the device, as does what is no larger than one unit of
// alignment (the count of steps).
//
// Each byte goes both ways at Machine::hostBandwidth. With one queue that adds to the update; with overlap the copies
// run beside its kernels, as far as these are not beside collectives already, and slow them down by nothing: they are
// made by engines of their own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "planner/cost/function_time.h"
#include "planner/machine/machine.h"
#include "planner/machine/picoseconds.h"
#include "planner/step/step_program.h"
#include "planner/step/storage.h"

namespace weft {

struct OffloadedState {
  int64_t hostBytes = 0;    // of the host's memory
  int64_t freedBytes = 0;   // of the device's, which is allocated in units of alignment
  int64_t bufferBytes = 0;  // of the device's, for the buckets there
  Picoseconds time = 0;     // of the copies to the device and back
  size_t update = 0;        // the function that they belong to
};

// Of one submesh. Of a machine that says how much memory a host has for each device, the buckets in the order of the
// update that it has room for. Nothing: there is no state that may leave.
std::optional<OffloadedState> offloadedState(const StepProgram& program, const StorageAssignment& assignment,
                                             const Machine& machine);

// The update with those copies; `overlaps`: beside its kernels.
FunctionTime withCopies(FunctionTime update, Picoseconds copies, bool overlaps);

}  // namespace weft
