// The graphs of a program with 16-bit values (planner/graph/precision.h), for every number of micro-batches.
#pragma once

#include "planner/search/block_program.h"

namespace weft {

// Of the same graph it always gives the same.
GraphFor inPrecision(GraphFor graphs, DType type);

}  // namespace weft
