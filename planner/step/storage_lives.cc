#include "planner/step/storage_lives.h"

#include <algorithm>
#include <limits>
#include <map>
#include <queue>

#include "planner/step/step_facts.h"
#include "planner/step/step_memory.h"

namespace weft {
namespace {

void touch(StorageLife& life, int64_t step, int user) {
  life.first = life.first < 0 ? step : std::min(life.first, step);
  life.last = std::max(life.last, step);
  if (life.users.empty() || life.users.back() != user) {
    life.users.push_back(user);
  }
}

// What a function takes or makes.
std::vector<int> valuesOf(const StepFunction& function) {
  std::vector<int> values;
  for (const StepName& argument : function.arguments) {
    values.push_back(argument.value);
  }
  for (const StepInstruction& instruction : function.instructions) {
    values.insert(values.end(), instruction.outputs.begin(), instruction.outputs.end());
  }
  return values;
}

// A storage in its region, and the steps in which it is in use: from `first` to before `end`.
struct Placed {
  int storage = -1;
  int64_t first = 0;
  int64_t end = std::numeric_limits<int64_t>::max();
};

// Storages of one region in the order of their first steps. As long as those in use are disjoint, a new one overlaps
// any of them only if it overlaps its neighbor on one side.
class RegionSweep {
 public:
  RegionSweep(const std::vector<Storage>& storages, const std::vector<int64_t>& offsets)
      : storages_(storages), offsets_(offsets) {}

  // The storage in use that the new one overlaps; -1 if none.
  int add(const Placed& placed) {
    while (!ends_.empty() && ends_.top().first <= placed.first) {
      inUse_.erase(offsets_[ends_.top().second]);
      ends_.pop();
    }
    const int64_t from = offsets_[placed.storage];
    const auto after = inUse_.lower_bound(from);
    if (after != inUse_.end() && after->first < from + storages_[placed.storage].bytes) {
      return after->second;
    }
    if (after != inUse_.begin() && endOf(std::prev(after)->second) > from) {
      return std::prev(after)->second;
    }
    inUse_.emplace(from, placed.storage);
    ends_.emplace(placed.end, placed.storage);
    return -1;
  }

 private:
  int64_t endOf(int storage) const { return offsets_[storage] + storages_[storage].bytes; }

  using End = std::pair<int64_t, int>;  // step, storage

  const std::vector<Storage>& storages_;
  const std::vector<int64_t>& offsets_;
  std::map<int64_t, int> inUse_;  // by offset
  std::priority_queue<End, std::vector<End>, std::greater<>> ends_;
};

}  // namespace

std::vector<StorageLife> livesOf(const StepProgram& program, const StorageAssignment& assignment) {
  std::vector<StorageLife> lives(assignment.storages.size());
  const StepFacts facts = factsOf(program);
  for (int f = 0; f < static_cast<int>(program.functions.size()); ++f) {
    for (const int value : valuesOf(program.functions[f])) {
      if (const ValueFacts& fact = facts.values[value]; fact.first >= 0) {
        touch(lives[assignment.of[value]], fact.first, f);
        touch(lives[assignment.of[value]], fact.last, f);
      }
    }
    for (const Copy& copy : assignment.copies[f]) {
      touch(lives[copy.to], facts.endOf(program, f), f);
    }
  }
  return lives;
}

std::optional<std::pair<int, int>> overlappingStorages(const StepProgram& program, const StorageAssignment& assignment,
                                                       const StepMemory& memory) {
  const std::vector<StorageLife> lives = livesOf(program, assignment);
  std::map<std::pair<plan::MemoryClass, int>, std::vector<Placed>> regions;
  for (int i = 0; i < static_cast<int>(assignment.storages.size()); ++i) {
    const plan::MemoryClass memoryClass = assignment.storages[i].memory;
    const bool shares = memoryClass == plan::TRANSIENT || memoryClass == plan::ACTIVATION;
    if (assignment.storages[i].bytes > 0 && (!shares || lives[i].first >= 0)) {
      regions[{memoryClass, memory.rings[i]}].push_back(shares ? Placed{i, lives[i].first, lives[i].last + 1}
                                                               : Placed{i});
    }
  }
  for (auto& [key, placed] : regions) {
    std::stable_sort(placed.begin(), placed.end(), [](const Placed& a, const Placed& b) { return a.first < b.first; });
    RegionSweep sweep(assignment.storages, memory.offsets);
    for (const Placed& one : placed) {
      if (const int other = sweep.add(one); other >= 0) {
        return std::make_pair(other, one.storage);
      }
    }
  }
  return std::nullopt;
}

}  // namespace weft
