// Makes a product and the sum over micro-batches that it is added to one kernel.
//
// Only on machines that say so (Machine::fusedAccumulation): on CPU ranks the library's product that adds is slower
// than the two kernels. Which products can be added where they are made, kernels/describe/contraction.h says, also to
// the cost model. A gradient that is reduced in each micro-batch (ZeRO-2 and 3) is no product any more when it is added
// up.

#include "ir/dist/dist.h"
#include "ir/nn/nn.h"
#include "ir/program/program.h"
#include "kernels/describe/contraction.h"
#include "mlir/IR/Builders.h"
#include "passes/logical/request_attributes.h"
#include "passes/plan/instruction_facts.h"

namespace weft {

#define GEN_PASS_DEF_FUSEACCUMULATIONSPASS
#include "passes/generated/passes.h.inc"

namespace {

using namespace mlir;  // NOLINT

// The product that `sum` adds up and that nothing else reads, if it can be added where it is made; else null.
ir::nn::ContractOp productOf(ir::dist::AccumulateOp sum) {
  auto product = sum.getX().getDefiningOp<ir::nn::ContractOp>();
  const bool isAddedAlone = product && sum.getX().hasOneUse() && sum.getReduce() == "sum";
  return isAddedAlone && accumulatingKernel(kernelSpecOf(product)) ? product : nullptr;
}

void fuse(ir::dist::AccumulateOp sum, ir::nn::ContractOp product) {
  OpBuilder builder(sum);
  auto fused = builder.create<ir::dist::ContractAccumulateOp>(product.getLoc(), sum.getY().getType(), sum.getAcc(),
                                                              product.getA(), product.getB(), product.getSpec());
  fused->setDiscardableAttrs(sum->getDiscardableAttrDictionary());
  sum.getY().replaceAllUsesWith(fused.getY());
  sum.erase();
  product.erase();
}

class FuseAccumulationsPass : public impl::FuseAccumulationsPassBase<FuseAccumulationsPass> {
 public:
  void runOnOperation() override {
    const LogicalResult done = forEachSubmesh(getOperation(), [&](ModuleOp submesh, const Machine& machine) {
      if (machine.fusedAccumulation != 0) {
        fuseIn(submesh);
      }
      return success();
    });
    if (failed(done)) {
      signalPassFailure();
    }
  }

 private:
  void fuseIn(ModuleOp submesh) {
    SmallVector<ir::dist::AccumulateOp> sums;
    submesh.walk([&](ir::dist::AccumulateOp op) { sums.push_back(op); });
    for (ir::dist::AccumulateOp sum : sums) {
      if (ir::nn::ContractOp product = productOf(sum)) {
        fuse(sum, product);
        ++numFused;
      }
    }
  }
};

}  // namespace
}  // namespace weft
