// Machines of several kinds of devices.
#pragma once

#include "planner/machine/machine.h"

namespace weft {

// `machine` with the figures that hold of every rank of its kinds, each of which has devices_per_node and nodes.
Machine withKinds(Machine machine);

}  // namespace weft
