// Does every call of a step find what it reads?
//
// Functions pass values on by name, in storages that others write too. Which of them runs first the schedule decides,
// and it may call halves of several stages in another order than the program has them. So the calls are played: each
// write leaves its value in its storage's slot, over whatever lay on the same bytes, and each read must find the value
// that it means.
//
//   a name that the host fills, or init    what was last written under it
//   an activation                          what its own micro-batch has left
//   an accumulator                         what the step has left there so far, if anything
//
// Transients are left out: nothing stands between them but their own function (overlappingStorages()).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "planner/step/step_memory.h"
#include "planner/step/storage.h"

namespace weft {

// A call that does not find it.
struct Misread {
  FunctionCall call;
  std::string what;  // "reads activation 'v0', which ...", or what a name has lost when the step is over
};

// Plays `init`, then `step`; nothing if all is found. The calls are those of the program's functions, every storage has
// its place.
std::optional<Misread> misreadOf(const StepProgram& program, const StorageAssignment& assignment,
                                 const StepMemory& memory, const std::vector<FunctionCall>& init,
                                 const std::vector<FunctionCall>& step);

}  // namespace weft
