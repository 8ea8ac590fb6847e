// Which operators run again in the backward pass, in the words of a user: patterns of the option `recompute`, and
// operators that say it themselves (Tensor::recomputed).
#pragma once

#include <string>
#include <vector>

#include "planner/graph/graph_view.h"

namespace weft {

struct RecomputeWords {
  std::string option;          // "h*.gelu,h*.ln1"; "none"
  std::vector<int> operators;  // that no pattern names alone
};

// `wanted`: does each operator run again? Those that stand in the user's scopes need no word. `stages` of each.
RecomputeWords recomputeWords(const GraphView& view, const std::vector<int64_t>& stages,
                              const std::vector<bool>& wanted);

}  // namespace weft
