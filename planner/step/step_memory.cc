#include "planner/step/step_memory.h"

#include <algorithm>
#include <map>
#include <utility>

#include "planner/memory/pack.h"
#include "runtime/base/arithmetic.h"

namespace weft {
namespace {

class MemoryPlanner {
 public:
  MemoryPlanner(const StepProgram& program, const StorageAssignment& assignment, KnownPackings& packings)
      : program_(program), packings_(packings), storages_(assignment.storages), views_(assignment.views) {
    out_.lives = livesOf(program, assignment);
    out_.offsets.resize(storages_.size(), 0);
    out_.rings.resize(storages_.size(), 0);
  }

  StepMemory run(const std::vector<FunctionCall>& calls, int64_t effort) {
    layInOrder();
    packActivations(calls, effort);
    region(plan::TRANSIENT) = pack(storagesIn(plan::TRANSIENT), effort);
    layMailboxes();
    const int64_t workspace = alignUp(mostWorkspace(program_, views_));
    region(plan::WORKSPACE) = {.bytes = workspace, .maxLive = workspace, .lowerBound = workspace};
    finish();
    return std::move(out_);
  }

 private:
  StepRegion& region(plan::MemoryClass memory, int ring = 0) { return regions_[{memory, ring}]; }

  std::vector<size_t> storagesIn(plan::MemoryClass memory) const {
    std::vector<size_t> found;
    for (size_t i = 0; i < storages_.size(); ++i) {
      if (storages_[i].memory == memory) {
        found.push_back(i);
      }
    }
    return found;
  }

  // The offset of the next bytes of a region that is never reused within a step.
  static int64_t append(StepRegion& region, int64_t bytes) {
    const int64_t offset = region.bytes;
    region.bytes += alignUp(bytes);
    region.maxLive = region.lowerBound = region.bytes;
    return offset;
  }

  void layInOrder() {
    for (size_t i = 0; i < storages_.size(); ++i) {
      const Storage& storage = storages_[i];
      if (storage.memory != plan::TRANSIENT && storage.memory != plan::ACTIVATION) {
        out_.offsets[i] = append(region(storage.memory), storage.bytes);
      }
    }
  }

  void packActivations(const std::vector<FunctionCall>& calls, int64_t effort) {
    const std::vector<size_t> storages = storagesIn(plan::ACTIVATION);
    std::vector<RingItem> items;
    for (const size_t i : storages) {
      const std::vector<int>& users = out_.lives[i].users;
      items.push_back({lifeOf(i), users, users.empty() ? 0 : program_.functions[users.front()].stage});
    }
    region(plan::ACTIVATION) = {};  // also without activations
    const std::vector<Ring> rings = planRings(items, calls);
    for (int r = 0; r < static_cast<int>(rings.size()); ++r) {
      std::vector<size_t> members;
      for (const size_t item : rings[r].members) {
        members.push_back(storages[item]);
        out_.rings[members.back()] = r;
      }
      StepRegion& made = region(plan::ACTIVATION, r);
      made = pack(members, effort / static_cast<int64_t>(rings.size()));
      made.slots = rings[r].slots;
      made.stage = rings[r].stage;
    }
  }

  // Steps are counted through all functions: transients of two functions are never alive together.
  PackItem lifeOf(size_t storage) const {
    return {out_.lives[storage].first, out_.lives[storage].last + 1, storages_[storage].bytes};
  }

  StepRegion pack(const std::vector<size_t>& storages, int64_t effort) {
    std::vector<PackItem> items;
    for (const size_t i : storages) {
      items.push_back(lifeOf(i));
    }
    const Packing& packing = packings_.of(std::move(items), effort);
    for (size_t k = 0; k < storages.size(); ++k) {
      out_.offsets[storages[k]] = packing.offsets[k];
    }
    return {.bytes = packing.bytes, .maxLive = packing.maxLive, .lowerBound = packing.lowerBound};
  }

  void layMailboxes() {
    for (const StepFunction& function : program_.functions) {
      for (const StepInstruction& instruction : function.instructions) {
        if (instruction.kind == StepInstruction::Kind::kReceive) {
          out_.mailboxes.push_back(append(region(plan::MAILBOX), instruction.mailboxBytes));
        }
      }
    }
  }

  void finish() {
    for (const auto& [key, extent] : regions_) {
      StepRegion& made = out_.regions.emplace_back(extent);
      made.memory = key.first;
      made.ring = key.second;
    }
    out_.peakBytes = peakOf(out_.regions);
  }

  const StepProgram& program_;
  KnownPackings& packings_;
  const std::vector<Storage>& storages_;
  const std::vector<std::vector<bool>>& views_;
  std::map<std::pair<plan::MemoryClass, int>, StepRegion> regions_;  // by class and ring
  StepMemory out_;
};

}  // namespace

int64_t mostWorkspace(const StepProgram& program, const std::vector<std::vector<bool>>& views) {
  int64_t most = 0;
  for (size_t f = 0; f < program.functions.size(); ++f) {
    const std::vector<StepInstruction>& instructions = program.functions[f].instructions;
    for (size_t at = 0; at < instructions.size(); ++at) {
      most = views[f][at] ? most : std::max(most, instructions[at].workspaceBytes);
    }
  }
  return most;
}

int64_t peakOf(const std::vector<StepRegion>& regions) {
  int64_t peak = 0;
  for (const StepRegion& region : regions) {
    peak = boundedSum(peak, boundedProduct(region.bytes, region.slots));
  }
  return peak;
}

StepMemory planStepMemory(const StepProgram& program, const StorageAssignment& assignment,
                          const std::vector<FunctionCall>& calls, int64_t effort, KnownPackings* packings) {
  KnownPackings own;
  return MemoryPlanner(program, assignment, packings != nullptr ? *packings : own).run(calls, effort);
}

}  // namespace weft
