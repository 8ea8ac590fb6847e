#include "passes/logical/update_phase.h"

#include "ir/nn/nn.h"
#include "ir/program/program.h"

namespace weft {

using namespace mlir;  // NOLINT: the file is about MLIR values throughout

namespace {

bool isOfUpdate(Operation* op) {
  auto phase = op->getAttrOfType<StringAttr>(kPhaseAttr);
  return phase && phase.getValue() == "update";
}

bool isNewValue(func::FuncOp step, OpOperand& use) {
  return step.getResultAttr(use.getOperandNumber(), kUpdatesAttr) != nullptr;
}

}  // namespace

void moveIntoUpdate(func::FuncOp step) {
  Block& body = step.getBody().front();
  Operation* end = body.getTerminator();
  OpBuilder builder(end);
  const auto update = builder.getStringAttr("update");
  for (Operation& op : llvm::reverse(body.without_terminator())) {
    const bool isNeeded = llvm::any_of(op.getResults(), [](Value result) { return !result.use_empty(); });
    const bool onlyThere = llvm::all_of(op.getUses(), [&](OpOperand& use) {
      return use.getOwner() == end ? isNewValue(step, use) : isOfUpdate(use.getOwner());
    });
    if (isNeeded && onlyThere && !op.hasAttr(kPhaseAttr)) {
      op.setAttr(kPhaseAttr, update);
      op.removeAttr(kUserRecomputeAttr);  // nothing of it is kept
    }
  }
  for (OpOperand& use : end->getOpOperands()) {
    Operation* made = use.get().getDefiningOp();
    if (isNewValue(step, use) && (made == nullptr || !isOfUpdate(made))) {
      const Location place = made == nullptr ? end->getLoc() : made->getLoc();
      auto there = builder.create<ir::nn::ConstrainOp>(place, use.get(), "");
      there->setAttr(kPhaseAttr, update);
      use.set(there);
    }
  }
}

}  // namespace weft
