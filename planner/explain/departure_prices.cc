#include "planner/explain/departure_prices.h"

#include "planner/explain/plan_summary.h"

namespace weft {

DeparturePrices departurePricesOf(const DepartedPlan& departed, int64_t within) {
  DeparturePrices prices;
  prices.within = within;
  prices.words = static_cast<int64_t>(departed.words.size());
  prices.planned = departed.planned;
  prices.exact = departed.exact;
  if (departed.own) {
    prices.own = planText(departed.own->decisions);
    prices.ownSeconds = inSeconds(departed.own->time);
  } else {
    prices.refusal = std::string(departed.refusal.message());
  }
  for (const size_t word : departed.from) {
    prices.from.push_back(departed.words[word]);
  }
  for (const auto& [word, attempt] : departed.alone) {
    // Where the user's own words have no plan there is nothing to be beside.
    const double beside = departed.own ? prices.ownSeconds : inSeconds(attempt.time);
    prices.alone.push_back(pricedBeside(beside, departed.words[word], attempt));
  }
  return prices;
}

}  // namespace weft
