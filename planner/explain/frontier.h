// The frontier of time against memory: what the best plan takes when a rank may use less and less.
//
// The planner is asked again under a ladder of memory limits, each a tenth of the first plan's peak below the one
// before, until nothing fits (planner/search/plan.h). A plan that fits in a lower limit stands for all limits down to
// its own peak, so those between are not asked for.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "planner/request.h"
#include "planner/search/plan.h"

namespace weft {

struct FrontierPoint {
  int64_t limit = 0;  // that was asked for; of the first the request's own, 0: none
  int64_t peakBytes = 0;
  double seconds = 0;  // of a step
  std::string plan;    // in a few words
};

// Adds a point with less memory. Those before that take as long or longer are on no frontier and leave it, but for the
// first, the plan itself.
void addPoint(FrontierPoint point, std::vector<FrontierPoint>& points);

// By falling memory, that of `plan`, which `request` came to, first. `memory`: as of closeRequest.
std::vector<FrontierPoint> frontierOf(const GraphFor& graphs, const CompileOptions& request, const ClosedRequest& plan,
                                      SearchMemory& memory);

}  // namespace weft
