// What would make a program fit that has no plan within the memory of a rank: one thing changed, and the best plan of
// mode kAuto then.
//   a word  each of the user's words left open alone (planner/search/user_words.h), kMostTried of them
//   more    twice, four times, eight times as many devices, the first of them that helps
//   offload the optimizer's state in the host's memory, where the machine says its host_bandwidth: of long programs,
//           of which a search takes seconds, with the rest of the plan as it is
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "planner/request.h"
#include "planner/search/plan.h"

namespace weft {

struct WayToFit {
  std::string what;  // "without micro-batches 4", "with 16 devices"
  std::string plan;  // in a few words
  int64_t peakBytes = 0;
};

// Of `request`, of which `plan` is the least that was found and does not fit. Empty: nothing of that helps; of long
// programs nothing but offload is asked about.
std::vector<WayToFit> waysToFit(const GraphFor& graphs, const CompileOptions& request, const ClosedRequest& plan);

// "no plan fits in 3000000 bytes per rank; the least that was found needs ..., and what would help. `least`: the plan
// that needs the least bytes, on the rank that needs most.
std::string doesNotFitText(const MemoryLimits& limits, const Decisions& least, int64_t bytes,
                           const std::vector<WayToFit>& ways);

}  // namespace weft
