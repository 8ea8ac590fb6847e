// The scheduled state: what the plan is written from. Every storage and mailbox has its place, what is in use at once
// does not overlap, and in the order of the calls each function finds what it reads.

#include <map>

#include "ir/dist/dist.h"
#include "ir/program/program.h"
#include "ir/program/schedule_attributes.h"
#include "passes/gates/checks.h"
#include "passes/plan/instruction_facts.h"
#include "passes/plan/step_program.h"
#include "planner/step/step_play.h"
#include "planner/step/storage_lives.h"
#include "runtime/base/arithmetic.h"

namespace weft {

using namespace mlir;  // NOLINT

namespace {

// Bytes of a region: where they are, and who should have room there.
struct Extent {
  int64_t offset = 0;
  int64_t bytes = 0;
};

class MemoryChecker {
 public:
  MemoryChecker(ModuleOp submesh, const SubmeshStep& step)
      : submesh_(submesh), step_(step), assignment_(assignmentOf(submesh, step)), memory_(memoryOf(submesh)) {}

  LogicalResult run() {
    return success(succeeded(regions()) && succeeded(storages()) && succeeded(mailboxes()) && succeeded(workspace()) &&
                   succeeded(overlaps()) && succeeded(reads()));
  }

 private:
  using Key = std::pair<plan::MemoryClass, int>;  // and ring

  static std::string nameOf(const Key& key) {
    std::string name = stringifyMemory(memoryWord(key.first)).str();
    return key.first == plan::ACTIVATION ? name + ", ring " + std::to_string(key.second) : name;
  }

  LogicalResult regions() {
    if (!submesh_->hasAttr(kRegionsAttr)) {
      return submesh_.emitError() << "the submesh has no " << kRegionsAttr << "; --weft-plan-memory writes it";
    }
    const int64_t microBatches = meshOf(submesh_)->microBatches();
    Key last = {plan::PARAMETER, -1};
    for (const StepRegion& region : memory_.regions) {
      const Key key = {region.memory, region.ring};
      const bool ring = region.memory == plan::ACTIVATION;
      const auto error = [&] { return submesh_.emitError() << "the region of " << nameOf(key) << " "; };
      if (key <= last || (!ring && region.ring > 0)) {
        return error() << "stands twice, or not in the order of memory and rings, in " << kRegionsAttr;
      }
      if (region.slots > (ring ? microBatches : 1)) {
        return error() << "has " << region.slots << " slots; it may have " << (ring ? microBatches : 1);
      }
      if (region.maxLive > region.bytes || region.lowerBound > region.bytes) {
        return error() << "has " << region.bytes << " bytes, and says that " << region.maxLive
                       << " are in use at once and that it cannot be below " << region.lowerBound;
      }
      bytes_[key] = region.bytes;
      last = key;
    }
    return success();
  }

  // Empty if the extent lies in the region, at a multiple of the alignment.
  std::string misplaced(const Key& key, const Extent& extent) const {
    const auto region = bytes_.find(key);
    if (region == bytes_.end()) {
      return "in a region that is not there, that of " + nameOf(key);
    }
    if (extent.offset < 0 || extent.offset % kAlignment != 0 || extent.offset > region->second ||
        extent.bytes > region->second - extent.offset) {
      return "with " + std::to_string(extent.bytes) + " bytes at " + std::to_string(extent.offset) +
             "; it should be inside of the " + std::to_string(region->second) + " bytes of " + nameOf(key) +
             ", at a multiple of " + std::to_string(kAlignment);
    }
    return "";
  }

  LogicalResult storages() {
    for (size_t i = 0; i < assignment_.storages.size(); ++i) {
      const Storage& storage = assignment_.storages[i];
      const std::string wrong = misplaced({storage.memory, memory_.rings[i]}, {memory_.offsets[i], storage.bytes});
      if (!wrong.empty()) {
        return submesh_.emitError() << "storage " << i << " ('" << storage.label << "') lies " << wrong;
      }
    }
    return success();
  }

  LogicalResult mailboxes() {
    std::map<int64_t, Extent> extents;  // by offset
    for (func::FuncOp function : step_.functions) {
      for (auto receive : function.getOps<ir::dist::ReceiveOp>()) {
        const Extent extent = {receive.getMailbox().value_or(-1),
                               boundedProduct(*receive.getCapacity(), tensorSpec(receive.getY()).bytes())};
        if (const std::string wrong = misplaced({plan::MAILBOX, 0}, extent); !wrong.empty()) {
          return receive.emitError() << "the mailbox lies " << wrong;
        }
        const auto [mine, added] = extents.emplace(extent.offset, extent);
        const auto next = std::next(mine);
        const bool before =
            mine != extents.begin() && std::prev(mine)->second.offset + std::prev(mine)->second.bytes > extent.offset;
        if (!added || before || (next != extents.end() && next->first < extent.offset + extent.bytes)) {
          return receive.emitError() << "the mailbox of " << extent.bytes << " bytes at " << extent.offset
                                     << " overlaps another";
        }
      }
    }
    return success();
  }

  LogicalResult workspace() {
    const int64_t wanted = mostWorkspace(step_.program, assignment_.views);
    const auto region = bytes_.find({plan::WORKSPACE, 0});
    const int64_t bytes = region == bytes_.end() ? 0 : region->second;
    if (bytes < wanted) {
      return submesh_.emitError() << "the region of workspace has " << bytes << " bytes; a kernel needs " << wanted;
    }
    return success();
  }

  LogicalResult overlaps() {
    const auto pair = overlappingStorages(step_.program, assignment_, memory_);
    if (pair) {
      const std::vector<Storage>& all = assignment_.storages;
      return submesh_.emitError() << "storages " << pair->first << " ('" << all[pair->first].label << "') and "
                                  << pair->second << " ('" << all[pair->second].label
                                  << "') share bytes while both are in use";
    }
    return success();
  }

  LogicalResult reads() {
    const SubmeshCalls calls = callsOf(submesh_);
    const std::optional<Misread> misread = misreadOf(step_.program, assignment_, memory_, calls.init, calls.step);
    if (misread) {
      func::FuncOp function = step_.functions[misread->call.function];
      return function.emitError() << "@" << function.getName() << " for micro-batch " << misread->call.microBatch << " "
                                  << misread->what;
    }
    return success();
  }

  ModuleOp submesh_;
  const SubmeshStep& step_;
  const StorageAssignment assignment_;
  const StepMemory memory_;
  std::map<Key, int64_t> bytes_;  // of each region
};

}  // namespace

LogicalResult checkScheduled(ModuleOp module) {
  if (failed(checkStored(module))) {
    return failure();
  }
  const std::vector<SubmeshStep> steps = stepsOf(module);
  for (const auto& [i, submesh] : llvm::enumerate(submeshesOf(module))) {
    if (failed(MemoryChecker(submesh, steps[i]).run())) {
      return failure();
    }
  }
  return success();
}

}  // namespace weft
