// How long one function of a step takes on a rank: of its kernels and copies, and of its collectives, which run one
// after another with them or, where the program has waits for them (overlap.h), beside them.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "planner/machine/machine.h"
#include "planner/machine/picoseconds.h"
#include "planner/step/step_program.h"
#include "planner/step/storage.h"

namespace weft {

// A collective that runs beside computation, in time since its function began.
struct CollectiveSpan {
  std::string label;
  Picoseconds begin = 0, end = 0;
};

struct FunctionTime {
  plan::FunctionKind kind = plan::FORWARD;
  int64_t stage = 0;
  Picoseconds total = 0;
  Picoseconds computation = 0;             // of the kernels and copies, each as if it ran alone
  Picoseconds communication = 0;           // likewise of the collectives
  std::vector<CollectiveSpan> spans = {};  // where they have waits
  Picoseconds offload = 0;                 // of the copies to and from the host that nothing runs beside
  Picoseconds offloadHidden = 0;           // of those beside kernels

  // By how much the collectives are shorter than one after another with the rest.
  Picoseconds hidden() const { return computation + communication + offload - total; }
};

// A view that cannot lie where its input does is copied, so are results that cannot lie where they are wanted.
FunctionTime functionTime(const StepProgram& program, const StorageAssignment& assignment, size_t function,
                          const Machine& machine);

}  // namespace weft
