// Folds that change no bit of any result. x + 0.0 is not among them: it turns -0.0 into 0.0.
//
// An operator that carries the user's strategy stays, whatever it computes.
#include "ir/nn/nn.h"
#include "ir/program/program.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "mlir/Transforms/Passes.h"

namespace weft {

#define GEN_PASS_DEF_SIMPLIFYPASS
#include "passes/generated/passes.h.inc"

using namespace mlir;  // NOLINT: the file is about MLIR types throughout
namespace nn = ir::nn;

namespace {

bool isFill(Value value, double number) {
  auto fill = value.getDefiningOp<nn::FillOp>();
  return fill && fill.getValue() == number;
}

// Op becomes the value that `fold` gives, if it gives one of the same type.
template <typename Op>
class Fold : public OpRewritePattern<Op> {
 public:
  using Function = Value (*)(Op);
  Fold(MLIRContext* context, Function fold) : OpRewritePattern<Op>(context), fold_(fold) {}

  LogicalResult matchAndRewrite(Op op, PatternRewriter& rewriter) const override {
    if (op->hasAttr(kStrategyAttr)) {
      return failure();
    }
    Value value = fold_(op);
    if (!value || value.getType() != op->getResult(0).getType()) {
      return failure();
    }
    rewriter.replaceOp(op, value);
    return success();
  }

 private:
  Function fold_;
};

// transpose(transpose(x)) is one transpose.
class MergeTransposes : public OpRewritePattern<nn::TransposeOp> {
 public:
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(nn::TransposeOp op, PatternRewriter& rewriter) const override {
    auto inner = op.getX().getDefiningOp<nn::TransposeOp>();
    if (!inner || op->hasAttr(kStrategyAttr) || inner->hasAttr(kStrategyAttr)) {
      return failure();
    }
    SmallVector<int64_t> permutation;
    for (int64_t dim : op.getPermutation()) {
      permutation.push_back(inner.getPermutation()[dim]);
    }
    rewriter.modifyOpInPlace(op, [&] {
      op.setPermutation(permutation);
      op.getXMutable().assign(inner.getX());
    });
    return success();
  }
};

// reshape(reshape(x)) is one reshape.
class MergeReshapes : public OpRewritePattern<nn::ReshapeOp> {
 public:
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(nn::ReshapeOp op, PatternRewriter& rewriter) const override {
    auto inner = op.getX().getDefiningOp<nn::ReshapeOp>();
    if (!inner || op->hasAttr(kStrategyAttr) || inner->hasAttr(kStrategyAttr)) {
      return failure();
    }
    rewriter.modifyOpInPlace(op, [&] { op.getXMutable().assign(inner.getX()); });
    return success();
  }
};

Value mulByOne(nn::MulOp op) {
  return isFill(op.getB(), 1.0) ? op.getA() : isFill(op.getA(), 1.0) ? op.getB() : Value();
}

Value doubleNegation(nn::NegOp op) {
  auto inner = op.getX().getDefiningOp<nn::NegOp>();
  return inner ? inner.getX() : Value();
}

bool isIdentity(ArrayRef<int64_t> permutation) {
  return llvm::equal(permutation, llvm::seq<int64_t>(permutation.size()));
}

void addFolds(RewritePatternSet& patterns) {
  MLIRContext* context = patterns.getContext();
  auto add = [&]<typename Op>(Value (*fold)(Op)) { patterns.add(std::make_unique<Fold<Op>>(context, fold)); };
  // The type check of Fold makes these identities.
  add(+[](nn::ReshapeOp op) -> Value { return op.getX(); });
  add(+[](nn::BroadcastOp op) -> Value { return op.getX(); });
  add(+[](nn::CastOp op) -> Value { return op.getX(); });
  add(+[](nn::SliceOp op) -> Value { return op.getX(); });
  add(+[](nn::PadOp op) -> Value { return op.getX(); });
  add(+[](nn::ConcatOp op) -> Value { return op.getXs().size() == 1 ? op.getXs().front() : Value(); });
  add(+[](nn::TransposeOp op) -> Value { return isIdentity(op.getPermutation()) ? op.getX() : Value(); });
  add(+[](nn::DivOp op) -> Value { return isFill(op.getB(), 1.0) ? op.getA() : Value(); });
  add(&mulByOne);
  add(&doubleNegation);
}

class SimplifyPass : public impl::SimplifyPassBase<SimplifyPass> {
 public:
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    addFolds(patterns);
    patterns.add<MergeTransposes, MergeReshapes>(&getContext());
    OpPassManager merge(ModuleOp::getOperationName());
    merge.addPass(createCSEPass());
    if (failed(applyPatternsAndFoldGreedily(getOperation(), std::move(patterns))) ||
        failed(runPipeline(merge, getOperation()))) {
      signalPassFailure();
    }
  }
};

}  // namespace
}  // namespace weft
