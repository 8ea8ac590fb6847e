// Parameters that are stored split further than they are read (ZeRO-3, or a layout the user gave): when are they
// gathered?
//
// Once per step, before the first micro-batch, and kept until the last has been through: one gather, and room for the
// whole for the step. Or in every forward and backward call that reads them: 2 M gathers with M micro-batches, and room
// only while they are read. (With one micro-batch, once means in the forward pass, kept for the backward pass.) Keeping
// the gathered value of each micro-batch apart would cost more of both.
#pragma once

#include <cstdint>
#include <vector>

#include "planner/decisions.h"
#include "planner/derive/shardings.h"
#include "planner/machine/machine.h"

namespace weft {

struct ParameterGather {
  unsigned argument = 0;  // of the step
  int64_t calls = 0;      // functions of one micro-batch that read it
  int64_t bytes = 0;      // of the gathered parameter on one rank
  Picoseconds time = 0;   // of one gather, on the machine
};

// The parameters that need one, in the order of the arguments. All layouts are decided.
std::vector<ParameterGather> parameterGathers(const SettledGraph& graph, const Shardings& shardings,
                                              const Machine& machine);

// Sets ArgumentDecision::gather. `budget`: bytes for parameters gathered once, those that save most time per byte
// first; negative: any number.
void chooseGathers(const std::vector<ParameterGather>& gathers, int64_t microBatches, int64_t budget,
                   std::vector<ArgumentDecision>& arguments);

}  // namespace weft
