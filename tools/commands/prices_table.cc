#include "tools/commands/prices_table.h"

#include <iostream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "tools/commands/flags.h"

namespace weft::tools {
namespace {

using Rows = std::vector<std::vector<std::string>>;

constexpr double kMebibyte = 1 << 20;

// "+1.25 ms (+10.0 %)", of a step that takes so much longer.
std::string costText(const PricedPlan& plan) {
  const double before = plan.seconds - plan.costSeconds;
  const double percent = before > 0 ? 100 * plan.costSeconds / before : 0;
  return absl::StrFormat("%+.4g ms (%+.1f %%)", 1e3 * plan.costSeconds, percent);
}

std::string mebibytes(int64_t bytes) {
  return absl::StrFormat("%.2f MiB", static_cast<double>(bytes) / kMebibyte);
}

std::string memoryText(const PricedPlan& plan) {
  return absl::StrCat(mebibytes(plan.peakBytes), plan.fits ? "" : ", more than the limit");
}

void printLines(const std::vector<PricedPlan>& plans, const std::vector<std::string>& heading, bool hasChosen) {
  if (plans.empty()) {
    return;
  }
  Rows rows = {heading};
  for (const PricedPlan& plan : plans) {
    std::vector<std::string> row = {plan.what};
    if (hasChosen) {
      row.push_back(plan.chosen);
    }
    row.insert(row.end(), {plan.other, costText(plan), memoryText(plan)});
    rows.push_back(std::move(row));
  }
  std::cout << table(rows);
}

void printFrontier(const std::vector<FrontierPoint>& points) {
  if (points.empty()) {
    return;
  }
  Rows rows = {{"memory of a rank", "step", "plan"}};
  for (const FrontierPoint& point : points) {
    rows.push_back({mebibytes(point.peakBytes), absl::StrFormat("%.6g ms", 1e3 * point.seconds), point.plan});
  }
  std::cout << table(rows);
}

void printDepartures(const DeparturePrices& prices) {
  if (prices.words == 0) {
    std::cout << "departures: you said nothing that a plan could depart from; all is searched\n";
    return;
  }
  const std::string own = prices.refusal.empty() ? absl::StrFormat("%s, %.6g ms", prices.own, 1e3 * prices.ownSeconds)
                                                 : absl::StrCat("none: ", prices.refusal);
  const std::string from = prices.from.empty() ? "nothing" : absl::StrJoin(prices.from, "; ");
  std::cout << table({{"of your " + std::to_string(prices.words) + " words", ""},
                      {"your own plan", own},
                      {absl::StrCat("within ", prices.within, " the best departs from"), from}});
  printLines(prices.alone, {"departing from it alone", "best plan", "its step", "its memory"}, false);
  std::cout << "departures: " << prices.planned << " sets of words planned"
            << (prices.exact ? ", all there are\n" : "; there are more: the best of each size, with one word more\n");
}

}  // namespace

void printOtherPlans(const OtherPlans& plans) {
  if (plans.departures) {
    printDepartures(*plans.departures);
  }
  const PlanPrices& prices = plans.prices;
  printLines(prices.runnerUps, {"decision", "chosen", "runner-up", "its step", "its memory"}, true);
  printLines(prices.pins, {"pin", "best plan without it", "its step", "its memory"}, false);
  printLines(plans.freedoms, {"without", "best plan", "its step", "its memory"}, false);
  printLines(prices.margins, {"with", "best plan", "its step", "its memory"}, false);
  if (prices.asked > 0) {
    std::cout << "prices: the planner was asked " << prices.asked << " times more\n";
  }
  printFrontier(plans.frontier);
}

}  // namespace weft::tools
