// Models without memory, solved exactly where elimination makes small tables only (eliminate.h).
#pragma once

#include <vector>

#include "planner/assign/model.h"

namespace weft::assign {

// Does it, the variable with the fewest neighbors first? Its tables are then worth a few million ticks.
bool isNarrow(const Model& model);

// A plan of least cost; kForbidden or more where there is none.
std::vector<int> solveNarrow(const Model& model, Ticks& ticks);

// The variables that edges join, directly or by others: each such part is a model of its own.
std::vector<std::vector<int>> partsOf(const Model& model);

}  // namespace weft::assign
