#include "ir/nn/gradients/gradients.h"

namespace weft::ir {
namespace {

using namespace nn;  // NOLINT: the operators this file is about
using llvm::SmallVector;
using mlir::RankedTensorType;
using mlir::Value;

// The first index at which x is its extremum, by operators that allow a split dimension: every rank proposes an index,
// the smallest counts.
template <typename Op, typename Extremum>
mlir::FailureOr<SmallVector<Value>> expandArgExtremum(mlir::Operation* operation, mlir::OpBuilder& builder,
                                                      const ExpansionContext& /*context*/) {
  auto op = llvm::cast<Op>(operation);
  Emitter emit(builder, op.getLoc());
  Value x = op.getX();
  const auto dim = static_cast<int64_t>(op.getDim());
  const SmallVector<int64_t> dims = {dim};
  Value found = emit.make<CompareOp>(x, emit.make<Extremum>(x, dims, true), "eq");
  if (llvm::isa<mlir::FloatType>(plainType(x).getElementType())) {
    // A NaN is the extremum, and equal to nothing.
    found = emit.make<MaximumOp>(found, emit.make<CompareOp>(x, x, "ne"));
  }
  SmallVector<int64_t> line(plainType(x).getRank(), 1);
  line[dim] = dimensionOf(x, dim);
  Value indices = emit.make<IotaOp>(RankedTensorType::get(line, builder.getI32Type()), dim);
  Value none = emit.number(static_cast<double>(line[dim]), indices);
  return SmallVector<Value>{emit.make<MinOp>(emit.make<SelectOp>(found, indices, none), dims, false)};
}

}  // namespace

void addAlongGradients(OperatorRegistry& registry) {
  addGradient<CumsumOp>(registry, [](CumsumOp op, Emitter& emit, GradientContext& context) {
    context.operandGradients[0] = emit.make<CumsumOp>(context.resultGradients[0], op.getDim(), !op.getReverse());
  });
  addGradient<ProdOp>(registry, [](ProdOp op, Emitter& emit, GradientContext& context) {
    context.operandGradients[0] = emit.make<ProdGradOp>(op.getX(), context.resultGradients[0], op.getDim());
  });
  addGradient<SortOp>(registry, [](SortOp op, Emitter& emit, GradientContext& context) {
    const int64_t last = plainType(op.getX()).getRank() - 1;
    context.operandGradients[0] = emit.make<ScatterAddOp>(
        plainType(op.getX()), op.getIndices(), context.resultGradients[0], last, dimensionOf(op.getX(), last));
  });
  addGradient<LogSoftmaxOp>(registry, [](LogSoftmaxOp op, Emitter& emit, GradientContext& context) {
    context.operandGradients[0] = emit.make<LogSoftmaxGradOp>(op.getY(), context.resultGradients[0]);
  });
}

void addArgExtremumExpansions(OperatorRegistry& registry) {
  registry.addExpansion(ArgmaxOp::getOperationName().str(), expandArgExtremum<ArgmaxOp, MaxOp>);
  registry.addExpansion(ArgminOp::getOperationName().str(), expandArgExtremum<ArgminOp, MinOp>);
}

}  // namespace weft::ir
