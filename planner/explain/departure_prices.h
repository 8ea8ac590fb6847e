// The best plan within a few departures from the user's words (planner/search/departures.h), for people: the words that
// it departs from, and what each word costs alone.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "planner/explain/prices.h"
#include "planner/search/departures.h"

namespace weft {

struct DeparturePrices {
  std::vector<PricedPlan> alone;  // each word left open alone; costs are those beside the user's own plan
  std::vector<std::string> from;  // the words that the plan departs from
  int64_t within = 0;             // most departures
  int64_t words = 0;              // that the user said
  std::string own;                // his own plan; "" where all his words have none
  double ownSeconds = 0;
  std::string refusal;  // why they have none
  int64_t planned = 0;  // sets of words
  bool exact = true;    // all there are
};

DeparturePrices departurePricesOf(const DepartedPlan& departed, int64_t within);

}  // namespace weft
