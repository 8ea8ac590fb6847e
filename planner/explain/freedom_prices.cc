#include "planner/explain/freedom_prices.h"

#include "planner/explain/plan_summary.h"

namespace weft {

std::vector<PricedPlan> freedomPricesOf(const GraphFor& graphs, const CompileOptions& request,
                                        const ClosedRequest& plan) {
  std::vector<PricedPlan> prices;
  for (const Freedom freedom : request.mode == Mode::kAuto ? allFreedoms() : std::vector<Freedom>()) {
    if (!request.may(freedom)) {
      continue;
    }
    CompileOptions changed = request;
    changed.without.insert(freedom);
    if (const absl::StatusOr<ClosedRequest> closed = closeRequest(graphs, changed, {}); closed.ok()) {
      const Attempt& attempt = closed->attempt;
      const double seconds = inSeconds(attempt.time);
      prices.push_back({freedomName(freedom), "", planText(attempt.decisions), seconds, attempt.peakBytes, attempt.fits,
                        seconds - inSeconds(plan.attempt.time)});
    }
  }
  return prices;
}

}  // namespace weft
