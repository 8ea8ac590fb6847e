// What other plans cost (planner/explain/prices.h, frontier.h), as `weft plan` and `weft explain` print it.
#pragma once

#include "planner/explain/prices_json.h"

namespace weft::tools {

// Nothing where nothing was asked for.
void printOtherPlans(const OtherPlans& plans);

}  // namespace weft::tools
