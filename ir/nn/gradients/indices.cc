#include "ir/nn/gradients/gradients.h"

namespace weft::ir {
namespace {

using namespace nn;  // NOLINT: the operators this file is about
using mlir::Value;

// [...] as [..., 1], to broadcast against [..., V].
Value column(Emitter& emit, Value x) {
  llvm::SmallVector<int64_t> shape(plainType(x).getShape());
  shape.push_back(1);
  return emit.reshape(x, shape);
}

// loss = lse - logits[label], so the loss alone gives (softmax - onehot) dloss; lse gives softmax dlse.
void crossEntropyGradient(SoftmaxCrossEntropyOp op, Emitter& emit, GradientContext& context) {
  Value dloss = context.resultGradients[0];
  Value dlse = context.resultGradients[1];
  Value dlogits;
  if (dloss) {
    dlogits =
        emit.make<SoftmaxCrossEntropyGradOp>(op.getLogits(), op.getLabels(), op.getLse(), dloss, op.getIgnoreIndex());
  }
  if (dlse) {
    Value softmax = emit.make<ExpOp>(emit.make<SubOp>(op.getLogits(), column(emit, op.getLse())));
    Value fromLse = emit.make<MulOp>(softmax, column(emit, dlse));
    dlogits = dlogits ? emit.make<AddOp>(dlogits, fromLse) : fromLse;
  }
  context.operandGradients[0] = dlogits;
}

// Loss and lse by operators that allow split classes: reductions over the classes, and pick.
mlir::FailureOr<llvm::SmallVector<Value>> expandCrossEntropy(mlir::Operation* operation, mlir::OpBuilder& builder,
                                                             const ExpansionContext& /*context*/) {
  auto op = llvm::cast<SoftmaxCrossEntropyOp>(operation);
  Emitter emit(builder, op.getLoc());
  Value logits = op.getLogits();
  Value labels = op.getLabels();
  llvm::SmallVector<int64_t> last = {plainType(logits).getRank() - 1};
  Value greatest = emit.make<MaxOp>(logits, last, true);
  Value sum = emit.make<SumOp>(emit.make<ExpOp>(emit.make<SubOp>(logits, greatest)), last, true);
  // Before the logarithm, which waits for the sum over split classes: the two reductions join.
  Value picked = emit.make<PickOp>(logits, labels, op.getRows(), op.getIgnoreIndex());
  Value column = emit.make<AddOp>(emit.make<LogOp>(sum), greatest);
  Value lse = emit.reshape(column, plainType(labels).getShape());
  Value loss = emit.make<SubOp>(lse, picked);
  Value ignored = emit.number(static_cast<double>(op.getIgnoreIndex()), labels);
  Value valid = emit.make<CompareOp>(labels, ignored, "ne");
  Value kept = emit.make<SelectOp>(valid, loss, emit.number(0.0, loss));
  return llvm::SmallVector<Value>{kept, lse};
}

}  // namespace

void addIndexGradients(OperatorRegistry& registry) {
  addGradient<EmbeddingOp>(registry, [](EmbeddingOp op, Emitter& emit, GradientContext& context) {
    context.operandGradients[0] =
        emit.make<EmbeddingGradOp>(plainType(op.getTable()), op.getIds(), context.resultGradients[0], op.getRows());
  });
  addGradient<SoftmaxCrossEntropyOp>(registry, crossEntropyGradient);
  addGradient<PickOp>(registry, [](PickOp op, Emitter& emit, GradientContext& context) {
    context.operandGradients[0] =
        emit.make<PickGradOp>(plainType(op.getX()), op.getLabels(), context.resultGradients[0]);
  });
  addGradient<GatherOp>(registry, [](GatherOp op, Emitter& emit, GradientContext& context) {
    context.operandGradients[0] = emit.make<ScatterAddOp>(plainType(op.getX()), op.getIndex(),
                                                          context.resultGradients[0], op.getDim(), op.getRows());
  });
  addGradient<ScatterAddOp>(registry, [](ScatterAddOp op, Emitter& emit, GradientContext& context) {
    context.operandGradients[1] =
        emit.make<GatherOp>(context.resultGradients[0], op.getIndex(), op.getDim(), op.getRows());
  });
}

void addCrossEntropyExpansion(OperatorRegistry& registry) {
  registry.addExpansion(SoftmaxCrossEntropyOp::getOperationName().str(), expandCrossEntropy);
}

}  // namespace weft::ir
