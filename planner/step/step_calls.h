// The calls of a step: which functions a submesh runs, for which micro-batches, in which order; and how many messages
// may be under way between two submeshes while they do.
#pragma once

#include <vector>

#include "planner/memory/rings.h"
#include "planner/schedule/table.h"
#include "planner/step/step_program.h"

namespace weft {

// What runs once, before the first step.
std::vector<FunctionCall> initCallsOf(const std::vector<StepFunction>& functions);

// The functions that an action runs, in their order. A whole backward is one function or both halves of it, as the
// functions of a program have it.
std::vector<plan::FunctionKind> functionKindsOf(schedule::ActionKind action);

// The calls of one step: prologue, the micro-batches in the submesh's order, then the update.
std::vector<FunctionCall> callsOf(const std::vector<StepFunction>& functions,
                                  const std::vector<schedule::Action>& order);

// The two ends of a channel, in a program whose stage s lies on submesh submeshes[s] and has at most inFlight[s]
// micro-batches between its forward and the gradient of its input (inFlightOf() of planner/stage_table.h).
struct ChannelEnds {
  const std::vector<int64_t>& submeshes;
  const std::vector<int64_t>& inFlight;
  int64_t from = 0;
  int64_t to = 0;
};

// How many messages may be under way in a channel whose ends stand in functions of this kind.
int64_t channelCapacity(plan::FunctionKind kind, const ChannelEnds& ends);

}  // namespace weft
