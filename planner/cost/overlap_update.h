// The update of a submesh beside the last call of the micro-batches before it.
//
// Gradients of several micro-batches are added up and reduced once, in the update, as are those of one where ZeRO does
// not ask for more. With overlap (overlap.h) such a reduction starts when the last backward pass has made its operand:
// both functions are placed as one. Only the last one of a submesh: what it waits for before, in a pipeline, is not
// used.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "planner/cost/function_time.h"
#include "planner/machine/machine.h"
#include "planner/memory/rings.h"
#include "planner/step/step_program.h"
#include "planner/step/storage.h"

namespace weft {

struct OverlappedUpdate {
  int function = -1;
  FunctionTime time;  // what it adds to the step, no more than alone; spans from its start, before it negative
  int64_t bytes = 0;  // of its results that are there while the last call runs
};

// `calls`: of one step, callsOf(); `times`: of each function by itself. Nothing where no update follows a call.
std::optional<OverlappedUpdate> overlapUpdate(const StepProgram& program, const StorageAssignment& assignment,
                                              const std::vector<FunctionCall>& calls,
                                              const std::vector<FunctionTime>& times, const Machine& machine);

}  // namespace weft
