#include "runtime/plan/statistics.h"

#include <algorithm>
#include <cctype>

namespace weft {
namespace {

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::tolower(c); });
  return text;
}

}  // namespace

std::string collectiveKindName(plan::CollectiveKind kind) {
  return lower(plan::CollectiveKind_Name(kind));
}

PlanStatistics statisticsOf(const plan::Plan& plan) {
  PlanStatistics statistics;
  std::vector<int64_t> calls(plan.functions_size(), 0);
  if (plan.schedules_size() > 0) {
    for (const plan::Action& action : plan.schedules(0).step()) {
      ++calls[action.function()];
    }
  }
  for (int f = 0; f < plan.functions_size(); ++f) {
    for (const plan::Instruction& instruction : plan.functions(f).instructions()) {
      statistics.flops += instruction.flops() * calls[f];
      if (!instruction.has_collective()) {
        continue;
      }
      const plan::Collective& collective = instruction.collective();
      const std::string kind = collectiveKindName(collective.kind());
      CollectiveCount& count = statistics.collectives[kind];
      count.calls += calls[f];
      count.tensors += calls[f] * instruction.inputs_size();
      count.bytesReceived += calls[f] * collective.bytes_received();
      count.seconds += static_cast<double>(calls[f]) * collective.cost();
      ++statistics.byFunction[plan.functions(f).name()][kind];
    }
  }
  for (const plan::Region& region : plan.memory().regions()) {
    statistics.memory[lower(plan::MemoryClass_Name(region.memory()))] += region.bytes() * region.slots();
  }
  statistics.peakBytes = plan.memory().peak_bytes();
  return statistics;
}

}  // namespace weft
