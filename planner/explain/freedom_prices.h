// What each freedom of mode kAuto is worth (planner/freedoms.h): what the best plan takes longer where the planner may
// not decide that, all else open as before.
#pragma once

#include <vector>

#include "planner/explain/prices.h"

namespace weft {

// Of each freedom that `request` has, in their order, offload and, last, overlap where it asks for them; none outside
// of mode kAuto. What cannot be planned without one has no line. `plan`: what the request came to. `memory`: as of
// closeRequest.
std::vector<PricedPlan> freedomPricesOf(const GraphFor& graphs, const CompileOptions& request,
                                        const ClosedRequest& plan, SearchMemory& memory);

}  // namespace weft
