// Prices and the frontier as JSON, as a record keeps them for people (Decisions::prices):
//
//   {"runner_up": [{"what": "mesh", "chosen": "dp=4,tp=2", "other": "dp=8,tp=1", "step_seconds": 0.5,
//                   "costs_seconds": 0.02, "peak_bytes": 1000, "fits": true}, ...],
//    "pins": [...], "margins": [...], "freedoms": [...],
//    "departures": [{"what": "micro-batches 4", "other": "dp=4,tp=2, micro 8", ...}, ...],
//    "departed": {"within": 2, "words": 5, "from": ["micro-batches 4"], "own": "dp=4,tp=2, micro 4",
//                 "own_step_seconds": 0.5, "planned": 16, "exact": true},
//    "frontier": [{"limit": 0, "peak_bytes": 1000, "step_seconds": 0.48, "plan": "dp=4,tp=2, micro 4"}, ...]}
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "planner/explain/departure_prices.h"
#include "planner/explain/frontier.h"
#include "planner/explain/prices.h"

namespace weft {

// What was asked for of other plans.
struct OtherPlans {
  PlanPrices prices;
  std::vector<FrontierPoint> frontier;
  std::vector<PricedPlan> freedoms;
  std::optional<DeparturePrices> departures;
};

// "" where nothing was asked for.
std::string otherPlansText(const OtherPlans& plans);

// Entries that hold something else than they should count as not there: the text may come from any file.
OtherPlans parseOtherPlans(const std::string& text);

}  // namespace weft
