#include "planner/explain/freedom_prices.h"

namespace weft {

std::vector<PricedPlan> freedomPricesOf(const GraphFor& graphs, const CompileOptions& request,
                                        const ClosedRequest& plan, SearchMemory& memory) {
  std::vector<PricedPlan> prices;
  for (const Freedom freedom : request.mode == Mode::kAuto ? allFreedoms() : std::vector<Freedom>()) {
    const bool isAskedFor = freedom != Freedom::kOffload || request.offload == Offload::kAuto;
    if (!request.may(freedom) || !isAskedFor) {
      continue;
    }
    CompileOptions changed = request;
    changed.without.insert(freedom);
    if (const absl::StatusOr<ClosedRequest> closed = closeRequest(graphs, changed, {}, &memory); closed.ok()) {
      prices.push_back(pricedBeside(inSeconds(plan.attempt.time), freedomName(freedom), closed->attempt));
    }
  }
  return prices;
}

}  // namespace weft
