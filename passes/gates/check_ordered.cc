// Each function is called as often as its kind asks for, each channel has room.

#include "passes/gates/check_ordered.h"

#include <set>

#include "ir/dist/dist.h"
#include "ir/program/program.h"
#include "passes/gates/checks.h"

namespace weft {

using namespace mlir;  // NOLINT

namespace {

using ir::dist::CallAttr;

class CallsChecker {
 public:
  CallsChecker(ModuleOp submesh, int64_t microBatches) : submesh_(submesh), microBatches_(microBatches) {}

  LogicalResult run() {
    auto actions = submesh_->getAttrOfType<ir::dist::ActionsAttr>(kActionsAttr);
    if (!actions) {
      return submesh_.emitError() << "the submesh has no " << kActionsAttr << "; --weft-write-schedule writes it";
    }
    if (failed(calls(actions.getInit(), true)) || failed(calls(actions.getStep(), false))) {
      return failure();
    }
    for (func::FuncOp function : functionsInOrder(submesh_)) {
      if (failed(count(function)) || failed(capacities<ir::dist::SendOp>(function)) ||
          failed(capacities<ir::dist::ReceiveOp>(function))) {
        return failure();
      }
    }
    return success();
  }

 private:
  LogicalResult calls(ArrayRef<CallAttr> calls, bool init) {
    for (CallAttr call : calls) {
      const StringRef name = call.getFunction().getValue();
      const auto error = [&] {
        return submesh_.emitError() << kActionsAttr << " calls @" << name << " for micro-batch " << call.getMicroBatch()
                                    << (init ? " in init" : " in a step");
      };
      auto function = submesh_.lookupSymbol<func::FuncOp>(name);
      if (!function) {
        return error() << "; the submesh has no such function";
      }
      if ((kindOf(function) == "init") != init) {
        return error() << ", where it does not run";
      }
      const int64_t count = isPerMicroBatch(kindOf(function)) ? microBatches_ : 1;
      if (call.getMicroBatch() < 0 || call.getMicroBatch() >= count) {
        return error() << "; it runs for " << count << " micro-batches";
      }
      if (!called_[name].insert(call.getMicroBatch()).second) {
        return error() << " twice";
      }
    }
    return success();
  }

  LogicalResult count(func::FuncOp function) {
    const int64_t wanted = isPerMicroBatch(kindOf(function)) ? microBatches_ : 1;
    const auto called = static_cast<int64_t>(called_[function.getName()].size());
    if (called != wanted) {
      return function.emitError() << kActionsAttr << " calls @" << function.getName() << " for " << called
                                  << " micro-batches; it runs for " << wanted;
    }
    return success();
  }

  template <typename Transfer>
  LogicalResult capacities(func::FuncOp function) {
    for (auto transfer : function.getOps<Transfer>()) {
      const int64_t capacity = transfer.getCapacity().value_or(0);
      if (capacity < 1 || capacity > microBatches_) {
        return transfer.emitError() << "the channel has room for " << capacity << " messages; it should be 1 to "
                                    << microBatches_ << ", the number of micro-batches";
      }
    }
    return success();
  }

  ModuleOp submesh_;
  const int64_t microBatches_;
  llvm::StringMap<std::set<int64_t>> called_;  // the micro-batches that each function is called for
};

}  // namespace

LogicalResult checkCalls(ModuleOp module) {
  for (ModuleOp submesh : submeshesOf(module)) {
    FailureOr<Mesh> mesh = meshOf(submesh);
    if (failed(mesh) || failed(CallsChecker(submesh, mesh->microBatches()).run())) {
      return failure();
    }
  }
  return success();
}

LogicalResult checkOrdered(ModuleOp module) {
  return success(succeeded(checkLocal(module)) && succeeded(checkCalls(module)));
}

}  // namespace weft
