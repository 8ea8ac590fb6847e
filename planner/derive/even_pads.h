// Pads with which splits divide that somebody asks for and that a size does not allow: a product of 63 columns over two
// ranks is whole on both, with one column more of its weight each has half.
//
// A factor of an operator goes back, from value to maker, to the dimensions of arguments whose outermost part it is.
// One of these is enough: a pad spreads (pads.h), if all operators that it reaches can run with it. Whether it pays,
// the cost of the step says (planner/search/plan.h, segment_costs.h). For a split that nobody asks for only
// parameters are padded, and a dimension grows by no more than an eighth.
#pragma once

#include <map>
#include <vector>

#include "planner/derive/candidates.h"

namespace weft {

// Arguments and the stored shapes that they would have. Nothing for what has no argument behind it, and for the batch,
// which is padded as the mesh asks for.
std::map<unsigned, Shape> evenPads(const SettledGraph& graph, const Shardings& shardings,
                                   const std::vector<RefusedSplit>& refused);

// How many of the ranks that would share an operator, or what is behind a view, compute the same of it, because it
// cannot be split so: from 1 (it is split over these axes otherwise, or computes next to nothing) to as many as the
// split has parts.
int64_t ranksAlike(const SettledGraph& graph, const Shardings& shardings, const RefusedSplit& split);

}  // namespace weft
