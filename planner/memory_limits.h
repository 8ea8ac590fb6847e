// How many bytes a rank may need.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ir/layout/stage_meshes.h"
#include "planner/machine/machine.h"

namespace weft {

// One number for all ranks, or the memory of the device that each lies on. 0 is no limit.
class MemoryLimits {
 public:
  MemoryLimits(int64_t bytes) { machine_.memory = bytes; }  // NOLINT: a number is a limit
  // Of a machine whose devices are of several kinds `most` counts where a device has more.
  MemoryLimits(Machine machine, int64_t most);

  bool areAlike() const { return machine_.kinds.empty(); }
  int64_t least() const { return machine_.memory; }
  std::vector<int64_t> ofSubmeshes(const StageMeshes& meshes) const;
  // Are ranks that need so many bytes, by submesh, within theirs?
  bool hold(const StageMeshes& meshes, const std::vector<int64_t>& bytes) const;
  // The mean of the first so many ranks, rounded up; 0 where some of them have no limit.
  int64_t mean(int64_t ranks) const;
  // "1000", "1000 (fast), 500 (slow)"
  std::string print() const;

 private:
  Machine machine_;  // only its memory counts, and that of its kinds
};

}  // namespace weft
