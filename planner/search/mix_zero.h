// Levels of ZeRO for classes of weights: of a plan that was found with one level for all, the levels of some classes
// are changed where that makes it shorter.
//
// A class is what is alike in all layers, "h*.fc.weight". Where a plan of level 2 or 3 fits, classes are lowered to
// level 1: their gradients are reduced once instead of in each micro-batch, and they are not gathered in each call.
// Where a plan of level 0 or 1 is short of memory, that is where something is recomputed or it does not fit, classes
// are raised to level 2. Those are asked about that may gain most, one after the other, each on top of those that made
// the plan shorter: what that does to gathers, transients and recomputation the prediction says. It is asked a few
// times, and only where there is something to gain.
#pragma once

#include "absl/status/statusor.h"
#include "planner/machine/machine.h"
#include "planner/search/choose_open.h"

namespace weft {

// `plan`: found for `request`, which leaves the level open and may have levels of its own for some parameters: these
// are kept. Its record notes what was changed. Error: a mesh or a machine that cannot be read.
absl::StatusOr<ClosedRequest> mixZero(ClosedRequest plan, const CompileOptions& request, const Predict& predict);

}  // namespace weft
