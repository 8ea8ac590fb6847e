#include "planner/memory_limits.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "planner/submesh_machines.h"

namespace weft {

MemoryLimits::MemoryLimits(Machine machine, int64_t most) : machine_(std::move(machine)) {
  const auto limit = [&](int64_t memory) { return most == 0 ? memory : memory == 0 ? most : std::min(memory, most); };
  machine_.memory = machine_.kinds.empty() && most > 0 ? most : limit(machine_.memory);
  for (Machine& kind : machine_.kinds) {
    kind.memory = limit(kind.memory);
  }
}

bool MemoryLimits::hold(const StageMeshes& meshes, const std::vector<int64_t>& bytes) const {
  const std::vector<int64_t> limits = ofSubmeshes(meshes);
  for (size_t submesh = 0; submesh < std::min(limits.size(), bytes.size()); ++submesh) {
    if (limits[submesh] > 0 && bytes[submesh] > limits[submesh]) {
      return false;
    }
  }
  return true;
}

std::vector<int64_t> MemoryLimits::ofSubmeshes(const StageMeshes& meshes) const {
  const SubmeshMachines machines(machine_, meshes);
  const int64_t submeshes = submeshCount(meshes.submeshes);
  std::vector<int64_t> limits;
  for (int64_t submesh = 0; submesh < submeshes; ++submesh) {
    limits.push_back(machines.of(submesh).memory);
  }
  return limits;
}

int64_t MemoryLimits::mean(int64_t ranks) const {
  if (machine_.kinds.empty()) {
    return machine_.memory;
  }
  double sum = 0;
  int64_t left = ranks;
  for (const Machine& kind : machine_.kinds) {
    const bool isLast = &kind == &machine_.kinds.back();
    const int64_t here = isLast ? left : std::min(left, kind.devices());
    if (here > 0 && kind.memory == 0) {
      return 0;
    }
    sum += static_cast<double>(here) * static_cast<double>(kind.memory);
    left -= here;
  }
  return static_cast<int64_t>(std::ceil(sum / static_cast<double>(ranks)));
}

std::string MemoryLimits::print() const {
  if (machine_.kinds.empty()) {
    return absl::StrCat(machine_.memory);
  }
  const auto limit = [](std::string* out, const Machine& kind) {
    absl::StrAppend(out, kind.memory, " (", kind.name, ")");
  };
  return absl::StrJoin(machine_.kinds, ", ", limit);
}

}  // namespace weft
