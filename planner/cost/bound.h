// How long a step takes at the least, whatever the plan.
#pragma once

#include "absl/status/statusor.h"
#include "planner/graph/program_graph.h"
#include "planner/machine/machine.h"
#include "planner/machine/picoseconds.h"

namespace weft {

// On so many ranks the longer of
//   - every operator of the program with its arithmetic or the bytes that it reads and writes, whichever takes longer,
//     shared evenly by all ranks: the kernels of any plan do at least this arithmetic and touch at least these bytes
//     together, and no rank is done before its share;
//   - the launches of the operators that wait for each other, on the longest path through the program: of each at least
//     one micro-batch passes through all of them in turn.
// Communication, and operators that something else may stand for, count as nothing. Error: a rule that does not fit, a
// defect.
absl::StatusOr<Picoseconds> leastTime(const ProgramGraph& graph, const Machine& machine, int64_t ranks);

}  // namespace weft
