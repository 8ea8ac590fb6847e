// Makes copies of marked forward operators in the backward pass, each just before its first reader there. What the
// backward pass gathers itself is gathered once for copies and others, where the first of them reads it.

#include <map>
#include <tuple>

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
      if (placeOf(&op).where != RunsIn::kBackward) {
        continue;
      }
      for (OpOperand& operand : op.getOpOperands()) {
        operand.set(again(operand.get(), &op));
      }
      if (Operation* known = firstLike(&op); known != &op) {
        op.replaceAllUsesWith(known);
        op.erase();
      }
    }
    return numCopies_;
  }

 private:
  // `value`, or its copy in the backward pass, made before `reader`.
  Value again(Value value, Operation* reader) {
    Operation* op = value.getDefiningOp();
    if (op == nullptr || stageOf(op) != stageOf(reader) || !op->hasAttr(kRecomputeAttr)) {
      return value;
    }
    const auto known = copies_.find(op);
    Operation* copy = known == copies_.end() ? copyOf(op, reader) : known->second;
    copies_[op] = copy;
    return copy->getResult(cast<OpResult>(value).getResultNumber());
  }

  Operation* copyOf(Operation* op, Operation* reader) {
    OpBuilder builder(reader);
    Operation* made = builder.clone(*op);
    made->setAttr(kRunsInAttr, builder.getStringAttr("backward"));
    made->removeAttr(kRecomputeAttr);
    made->setAttr(kRecomputedAttr, builder.getUnitAttr());
    for (OpOperand& operand : made->getOpOperands()) {
      operand.set(again(operand.get(), made));
    }
    Operation* known = firstLike(made);
    if (known != made) {
      made->erase();
      return known;
    }
    ++numCopies_;
    return made;
  }

  // The first reshard of the backward pass of a stage that makes the same of the same value; of others themselves.
  Operation* firstLike(Operation* op) {
    if (!isa<ir::dist::ReshardOp>(op)) {
      return op;
    }
    const void* type = op->getResult(0).getType().getAsOpaquePointer();
    return reshards_.try_emplace({op->getOperand(0).getAsOpaquePointer(), type, stageOf(op)}, op).first->second;
  }

  func::FuncOp step_;
  size_t numCopies_ = 0;
  llvm::DenseMap<Operation*, Operation*> copies_;  // in the stage of the operator
  std::map<std::tuple<const void*, const void*, int64_t>, Operation*> reshards_;
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
