// What a plan holds, counted: collectives of one step, arithmetic, memory by class.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "runtime/plan/plan.pb.h"

namespace weft {

struct CollectiveCount {
  int64_t calls = 0;          // per step and rank
  int64_t tensors = 0;        // a bucket has several
  int64_t bytesReceived = 0;  // per step and rank, counted as for a ring
  double seconds = 0;         // predicted
};

struct PlanStatistics {
  std::map<std::string, CollectiveCount> collectives;                // by kind
  std::map<std::string, std::map<std::string, int64_t>> byFunction;  // function, kind: calls per call of the function
  int64_t flops = 0;                                                 // per step and rank
  std::map<std::string, int64_t> memory;                             // bytes per rank by class, slots included
  int64_t peakBytes = 0;                                             // per rank
};

// With pipeline stages: collectives, transfers ("send") and arithmetic of one rank of every stage together, functions
// as "submesh0.forward"; memory of the stage that needs most.
PlanStatistics statisticsOf(const plan::Plan& plan);
// The plans of the submeshes that own the stages; the plan itself without stages.
std::vector<const plan::Plan*> submeshesOf(const plan::Plan& plan);
// Planned bytes of all ranks together.
int64_t plannedBytes(const plan::Plan& plan);
// "activation", ...
std::string memoryClassName(plan::MemoryClass memory);
// "all_reduce", ...
std::string collectiveKindName(plan::CollectiveKind kind);

}  // namespace weft
