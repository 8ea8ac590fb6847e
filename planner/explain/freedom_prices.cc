#include "planner/explain/freedom_prices.h"

namespace weft {

std::vector<PricedPlan> freedomPricesOf(const GraphFor& graphs, const CompileOptions& request,
                                        const ClosedRequest& plan, SearchMemory& memory) {
  std::vector<PricedPlan> prices;
  const auto price = [&](const std::string& what, const CompileOptions& changed) {
    if (const absl::StatusOr<ClosedRequest> closed = closeRequest(graphs, changed, {}, &memory); closed.ok()) {
      prices.push_back(pricedBeside(inSeconds(plan.attempt.time), what, closed->attempt));
    }
  };
  for (const Freedom freedom : request.mode == Mode::kAuto ? allFreedoms() : std::vector<Freedom>()) {
    const bool isAskedFor = freedom != Freedom::kOffload || request.offload == Offload::kAuto;
    if (!request.may(freedom) || !isAskedFor) {
      continue;
    }
    CompileOptions changed = request;
    changed.without.insert(freedom);
    price(freedomName(freedom), changed);
  }
  if (request.mode == Mode::kAuto && request.overlap) {
    CompileOptions changed = request;
    changed.overlap = false;
    price("overlap", changed);
  }
  return prices;
}

}  // namespace weft
