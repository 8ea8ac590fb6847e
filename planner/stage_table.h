// The schedule of the pipeline stages of a program.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "planner/decisions.h"
#include "planner/schedule/table.h"

namespace weft {

// What a program asks for.
struct ScheduleRequest {
  std::string kind = "1f1b";  // of planner/schedule/generate.h
  int64_t virtualStages = 0;  // stages of each submesh; 0: as the kind has it
  int64_t stages = 1;
  int64_t microBatches = 1;
  bool backward = true;  // without, only the placement of the stages matters
  std::string table;     // of kind "table": CSV
};

// Errors: an unknown kind; numbers that the kind does not serve, with the reason; kinds that cannot be executed.
absl::StatusOr<ScheduleDecision> decideSchedule(const ScheduleRequest& request);

// Does the decision hold together: does its kind of schedule place the stages in these submeshes, for this many
// micro-batches? Whatever a record or a module from a file says passes here before stageTable() and everything else
// relies on it.
absl::Status checkSchedule(const ScheduleDecision& schedule, int64_t microBatches, bool backward);

// The decision's table; ranks of the table are submeshes. Without `backward` each micro-batch passes all stages in
// turn.
absl::StatusOr<schedule::Table> stageTable(const ScheduleDecision& schedule, int64_t microBatches, bool backward);

// Of one stage: for how many micro-batches at once, at the most, it holds what passes from one function to another.
struct HeldMicroBatches {
  int64_t toInputs = 1;   // from forward to the gradients of inputs
  int64_t toWeights = 1;  // from forward to the gradients of weights
  int64_t between = 0;    // from the gradients of inputs to those of weights

  friend auto operator<=>(const HeldMicroBatches&, const HeldMicroBatches&) = default;
};

// Of each stage.
std::vector<HeldMicroBatches> heldIn(const schedule::Table& table);
// Per stage: the most micro-batches in flight (forward done, gradient of the input not).
std::vector<int64_t> inFlightOf(const schedule::Table& table);
// Does any stage compute gradients of inputs and of weights apart?
bool splitsBackward(const schedule::Table& table);

}  // namespace weft
