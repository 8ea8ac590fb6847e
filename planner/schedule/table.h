// A pipeline schedule as data.
//
// A model is cut into stages 0..S-1; each lives on one of p pipeline ranks, a rank may own several (virtual stages).
// A step runs every stage once forward and once backward for each micro-batch. A schedule is, for each rank, the
// ordered list of actions it performs:
//   F  forward of a stage for one micro-batch
//   B  its backward, whole; or, cut in two:
//   I  the gradient of the stage's input, which the previous stage waits for
//   W  the gradient of its weights, which nobody waits for
// An action is written stage, kind, micro-batch: `2F0`, `1I3`, `0W2`, `3B1`. A table file has one row per rank, actions
// separated by commas, in the order of execution. One micro-batch through two ranks, gradients cut on rank 0:
//   0F0,0I0,0W0
//   1F0,1B0
// Empty cells are idle slots of a drawing and are skipped; `(0F7;7B3)OVERLAP_F_B` is read as its two actions in turn.
// These two make tables of other frameworks readable; nothing here prints them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace weft::schedule {

enum class ActionKind : uint8_t { kForward, kInputGrad, kWeightGrad, kBackward };

// F, I, W or B.
char kindLetter(ActionKind kind);

struct Action {
  int32_t stage = 0;
  ActionKind kind = ActionKind::kForward;
  int32_t micro = 0;

  friend bool operator==(const Action&, const Action&) = default;
};

inline Action forward(int32_t stage, int32_t micro) {
  return {stage, ActionKind::kForward, micro};
}
inline Action inputGrad(int32_t stage, int32_t micro) {
  return {stage, ActionKind::kInputGrad, micro};
}
inline Action weightGrad(int32_t stage, int32_t micro) {
  return {stage, ActionKind::kWeightGrad, micro};
}
inline Action backward(int32_t stage, int32_t micro) {
  return {stage, ActionKind::kBackward, micro};
}

// True for the actions whose result the previous stage waits for.
inline bool makesInputGrad(ActionKind kind) {
  return kind == ActionKind::kInputGrad || kind == ActionKind::kBackward;
}

struct Table {
  std::vector<std::vector<Action>> orders;  // orders[rank]: what it performs, first to last
  std::vector<int32_t> stageToRank;         // one entry per stage
  // With sequenceSlices = k > 1 a micro-batch is cut along its sequence and `micro` counts slices: slice j of
  // micro-batch q is q * k + j. Slice j reads keys and values of the slices before it, its gradients those of the
  // slices after it.
  int32_t sequenceSlices = 1;

  int32_t ranks() const { return static_cast<int32_t>(orders.size()); }
  int32_t stages() const { return static_cast<int32_t>(stageToRank.size()); }
  int64_t actions() const;
  // One more than the greatest `micro`; 0 for a table without actions.
  int32_t micros() const;

  friend bool operator==(const Table&, const Table&) = default;
};

// Greater numbers of stages, ranks or micro-batches are refused when a table is read.
inline constexpr int32_t kMaxIndex = 1'000'000;

std::string printAction(const Action& action);
// Errors: what was found, what was expected, and at which column (from 1).
absl::StatusOr<Action> parseAction(const std::string& text);

// One row per rank, actions separated by commas, each row ended by a newline.
std::string printCsv(const Table& table);

// The inverse. Spaces around actions are allowed, so is \r\n; blank lines at the end are ignored. The stage -> rank map
// follows from the rows. Errors name line and column (from 1), what was found and what was expected; a stage in two
// rows, and a stage number that is missing between others, are errors too. Whether the table is a correct schedule is
// for validate().
absl::StatusOr<Table> parseCsv(const std::string& text);

}  // namespace weft::schedule
