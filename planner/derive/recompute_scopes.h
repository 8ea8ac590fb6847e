// Which forward operators the user wants recomputed in the backward pass: scopes and patterns.
#pragma once

#include <string>
#include <vector>

#include "planner/graph/graph_view.h"

namespace weft {

// What patterns of the option "recompute" (planner/request.h) can name: kinds and names of forward operators.
std::vector<std::string> recomputableNames(const GraphView& view);

// Which of its results the backward pass computes again, of every operator. In a recompute scope it does, unless
// something outside of the scope reads them in the forward pass (the border of the scope is kept); so it does where the
// operator says it alone (kRecomputedAlone), and where a pattern of the option matches the operator's name or kind.
// "full" without any scope of the user's makes a scope of each segment but the last (planner/graph/segments.h): with
// everything in one, nearly all would be in memory at once when the backward pass begins, and the last segment is
// needed then anyway. What reads nothing, as a constant, runs again only where it is named. Never: operators outside of
// the forward pass, and what another stage reads.
std::vector<bool> recomputedOps(const GraphView& view, const std::vector<int64_t>& stages, const std::string& option);

}  // namespace weft
