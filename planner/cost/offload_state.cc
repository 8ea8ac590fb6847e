#include "planner/cost/offload_state.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>
#include <vector>

#include "planner/machine/times.h"
#include "planner/step/storage_lives.h"
#include "runtime/base/arithmetic.h"

namespace weft {
namespace {

struct Bucket {
  int64_t bytes = 0;
  int64_t aligned = 0;
};

// State that only `update` touches.
std::vector<bool> mayLeave(const StepProgram& program, const StorageAssignment& assignment, int update) {
  const std::vector<StorageLife> lives = livesOf(program, assignment);
  std::vector<bool> may;
  for (size_t i = 0; i < assignment.storages.size(); ++i) {
    const Storage& storage = assignment.storages[i];
    may.push_back(storage.memory == plan::STATE && storage.bytes > kAlignment &&
                  lives[i].users == std::vector<int>{update});
  }
  return may;
}

// Storages that some instruction touches together, in sets.
class Sets {
 public:
  explicit Sets(size_t storages) : parent_(storages) { std::iota(parent_.begin(), parent_.end(), 0); }

  int of(int storage) const {
    while (parent_[storage] != storage) {
      storage = parent_[storage];
    }
    return storage;
  }
  // The first that was there stands for both.
  void join(int a, int b) { parent_[std::max(of(a), of(b))] = std::min(of(a), of(b)); }

 private:
  std::vector<int> parent_;
};

// In the order in which the update comes to them.
std::vector<Bucket> bucketsOf(const StepProgram& program, const StorageAssignment& assignment, int update) {
  const std::vector<bool> may = mayLeave(program, assignment, update);
  Sets sets(may.size());
  std::vector<int> order;
  for (const StepInstruction& instruction : program.functions[update].instructions) {
    int first = -1;
    for (const std::vector<int>* values : {&instruction.inputs, &instruction.outputs}) {
      for (const int value : *values) {
        const int storage = assignment.of[value];
        if (storage >= 0 && may[storage]) {
          first = first < 0 ? storage : first;
          sets.join(first, storage);
          order.push_back(storage);
        }
      }
    }
  }
  std::vector<Bucket> buckets;
  std::map<int, size_t> numberOf;  // by the set
  std::vector<bool> counted(may.size(), false);
  for (const int storage : order) {
    const auto [known, added] = numberOf.try_emplace(sets.of(storage), buckets.size());
    if (added) {
      buckets.emplace_back();
    }
    if (!counted[storage]) {
      counted[storage] = true;
      buckets[known->second].bytes += assignment.storages[storage].bytes;
      buckets[known->second].aligned += alignUp(assignment.storages[storage].bytes);
    }
  }
  return buckets;
}

}  // namespace

std::optional<OffloadedState> offloadedState(const StepProgram& program, const StorageAssignment& assignment,
                                             const Machine& machine) {
  const auto update = std::find_if(program.functions.begin(), program.functions.end(),
                                   [](const StepFunction& function) { return function.kind == plan::UPDATE; });
  if (update == program.functions.end()) {
    return std::nullopt;
  }
  OffloadedState made;
  made.update = update - program.functions.begin();
  int64_t largest = 0;
  for (const Bucket& bucket : bucketsOf(program, assignment, static_cast<int>(made.update))) {
    if (machine.hostMemory == 0 || made.hostBytes + bucket.bytes <= machine.hostMemory) {
      made.hostBytes += bucket.bytes;
      made.freedBytes += bucket.aligned;
      largest = std::max(largest, bucket.aligned);
    }
  }
  made.bufferBytes = std::min(2 * largest, made.freedBytes);
  made.time = hostCopyTime(machine, 2 * made.hostBytes);
  return made.hostBytes > 0 ? std::optional(made) : std::nullopt;
}

FunctionTime withCopies(FunctionTime update, Picoseconds copies, bool overlaps) {
  const Picoseconds free = std::max<Picoseconds>(0, update.computation - update.hidden());
  update.offloadHidden = overlaps ? std::min(copies, free) : 0;
  update.offload = copies - update.offloadHidden;
  update.total += update.offload;
  return update;
}

}  // namespace weft
