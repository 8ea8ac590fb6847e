// In which orders the axes of a mesh may lie over the nodes of a machine.
//
// Ranks lie on nodes in order, so the groups of a mesh's last axes are inside nodes. Which axis that should be depends
// on what is sent over it: partial sums of tensor parallelism in each micro-batch, or large gradients once in a step.
#pragma once

#include <string>
#include <vector>

#include "planner/machine/machine.h"

namespace weft {

// `mesh`, as text, with its axes in every order, itself first; of orders whose groups, over any of its axes, lie on as
// many nodes, the first. On one node: itself alone.
std::vector<std::string> axisOrders(const std::string& mesh, const Machine& machine);

}  // namespace weft
