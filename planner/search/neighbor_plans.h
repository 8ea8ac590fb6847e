// The plans one decision away from a sketch: what a search of sketches may have missed near the best of them.
//
// Sketches are put in order by sums of what their blocks need, and some are only guessed. Where two plans are close
// that order may be wrong, and where memory is short the recomputation that fits may cost more, or less, than the sum
// says. So the best plan is held against those that differ from it in one thing: the sizes and the order of the axes,
// the number of micro-batches, the level of ZeRO.
#pragma once

#include <vector>

#include "planner/graph/program_graph.h"
#include "planner/request.h"
#include "planner/search/sketches.h"

namespace weft {

// The sketches that differ from this one in one decision that `request` leaves open, on the same stages; those first
// that are tried first. Their cuts are that of the sketch, estimates included.
std::vector<Sketch> neighborsOf(const Sketch& sketch, const ProgramGraph& graph, const CompileOptions& request);

// The same request at the other levels of ZeRO that `request` leaves open; none where no ranks share a batch.
std::vector<CompileOptions> atOtherLevels(const CompileOptions& closed, const ProgramGraph& graph,
                                          const CompileOptions& request);

}  // namespace weft
