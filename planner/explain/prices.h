// What the decisions of a plan cost: of each the next best answer, of each of the user's pins the plan without it, and
// what a little more of what is scarce would bring.
//
// Nothing here models anything: the planner is asked again with one thing changed (planner/search/plan.h).
//   runner-ups  the plan with one decision answered otherwise, all others as they are; splits, pads and, where the
//               decision is another, recomputation and gathers follow anew
//   pins        the best plan of the request without one of the user's words, in mode kAuto
//   margins     the best plan of the request with more memory, a faster network, more devices
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "planner/request.h"
#include "planner/search/plan.h"

namespace weft {

// A plan that was not taken, beside the one that was.
struct PricedPlan {
  std::string what;    // "mesh"; of a pin "micro-batches 4"; of a margin "1 GB more of memory"
  std::string chosen;  // what the plan has; "" of pins and margins
  std::string other;   // the runner-up, or what was found
  double seconds = 0;  // of its step
  int64_t peakBytes = 0;
  bool fits = true;        // in the memory limit
  double costSeconds = 0;  // its step takes so much longer; negative: shorter
};

// `other` beside a plan whose step takes `seconds`.
PricedPlan pricedBeside(double seconds, std::string what, const Attempt& other);

struct PlanPrices {
  std::vector<PricedPlan> runnerUps;
  std::vector<PricedPlan> pins;
  std::vector<PricedPlan> margins;
  int64_t asked = 0;  // plans that were asked for
};

// The prices of the plan that `request` came to. Whatever a changed request cannot be has no line. Errors: a machine
// that cannot be read. `memory`: as of closeRequest.
absl::StatusOr<PlanPrices> pricesOf(const GraphFor& graphs, const CompileOptions& request, const ClosedRequest& plan,
                                    SearchMemory& memory);

}  // namespace weft
