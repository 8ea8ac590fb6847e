#include "passes/logical/update_phase.h"

#include "ir/nn/nn.h"
#include "ir/program/program.h"

namespace weft {

using namespace mlir;  // NOLINT: the file is about MLIR values throughout

namespace {

constexpr char kUpdate[] = "update";

bool hasPhase(Operation* op, StringRef phase) {
  auto text = op->getAttrOfType<StringAttr>(kPhaseAttr);
  return text && text.getValue() == phase;
}

bool isNewValue(func::FuncOp step, OpOperand& use) {
  return step.getResultAttr(use.getOperandNumber(), kUpdatesAttr) != nullptr;
}

}  // namespace

bool isMadeIn(Value value, StringRef phase) {
  return value.getDefiningOp() != nullptr && hasPhase(value.getDefiningOp(), phase);
}

Value finishGradient(OpBuilder& builder, Value gradient, const std::string& parameter) {
  auto finished = builder.create<ir::nn::ConstrainOp>(gradient.getLoc(), gradient, "");
  finished->setAttr(kPhaseAttr, builder.getStringAttr(kUpdate));
  finished->setAttr(kGradientOfAttr, builder.getStringAttr(parameter));
  finished->setAttr(kNameAttr, builder.getStringAttr(gradientName(parameter)));
  return finished;
}

void moveIntoUpdate(func::FuncOp step) {
  Block& body = step.getBody().front();
  Operation* end = body.getTerminator();
  OpBuilder builder(end);
  const auto update = builder.getStringAttr(kUpdate);
  for (Operation& op : llvm::reverse(body.without_terminator())) {
    const bool isNeeded = llvm::any_of(op.getResults(), [](Value result) { return !result.use_empty(); });
    const bool onlyThere = llvm::all_of(op.getUses(), [&](OpOperand& use) {
      return use.getOwner() == end ? isNewValue(step, use) : hasPhase(use.getOwner(), kUpdate);
    });
    if (isNeeded && onlyThere && !op.hasAttr(kPhaseAttr)) {
      op.setAttr(kPhaseAttr, update);
      op.removeAttr(kUserRecomputeAttr);  // nothing of it is kept
    }
  }
  for (OpOperand& use : end->getOpOperands()) {
    Operation* made = use.get().getDefiningOp();
    if (isNewValue(step, use) && !isMadeIn(use.get(), kUpdate)) {
      const Location place = made == nullptr ? end->getLoc() : made->getLoc();
      auto there = builder.create<ir::nn::ConstrainOp>(place, use.get(), "");
      there->setAttr(kPhaseAttr, update);
      use.set(there);
    }
  }
}

}  // namespace weft
