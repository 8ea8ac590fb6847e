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

std::string memoryClassName(plan::MemoryClass memory) {
  return lower(plan::MemoryClass_Name(memory));
}

std::string collectiveKindName(plan::CollectiveKind kind) {
  return lower(plan::CollectiveKind_Name(kind));
}

namespace {

void countSend(const plan::Plan& plan, const plan::Instruction& instruction, int64_t calls, CollectiveCount& count) {
  count.calls += calls;
  count.tensors += calls;
  count.bytesReceived += calls * plan.buffers(static_cast<int>(instruction.inputs(0).buffer())).bytes();
}

PlanStatistics statisticsOfSubmesh(const plan::Plan& plan) {
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
      if (instruction.has_transfer() && instruction.transfer().send()) {
        countSend(plan, instruction, calls[f], statistics.collectives["send"]);
        ++statistics.byFunction[plan.functions(f).name()]["send"];
      }
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
    statistics.memory[memoryClassName(region.memory())] += region.bytes() * region.slots();
  }
  statistics.peakBytes = plan.memory().peak_bytes();
  return statistics;
}

void add(const PlanStatistics& submesh, const std::string& prefix, PlanStatistics& sum) {
  for (const auto& [kind, count] : submesh.collectives) {
    CollectiveCount& all = sum.collectives[kind];
    all.calls += count.calls;
    all.tensors += count.tensors;
    all.bytesReceived += count.bytesReceived;
    all.seconds += count.seconds;
  }
  for (const auto& [function, counts] : submesh.byFunction) {
    sum.byFunction[prefix + function] = counts;
  }
  sum.flops += submesh.flops;
  if (submesh.peakBytes > sum.peakBytes) {
    sum.memory = submesh.memory;
    sum.peakBytes = submesh.peakBytes;
  }
}

}  // namespace

std::vector<const plan::Plan*> submeshesOf(const plan::Plan& plan) {
  std::vector<const plan::Plan*> submeshes;
  for (const plan::Plan& submesh : plan.submeshes()) {
    submeshes.push_back(&submesh);
  }
  return submeshes.empty() ? std::vector<const plan::Plan*>{&plan} : submeshes;
}

int64_t plannedBytes(const plan::Plan& plan) {
  int64_t bytes = 0;
  for (const plan::Plan* submesh : submeshesOf(plan)) {
    bytes += submesh->memory().peak_bytes() * submesh->ranks();
  }
  return bytes;
}

PlanStatistics statisticsOf(const plan::Plan& plan) {
  PlanStatistics statistics;
  const std::vector<const plan::Plan*> submeshes = submeshesOf(plan);
  for (size_t b = 0; b < submeshes.size(); ++b) {
    add(statisticsOfSubmesh(*submeshes[b]), submeshes.size() == 1 ? "" : "submesh" + std::to_string(b) + ".",
        statistics);
  }
  return statistics;
}

}  // namespace weft
