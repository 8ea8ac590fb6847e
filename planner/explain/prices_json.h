// Prices and the frontier as JSON, as a record keeps them for people (Decisions::prices):
//
//   {"runner_up": [{"what": "mesh", "chosen": "dp=4,tp=2", "other": "dp=8,tp=1", "step_seconds": 0.5,
//                   "costs_seconds": 0.02, "peak_bytes": 1000, "fits": true}, ...],
//    "pins": [...], "margins": [...],
//    "frontier": [{"limit": 0, "peak_bytes": 1000, "step_seconds": 0.48, "plan": "dp=4,tp=2, micro 4"}, ...]}
#pragma once

#include <string>
#include <vector>

#include "planner/explain/frontier.h"
#include "planner/explain/prices.h"

namespace weft {

// What was asked for of other plans.
struct OtherPlans {
  PlanPrices prices;
  std::vector<FrontierPoint> frontier;
};

// "" where nothing was asked for.
std::string otherPlansText(const OtherPlans& plans);

// Entries that hold something else than they should count as not there: the text may come from any file.
OtherPlans parseOtherPlans(const std::string& text);

}  // namespace weft
