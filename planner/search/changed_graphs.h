// The graphs of a program that is changed, for every number of micro-batches. Of the same graph the same is always
// given: what is known of a graph is kept by its address.
#pragma once

#include <functional>

#include "planner/search/block_program.h"

namespace weft {

using GraphChange = std::function<absl::StatusOr<ProgramGraph>(const ProgramGraph&)>;
GraphFor changedGraphs(GraphFor graphs, GraphChange change);

// With 16-bit values (planner/graph/precision.h).
GraphFor inPrecision(GraphFor graphs, DType type);

}  // namespace weft
