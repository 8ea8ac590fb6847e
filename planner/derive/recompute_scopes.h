// Which forward operators the user wants recomputed in the backward pass: scopes and patterns.
#pragma once

#include <string>
#include <vector>

#include "planner/graph/graph_view.h"

namespace weft {

// What patterns of the option "recompute" (planner/request.h) can name: kinds and names of forward operators.
std::vector<std::string> recomputableNames(const GraphView& view);

// Is the result of a forward operator recomputed in backward? In a recompute scope it is, unless something outside of
// the scope reads it in the forward pass (the border of the scope is kept); so it is where a pattern matches the
// operator's name or kind. Never: operators outside of the forward pass, and what another stage reads.
bool isRecomputed(const GraphView& view, const std::vector<int64_t>& stages, int op,
                  const std::vector<std::string>& patterns);

}  // namespace weft
