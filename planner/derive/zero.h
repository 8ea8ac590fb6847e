// ZeRO as layouts: what of a parameter, its gradient and its optimizer state is split over the data-parallel axes.
//
// The layout of a parameter's optimizer state, and of its accumulated gradient, is the parameter's own, split further
// over the data axes it leaves free, on the largest dimension that divides. Level 3 stores the parameter so too. Each
// parameter has a level of its own (planner/zero_levels.h).
#pragma once

#include <map>
#include <utility>
#include <vector>

#include "planner/derive/shardings.h"
#include "planner/derive/strategies.h"
#include "planner/request.h"

namespace weft {

// The level of each argument that is a parameter, 0 of others.
std::vector<int64_t> zeroLevels(const ProgramGraph& graph, const CompileOptions& request);

// Large parameters with a level above 0 none of whose dimensions divides into `shards`, with the largest padded so that
// it does: what ZeRO would like, by argument. What it divides into of the mesh's `others` (the parts of the axes that
// are not data-parallel) it still does within each shard. Where the pad cannot spread to the parameter's readers it
// stays whole.
std::vector<std::pair<unsigned, Shape>> zeroPads(const ProgramGraph& graph, const CompileOptions& request,
                                                 int64_t shards, int64_t others, const UserLayouts& layouts);

// How a parameter's state and finished gradient lie, and with level 3 the parameter, where it is read in `layout`.
Layout stateLayoutOf(const SettledGraph& graph, int parameter, int64_t mesh, const Layout& layout);

// The operators that make new values of parameters, by the arguments that these are.
std::map<int, int> updatesOf(const GraphView& view);

// Shards optimizer state, finished gradients and (level 3) parameters. The state's layout is that on the mesh of the
// parameter's owner stage; with level 3 the parameter is split on every mesh.
void shardState(const SettledGraph& graph, Shardings& shardings);

}  // namespace weft
