// The summary of a plan, as `weft plan` and `weft explain` print it.
#pragma once

#include <nlohmann/json.hpp>

#include "planner/explain/plan_summary.h"

namespace weft::tools {

// How a plan was found.
struct SearchCost {
  double seconds = 0;
  int64_t ticks = 0;         // how often the model was asked
  int64_t compilations = 0;  // to see whether the winner fits
};

void printSummary(const PlanSummary& summary);
nlohmann::ordered_json jsonOf(const PlanSummary& summary);
nlohmann::ordered_json jsonOf(const SearchCost& cost);

}  // namespace weft::tools
