// Softmax, its logarithm and their gradients, by operators that allow a split last dimension: element-wise ones and
// reductions, of which the ranks exchange one element for each row.
#include "ir/nn/gradients/gradients.h"

namespace weft::ir {
namespace {

using namespace nn;  // NOLINT: the operators this file is about
using llvm::SmallVector;
using mlir::Value;
using Values = SmallVector<Value>;

template <typename Reduction>
Value overLast(Emitter& emit, Value x) {
  const SmallVector<int64_t> last = {plainType(x).getRank() - 1};
  return emit.make<Reduction>(x, last, true);
}

Value expandSoftmax(SoftmaxOp op, Emitter& emit) {
  Value shifted = emit.make<SubOp>(op.getX(), overLast<MaxOp>(emit, op.getX()));
  Value exponentials = emit.make<ExpOp>(shifted);
  return emit.make<DivOp>(exponentials, overLast<SumOp>(emit, exponentials));
}

Value expandSoftmaxGrad(SoftmaxGradOp op, Emitter& emit) {
  Value dot = overLast<SumOp>(emit, emit.make<MulOp>(op.getY(), op.getDy()));
  return emit.make<MulOp>(op.getY(), emit.make<SubOp>(op.getDy(), dot));
}

Value expandLogSoftmax(LogSoftmaxOp op, Emitter& emit) {
  Value shifted = emit.make<SubOp>(op.getX(), overLast<MaxOp>(emit, op.getX()));
  Value sum = overLast<SumOp>(emit, emit.make<ExpOp>(shifted));
  return emit.make<SubOp>(shifted, emit.make<LogOp>(sum));
}

Value expandLogSoftmaxGrad(LogSoftmaxGradOp op, Emitter& emit) {
  Value sum = overLast<SumOp>(emit, op.getDy());
  return emit.make<SubOp>(op.getDy(), emit.make<MulOp>(emit.make<ExpOp>(op.getY()), sum));
}

template <typename Op>
void add(OperatorRegistry& registry, Value (*body)(Op, Emitter&)) {
  registry.addExpansion(
      Op::getOperationName().str(),
      [body](mlir::Operation* op, mlir::OpBuilder& builder, const ExpansionContext&) -> mlir::FailureOr<Values> {
        Emitter emit(builder, op->getLoc());
        return Values{body(llvm::cast<Op>(op), emit)};
      });
}

}  // namespace

void addSoftmaxExpansions(OperatorRegistry& registry) {
  add(registry, expandSoftmax);
  add(registry, expandSoftmaxGrad);
  add(registry, expandLogSoftmax);
  add(registry, expandLogSoftmaxGrad);
}

}  // namespace weft::ir
