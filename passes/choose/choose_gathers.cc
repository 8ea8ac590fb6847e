#include "passes/choose/choose_gathers.h"

#include <algorithm>

#include "ir/layout/machine.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/OwningOpRef.h"
#include "passes/stage/step_time.h"
#include "passes/support/decisions.h"
#include "runtime/base/status.h"
#include "runtime/plan/statistics.h"

namespace weft {

namespace {

struct Trial {
  int64_t gatherBytes = -1;
  absl::Status status;
  int64_t peakBytes = 0;
  double seconds = 0;
  bool recomputes = false;
};

void setGatherBytes(mlir::ModuleOp module, int64_t bytes) {
  mlir::Builder builder(module.getContext());
  mlir::NamedAttrList options(module->getAttrOfType<mlir::DictionaryAttr>("nn.options"));
  options.set("gather_bytes", builder.getI64IntegerAttr(bytes));
  module->setAttr("nn.options", options.getDictionary(module.getContext()));
}

// What runs once per step before the first piece, of the slowest block.
double prologueSeconds(const plan::Plan& plan) {
  double most = 0;
  for (const plan::Plan* block : blocksOf(plan)) {
    double seconds = 0;
    for (const plan::Function& function : block->functions()) {
      for (const plan::Instruction& instruction : function.instructions()) {
        seconds += function.kind() == plan::PROLOGUE ? secondsOf(*block, instruction, Machine()) : 0;
      }
    }
    most = std::max(most, seconds);
  }
  return most;
}

absl::StatusOr<Trial> tryWith(mlir::ModuleOp module, int64_t gatherBytes,
                              const std::function<absl::StatusOr<plan::Plan>(mlir::ModuleOp)>& compile) {
  mlir::OwningOpRef<mlir::ModuleOp> copy(module.clone());
  setGatherBytes(*copy, gatherBytes);
  const absl::StatusOr<plan::Plan> plan = compile(*copy);
  Trial trial{gatherBytes, plan.status()};
  if (!plan.ok()) {
    return absl::IsResourceExhausted(plan.status()) ? absl::StatusOr<Trial>(trial) : plan.status();
  }
  trial.peakBytes = plan->memory().peak_bytes();
  WEFT_ASSIGN_OR_RETURN(trial.seconds, simulatedSeconds(*plan, Machine()));
  trial.seconds += prologueSeconds(*plan);
  WEFT_ASSIGN_OR_RETURN(const Decisions record, parseDecisions(plan->decisions()));
  trial.recomputes = !record.recomputeSummary.empty();
  return trial;
}

}  // namespace

absl::Status chooseGathers(mlir::ModuleOp module, int64_t memoryLimit,
                           const std::function<absl::StatusOr<plan::Plan>(mlir::ModuleOp)>& compile) {
  WEFT_ASSIGN_OR_RETURN(Trial best, tryWith(module, -1, compile));
  const auto keepBetter = [&](const Trial& trial) {
    const bool shorter = !best.status.ok() || trial.seconds < best.seconds;
    best = trial.status.ok() && shorter ? trial : best;
  };
  if (!best.status.ok() || best.recomputes) {
    WEFT_ASSIGN_OR_RETURN(const Trial none, tryWith(module, 0, compile));
    keepBetter(none);
    if (none.status.ok() && none.peakBytes < memoryLimit) {
      WEFT_ASSIGN_OR_RETURN(const Trial some, tryWith(module, memoryLimit - none.peakBytes, compile));
      keepBetter(some);
    }
    WEFT_RETURN_IF_ERROR(best.status.ok() ? absl::OkStatus() : none.status);
  }
  setGatherBytes(module, best.gatherBytes);
  return absl::OkStatus();
}

}  // namespace weft
