// What repeated layers decide once.
//
// Of a stretch of alike layers those between its ends are split alike, every second one: what one of them gains by
// splits of its own it loses in reshards to its neighbors. So an operator that is alike to one of an earlier layer
// (GraphOperator::alike), on the same mesh and with the same choice, has its splits; and a value that such operators
// make, and such operators read, costs what the first one does. The question is as small as for a few layers, however
// many there are.
#pragma once

#include <cstdint>
#include <vector>

#include "planner/derive/candidates.h"
#include "planner/derive/shardings.h"

namespace weft {

struct AlikeLayers {
  std::vector<int> decidedBy;      // of each operator: the first that is split alike, itself where that is no other
  std::vector<int64_t> operators;  // of each operator: how many it decides for, itself among them; 0 if another decides
  std::vector<int64_t> values;     // of each value: how many cost as much, itself among them; 0 if one before it counts
};

// `depends`, `backward`: of each value whether it has a gradient, of each operator those of its backward pass.
AlikeLayers alikeLayers(const SettledGraph& graph, const Candidates& candidates, const Shardings& shardings,
                        const std::vector<bool>& depends, const std::vector<std::vector<int>>& backward);

}  // namespace weft
