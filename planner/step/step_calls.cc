#include "planner/step/step_calls.h"

#include <algorithm>

namespace weft {
namespace {

void addCalls(const std::vector<StepFunction>& functions, plan::FunctionKind kind, const schedule::Action& of,
              std::vector<FunctionCall>& calls) {
  for (size_t f = 0; f < functions.size(); ++f) {
    if (functions[f].kind == kind && (!isPerMicroBatch(kind) || functions[f].stage == of.stage)) {
      calls.push_back({static_cast<int>(f), of.micro});
    }
  }
}

// Of several stages that the submesh owns, the one with most counts.
int64_t mostInFlight(const ChannelEnds& ends, int64_t submesh) {
  int64_t most = 1;
  for (size_t stage = 0; stage < ends.submeshes.size(); ++stage) {
    most = ends.submeshes[stage] == submesh ? std::max(most, ends.inFlight[stage]) : most;
  }
  return most;
}

}  // namespace

std::vector<plan::FunctionKind> functionKindsOf(schedule::ActionKind action) {
  switch (action) {
    case schedule::ActionKind::kForward:
      return {plan::FORWARD};
    case schedule::ActionKind::kInputGrad:
      return {plan::INPUT_GRAD};
    case schedule::ActionKind::kWeightGrad:
      return {plan::WEIGHT_GRAD};
    case schedule::ActionKind::kBackward:
      break;
  }
  return {plan::BACKWARD, plan::INPUT_GRAD, plan::WEIGHT_GRAD};
}

std::vector<FunctionCall> initCallsOf(const std::vector<StepFunction>& functions) {
  std::vector<FunctionCall> calls;
  addCalls(functions, plan::INIT, {}, calls);
  return calls;
}

std::vector<FunctionCall> callsOf(const std::vector<StepFunction>& functions,
                                  const std::vector<schedule::Action>& order) {
  std::vector<FunctionCall> calls;
  addCalls(functions, plan::PROLOGUE, {}, calls);
  for (const schedule::Action& action : order) {
    for (const plan::FunctionKind kind : functionKindsOf(action.kind)) {
      addCalls(functions, kind, action, calls);
    }
  }
  addCalls(functions, plan::UPDATE, {}, calls);
  return calls;
}

// As many as the earlier stage has micro-batches in flight: it sends a micro-batch's activation after its forward, and
// awaits the micro-batch's gradient before its backward ends. What is sent once per step needs room for one.
int64_t channelCapacity(plan::FunctionKind kind, const ChannelEnds& ends) {
  return isPerMicroBatch(kind) ? std::max(mostInFlight(ends, ends.from), mostInFlight(ends, ends.to)) : 1;
}

}  // namespace weft
