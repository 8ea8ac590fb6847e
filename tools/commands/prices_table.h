// The prices of a plan's decisions, as `weft plan --prices` prints them.
#pragma once

#include <nlohmann/json.hpp>

#include "planner/explain/prices.h"

namespace weft::tools {

// Nothing where nothing was asked for.
void printPrices(const PlanPrices& prices);
// "runner_up", "pins" and "margins".
nlohmann::ordered_json jsonOf(const PlanPrices& prices);

}  // namespace weft::tools
