// When each storage of a step program is in use, and whether two that lie on the same bytes are so at once.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "planner/step/storage.h"

namespace weft {

struct StepMemory;

struct StorageLife {
  // First and last step in use, as planner/step/step_facts.h counts them; -1 where nothing makes or reads what it
  // holds. They matter for TRANSIENT and ACTIVATION: all else is kept for the whole step.
  int64_t first = -1;
  int64_t last = -1;
  std::vector<int> users = {};  // indices of the functions that touch it, ascending
};

// One for each storage. Reads of the assignment where values lie, and the copies.
std::vector<StorageLife> livesOf(const StepProgram& program, const StorageAssignment& assignment);

// Two storages of one region that share a byte while both are in use; nothing if there are none.
std::optional<std::pair<int, int>> overlappingStorages(const StepProgram& program, const StorageAssignment& assignment,
                                                       const StepMemory& memory);

}  // namespace weft
