// What would lower the memory that the rank of highest peak needs, by how much, and at what price: the planner asked
// again with one word of the request changed. Nothing is compiled; the figures are the model's (planner/search/).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "planner/request.h"
#include "planner/search/choose_plan.h"

namespace weft {

struct AdviceLine {
  std::string kind;        // "recompute", "schedule", "micro", "zero"
  std::string set;         // what the user would write: "--recompute h*.gelu,h*.fc"
  int64_t peakBytes = 0;   // predicted, highest over the ranks, all memory
  int64_t savedBytes = 0;  // from the peak as it is
  double timeFactor = 1;   // predicted seconds of a step over those as it is
};

struct MemoryAdvice {
  int64_t peakBytes = 0;  // as it is, predicted
  // The lines of kind "recompute" first: each holds the ones before it, the cheapest byte first, so their savings are
  // not counted twice. All others stand alone, each compared with the program as it is. Only what saves memory is
  // listed.
  std::vector<AdviceLine> lines;
};

// Nothing for a program without a backward pass. Errors: what the request asks of the program cannot be, at the user's
// lines.
absl::StatusOr<MemoryAdvice> adviseMemory(const GraphFor& graphs, const CompileOptions& request);

}  // namespace weft
