// Is a table a correct schedule?
//
// Correct means: every (stage, micro-batch) has exactly one F, and either one B or one I and one W; each on the rank of
// its stage; F before I before W in the rank's order; slices of one micro-batch forward in order and backward in
// reverse; and the ranks can run to the end. For the last point every action waits for the action before it on its rank
// and for its *producer*, the neighbor stage whose result it reads: F(s) for F(s-1), I or B (s) for I or B (s+1).
// Without a cycle among these waits the ranks always finish; with one they never do.
#pragma once

#include "absl/status/status.h"
#include "planner/schedule/table.h"

namespace weft::schedule {

// What the rest of the library needs to know of a correct table. Actions are numbered rank by rank, in order: action k
// of rank r is node offsets[r] + k.
struct Resolved {
  std::vector<int32_t> offsets;    // ranks + 1 entries
  std::vector<Action> actions;     // of each node
  std::vector<int32_t> ranks;      // of each node
  std::vector<int32_t> producers;  // the node whose result each one reads from a neighbor stage, or -1
  std::vector<int32_t> order;      // all nodes, each after its producer and after the node before it on its rank
  int32_t micros = 0;
};

// Errors: the first defect of the table with ranks and positions (from 0) in the rank's order, or the cycle of waits.
absl::StatusOr<Resolved> resolve(const Table& table);

// resolve() for who only wants to know.
absl::Status validate(const Table& table);

}  // namespace weft::schedule
