// Where sends and receives stand among the actions, and a proof that they cannot deadlock each other for ever.
//
// The result of F goes to the next stage, that of I or B to the one before; when the neighbor lives on another rank it
// is a transfer, one send and one receive. The model of execution is the strictest one: each rank has a single queue of
// actions, sends and receives and takes them in order; a send ends only together with its receive (as with NCCL, whose
// buffers may be full). A send and its receive are then one node of a graph whose other edges are the queues; the ranks
// come to the end if and only if that graph has no cycle. What is proved here holds for separate queues and for
// buffered sends too, as they only take edges away.
//
// A receive placed just before its use does deadlock for nearly every schedule: in the steady state of 1F1B two
// neighbors both want to send first. Here the sender places the receive in the peer's queue, at the time of the
// (simulated) send: all queues are then parts of one global order and no cycle is possible. prove() checks it all the
// same, and any other lists.
#pragma once

#include <string>
#include <vector>

#include "planner/schedule/simulate.h"

namespace weft::schedule {

enum class StepKind : uint8_t { kAction, kSend, kReceive };

struct Step {
  StepKind kind = StepKind::kAction;
  Action action;     // what is performed; of a transfer: the action whose result is sent
  int32_t peer = 0;  // of a transfer: the other rank

  friend bool operator==(const Step&, const Step&) = default;
};

using Queues = std::vector<std::vector<Step>>;  // one per rank

// `1F0`; `SEND 1F0 to rank 2`; `RECV 1F0 from rank 1`.
std::string printStep(const Step& step);

enum class ReceivePlacement {
  kWhenSent,   // the sender places it in the peer's queue
  kBeforeUse,  // just before the action that reads it; shown because it is what one would write first
};

// Times decide only which of the possible global orders is taken.
// Errors: those of simulate(). kBeforeUse returns its queues without a look at whether they deadlock.
absl::StatusOr<Queues> placeTransfers(const Table& table, const Times& times,
                                      ReceivePlacement placement = ReceivePlacement::kWhenSent);

// Ok if the queues perform exactly the table's actions in its orders, each transfer is sent once after its action and
// received once before its use, and the ranks come to the end.
// Errors: the first defect, or the cycle of waits.
absl::Status prove(const Table& table, const Queues& queues);

}  // namespace weft::schedule
