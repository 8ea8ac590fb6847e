// ZeRO as layouts: what of a parameter, its gradient and its optimizer state is split over the data-parallel axes.
//
// The layout of a parameter's optimizer state, and of its accumulated gradient, is the parameter's own, split further
// over the data axes it leaves free, on the largest dimension that divides. Level 3 stores the parameter so too.
#pragma once

#include <utility>
#include <vector>

#include "planner/derive/shardings.h"
#include "planner/derive/strategies.h"

namespace weft {

// Large parameters none of whose dimensions divides into `shards`, with the largest padded so that it does: what ZeRO
// would like, by argument. What it divides into of the mesh's `others` (the parts of the axes that are not
// data-parallel) it still does within each shard. Where the pad cannot spread to the parameter's readers it stays
// whole.
std::vector<std::pair<unsigned, Shape>> zeroPads(const ProgramGraph& graph, int64_t shards, int64_t others,
                                                 const UserLayouts& layouts);

// Shards optimizer state, finished gradients and (level 3) parameters. The state's layout is that on the mesh of the
// parameter's owner stage; with level 3 the parameter is split on every mesh.
void shardState(const SettledGraph& graph, int64_t level, Shardings& shardings);

}  // namespace weft
