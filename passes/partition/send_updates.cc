// What replaces an argument goes to the submeshes of other meshes that hold the argument too: one more result of @step
// for each, behind a dist.transfer. The argument's transfers say who holds it.

#include "ir/dist/dist.h"
#include "ir/program/program.h"
#include "mlir/IR/Builders.h"
#include "passes/partition/readers.h"
#include "passes/partition/record.h"

namespace weft {

#define GEN_PASS_DEF_SENDUPDATESPASS
#include "passes/generated/passes.h.inc"

namespace {

using namespace mlir;  // NOLINT

// The transfers of arguments, in the order in which they are read.
SmallVector<ir::dist::TransferOp> transfersOfArguments(func::FuncOp step) {
  SmallVector<ir::dist::TransferOp> transfers;
  for (auto transfer : step.getOps<ir::dist::TransferOp>()) {
    if (isa<BlockArgument>(transfer.getX())) {
      transfers.push_back(transfer);
    }
  }
  return transfers;
}

// Result `index` of @step once more, as `holder` has the argument it replaces.
void sendTo(ir::dist::TransferOp holder, func::FuncOp step, unsigned index) {
  Operation* terminator = step.getBody().front().getTerminator();
  OpBuilder builder(terminator);
  auto sent = builder.create<ir::dist::TransferOp>(terminator->getLoc(), holder.getY().getType(), returned(step, index),
                                                   "the new value of " + resultText(step, index, kNameAttr));
  setPlace(sent, {RunsIn::kUpdate, stageOf(holder)});
  NamedAttrList attrs(step.getResultAttrDict(index));
  attrs.set(kStageAttr, builder.getI64IntegerAttr(stageOf(holder)));
  addResult(step, sent.getY(), attrs);
}

class SendUpdatesPass : public impl::SendUpdatesPassBase<SendUpdatesPass> {
 public:
  void runOnOperation() override {
    FailureOr<func::FuncOp> found = stepOf(getOperation());
    if (failed(found)) {
      return signalPassFailure();
    }
    func::FuncOp step = *found;
    const SmallVector<ir::dist::TransferOp> holders = transfersOfArguments(step);
    const unsigned count = step.getNumResults();
    for (unsigned i = 0; i < count; ++i) {
      auto replaced = step.getResultAttrOfType<IntegerAttr>(i, kUpdatesAttr);
      for (ir::dist::TransferOp holder : holders) {
        if (replaced && holder.getX() == step.getArgument(replaced.getInt())) {
          sendTo(holder, step, i);
        }
      }
    }
  }
};

}  // namespace
}  // namespace weft
