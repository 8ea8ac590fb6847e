// How long a step takes at the least, whatever the plan.
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "planner/graph/program_graph.h"
#include "planner/machine/machine.h"
#include "planner/machine/picoseconds.h"

namespace weft {

// The plans that a bound is for.
struct BoundedPlans {
  int64_t ranks = 1;                        // of all submeshes together
  std::vector<int64_t> submeshRanks;        // how many ranks each submesh may have
  std::vector<int64_t> microBatches = {1};  // how many a step may have
  bool areAlike = true;                     // have all submeshes of a plan as many? Else what divides them stands there
  // Where they are, pairs of submeshes may have P/2 and 3P/2 of P ranks each, if there are no more submeshes than this.
  int64_t mostTrading = 0;
  int64_t mostVirtual = 0;           // stages of a submesh at most; 0: not known
  std::vector<int> blockOf = {};     // where mostVirtual is known: of each operator (pipeline_idle.h)
  bool isMemoryAlike = true;         // have all ranks the same limit? Else it is their mean
  int64_t memoryLimit = 0;           // bytes of one rank; 0: none
  bool hidesCollectives = false;     // may they run beside kernels?
  bool statesLeave = false;          // may the optimizer's state lie in the host's memory?
  Picoseconds known = kLongestTime;  // what one of them takes: bounds far above it are not told apart

  friend bool operator==(const BoundedPlans&, const BoundedPlans&) = default;
};

// The least over all pairs of a submesh's ranks and a number of micro-batches of the longest of
//   - the work of all operators, each in the kernels that it has at the least, products and their gradients split
//     alike, with sums that are surely added over ranks (least_work.h), shared evenly by all ranks: no rank is done
//     before its own, so the last one not before the mean. Where ranks share cores (shared_cores.h), it is shared by as
//     many as can work at a time;
//   - where submeshes are alike, the longest path through the program: each micro-batch passes through all operators on
//     it in turn; and to where an operator stands on it, longer by the work of all operators that begin no earlier: the
//     ranks have all of that still to do, whatever the schedule, so of a deep pipeline with few micro-batches the
//     backward pass comes after a whole forward pass;
//   - where they are, what the busiest submesh has to do, with its wait for the first micro-batch (pipeline_idle.h);
//   - where they are, the work with what nodes and memory ask for: sums of products and their gradients share the links
//     inside nodes, what products read of one another is received, updates are passed on, and where a limit is given
//     weights are split or move in every micro-batch (family_times.h) and heavy operators run again (kept_values.h). At
//     the price of bytes that makes this longest also with the wait of the busiest submesh, which has no more memory
//     than its ranks.
// Of submeshes that may trade ranks, work is counted on P/2 ranks, which divide all that they have, and paths with the
// shorter of an operator's times on P and on 3P/2 ranks; on P/2 none is shorter than on P. Those with P/2 ranks are at
// most as many as those with 3P/2, so they have a quarter of all ranks or less. With a price p on each second of theirs
// and T the step, W T (1 + p min(1, R / 4W)), of R ranks of which W work at a time, is at least the sum over operators
// of the least of (1 + p) times their rank time on P/2 ranks, and of that on P and 3P/2.
// Other communication and other idle time count as nothing. Error: a rule that does not fit, a defect.
absl::StatusOr<Picoseconds> leastTime(const ProgramGraph& graph, const Machine& machine, const BoundedPlans& plans);

}  // namespace weft
