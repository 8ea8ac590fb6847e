// Makes copies of marked forward operators in the backward pass, each just before its first reader there.

#include "ir/dist/dist.h"
#include "ir/program/program.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"
#include "passes/partition/readers.h"

namespace weft {

#define GEN_PASS_DEF_RECOMPUTEPASS
#include "passes/generated/passes.h.inc"

namespace {

using namespace mlir;  // NOLINT: the file is about MLIR values throughout

class Recomputer {
 public:
  explicit Recomputer(func::FuncOp step) : step_(step) {}

  // Returns the number of copies.
  size_t run() {
    for (Operation& op : llvm::make_early_inc_range(step_.getBody().front().without_terminator())) {
      if (placeOf(&op).where == RunsIn::kBackward) {
        for (OpOperand& operand : op.getOpOperands()) {
          operand.set(again(operand.get(), &op));
        }
      }
    }
    return copies_.size();
  }

 private:
  // `value`, or its copy in the backward pass, made before `reader`.
  Value again(Value value, Operation* reader) {
    Operation* op = value.getDefiningOp();
    if (op == nullptr || stageOf(op) != stageOf(reader) || !op->hasAttr(kRecomputeAttr)) {
      return value;
    }
    Operation*& copy = copies_[{op, stageOf(reader)}];
    if (copy == nullptr) {
      OpBuilder builder(reader);
      Operation* made = builder.clone(*op);
      made->setAttr(kRunsInAttr, builder.getStringAttr("backward"));
      made->removeAttr(kRecomputeAttr);
      made->setAttr(kRecomputedAttr, builder.getUnitAttr());
      copies_[{op, stageOf(reader)}] = made;
      for (OpOperand& operand : made->getOpOperands()) {
        operand.set(again(operand.get(), made));
      }
      return made->getResult(cast<OpResult>(value).getResultNumber());
    }
    return copy->getResult(cast<OpResult>(value).getResultNumber());
  }

  func::FuncOp step_;
  llvm::DenseMap<std::pair<Operation*, int64_t>, Operation*> copies_;
};

class RecomputePass : public impl::RecomputePassBase<RecomputePass> {
 public:
  void runOnOperation() override {
    FailureOr<func::FuncOp> step = stepOf(getOperation());
    if (failed(step)) {
      return signalPassFailure();
    }
    numCopies += Recomputer(*step).run();
  }
};

}  // namespace
}  // namespace weft
