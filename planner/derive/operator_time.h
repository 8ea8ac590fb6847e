// What the kernels of an operator take where its factors are split, as everything that decides between splits by price
// counts it.
#pragma once

#include <cstdint>

#include "planner/derive/shardings.h"
#include "planner/machine/machine.h"
#include "planner/machine/picoseconds.h"

namespace weft {

// The bytes of a value on one rank.
int64_t localBytes(const SettledGraph& graph, int value, const Layout& layout);

// Of one rank, in all micro-batches of a step; `rule`: the operator's.
Picoseconds operatorTime(const SettledGraph& graph, const Machine& machine, int op, const Rule& rule,
                         const FactorAxes& axes);

}  // namespace weft
