// Batch norm as operators that name the micro-batches of a step.
//
// The statistics of batch norm are those of one micro-batch, over all ranks that share it. A statistic is
// therefore a value [micro-batches, c] whose first dimension is split over the time axis: each micro-batch makes its
// own row, and no sum is left partial over the micro-batches. With n elements of a channel in a micro-batch:
//
//   mean = sum(x) / n        variance = sum(x (x - mean)) / n        rstd = 1 / sqrt(variance + epsilon)
//   y = x (rstd gamma) + (beta - mean rstd gamma)
//   dx = a dy - a rstd^2 dot/n (x - mean) - a sum(dy)/n,   a = rstd gamma,  dot = sum(dy (x - mean))
//   dgamma = sum over micro-batches of dot rstd,  dbeta = sum over micro-batches of sum(dy)
//
// (Ioffe and Szegedy, "Batch normalization", 2015.) Running statistics are a geometric sum, so they need no value that
// is handed from micro-batch to micro-batch: after M micro-batches r' = (1 - m)^M r + sum over p of m (1 - m)^(M - 1 -
// p) statistic_p. That is one accumulation, like a gradient's.

#include <algorithm>
#include <cmath>

#include "ir/nn/gradients/gradients.h"
#include "ir/program/program.h"
#include "planner/graph/program_graph.h"

namespace weft::ir {
namespace {

using namespace nn;  // NOLINT: the operators this file is about
using mlir::failure;
using mlir::LogicalResult;
using mlir::success;
using mlir::Value;
using mlir::ValueRange;
using Values = llvm::SmallVector<Value>;

int64_t roundUp(int64_t value, int64_t step) {
  return (value + step - 1) / step * step;
}

// A micro-batch without any row has no statistics. The first ranks hold rows before the others do.
LogicalResult checkRows(BatchNormOp op, int64_t microBatches) {
  const int64_t rows = shapeOf(op->getOperand(0))[0];
  const int64_t each = roundUp(rows, microBatches) / microBatches;
  if ((microBatches - 1) * each >= rows) {
    return op.emitError() << labelOf(op) << " normalizes " << rows << " rows in " << microBatches
                          << " micro-batches, which leaves a micro-batch without rows; use a batch of at least "
                          << microBatches << " rows that divides better, or fewer micro-batches";
  }
  return success();
}

// The operators of one batch norm, or of its gradient.
class Writer {
 public:
  Writer(Emitter& emit, const ExpansionContext& context) : emit_(emit), context_(context) {}

  Values forward(BatchNormOp op) {
    Value x = op->getOperand(0);
    Value share = shareOf(x);
    Value mean = emit_.make<MulOp>(channelSum(x), share);
    Value squares = emit_.make<ChannelDotOp>(x, x, mean);
    Value variance = emit_.make<MulOp>(squares, share);
    Value rstd = emit_.make<RsqrtOp>(emit_.make<AddOp>(variance, emit_.number(op.getEpsilon(), variance)));
    Value scale = emit_.make<MulOp>(rstd, op->getOperand(1));
    Value shift = emit_.make<SubOp>(op->getOperand(2), emit_.make<MulOp>(mean, scale));
    Values results = {emit_.make<ChannelAffineOp>(ValueRange{x, scale, shift}), mean, rstd, share};
    if (op->getNumOperands() == 5) {
      Value spread = unbiased(squares, share, x);
      results.push_back(running(op, 3, mean));
      results.push_back(running(op, 4, spread));
    }
    return results;
  }

  Values backward(BatchNormGradOp op) {
    Value sum = channelSum(op.getDy());
    Value dot = emit_.make<MulOp>(emit_.make<ChannelDotOp>(op.getDy(), op.getX(), op.getMean()), op.getRstd());
    Value dgamma = emit_.make<SumOp>(dot, llvm::ArrayRef<int64_t>{0});
    Value dbeta = emit_.make<SumOp>(sum, llvm::ArrayRef<int64_t>{0});
    Value slope = emit_.make<MulOp>(op.getRstd(), op.getGamma());
    Value toMean = emit_.make<MulOp>(emit_.make<MulOp>(slope, op.getRstd()), emit_.make<MulOp>(dot, op.getShare()));
    Value ofSum = emit_.make<MulOp>(slope, emit_.make<MulOp>(sum, op.getShare()));
    Value offset = emit_.make<SubOp>(emit_.make<MulOp>(toMean, op.getMean()), ofSum);
    Value ofX = emit_.make<NegOp>(toMean);
    Value dx = emit_.make<ChannelAffineOp>(ValueRange{op.getDy(), slope, op.getX(), ofX, offset});
    return {dx, dgamma, dbeta};
  }

 private:
  Value channelSum(Value x) {
    return emit_.make<ChannelSumOp>(withShape(x, {context_.microBatches(), shapeOf(x)[1]}), x);
  }

  // Elements of a channel in a micro-batch where no row can be padding; 0: unknown.
  int64_t elementsOf(Value x) const {
    const Shape shape = shapeOf(x);
    const bool even = shape[0] % (context_.rowParts() * context_.microBatches()) == 0;
    return even ? plainType(x).getNumElements() / shape[1] / context_.microBatches() : 0;
  }

  // 1 / n: a scalar where n is known, else counted.
  Value shareOf(Value x) {
    if (const int64_t elements = elementsOf(x); elements > 0) {
      return emit_.number(1.0 / static_cast<double>(elements), x);
    }
    Value ones = emit_.cast(emit_.make<CompareOp>(x, x, "eq"), plainType(x).getElementType());
    Value count = emit_.make<MaximumOp>(channelSum(ones), emit_.number(1.0, x));
    return emit_.make<DivOp>(emit_.number(1.0, x), count);
  }

  // The variance with n - 1 degrees of freedom (n where n is 1): squares / (n - 1) = squares share / (1 - share).
  Value unbiased(Value squares, Value share, Value x) {
    if (const int64_t elements = elementsOf(x); elements > 0) {
      const auto degrees = static_cast<double>(std::max<int64_t>(elements - 1, 1));
      return emit_.make<MulOp>(squares, emit_.number(1.0 / degrees, squares));
    }
    Value one = emit_.number(1.0, squares);
    Value degrees = emit_.make<SubOp>(one, share);
    Value isOne = emit_.make<CompareOp>(degrees, emit_.number(0.0, squares), "eq");
    Value divisor = emit_.make<SelectOp>(isOne, one, degrees);
    return emit_.make<DivOp>(emit_.make<MulOp>(squares, share), divisor);
  }

  // The running statistic in operand `index` after the step.
  Value running(BatchNormOp op, unsigned index, Value statistic) {
    const double momentum = op.getMomentum();
    Value weighted = emit_.make<MulOp>(statistic, weights(statistic, momentum));
    Value sum = emit_.make<SumOp>(weighted, llvm::ArrayRef<int64_t>{0});
    Value old = op->getOperand(index);
    Value remains = emit_.number(std::pow(1 - momentum, context_.microBatches()), old);
    // Once per step, after the last micro-batch.
    Value kept = inUpdate(emit_.make<MulOp>(old, remains));
    return inUpdate(emit_.make<AddOp>(kept, sum));
  }

  static Value inUpdate(Value value) {
    value.getDefiningOp()->setAttr(kPhaseAttr, mlir::StringAttr::get(value.getContext(), phaseName(Phase::kUpdate)));
    return value;
  }

  // The weight of each micro-batch's statistic, [micro-batches, 1].
  Value weights(Value like, double momentum) {
    const int64_t microBatches = context_.microBatches();
    if (microBatches == 1) {
      return emit_.number(momentum, like);
    }
    llvm::SmallVector<llvm::APFloat> values;
    auto element = mlir::cast<mlir::FloatType>(plainType(like).getElementType());
    for (int64_t p = 0; p < microBatches; ++p) {
      llvm::APFloat value(momentum * std::pow(1 - momentum, microBatches - 1 - p));
      bool exact = false;
      value.convert(element.getFloatSemantics(), llvm::APFloat::rmNearestTiesToEven, &exact);
      values.push_back(value);
    }
    mlir::RankedTensorType type = withShape(like, {microBatches, 1});
    return emit_.make<ConstantOp>(type, mlir::DenseElementsAttr::get(type, values));
  }

  Emitter& emit_;
  const ExpansionContext& context_;
};

mlir::FailureOr<Values> expandBatchNorm(mlir::Operation* operation, mlir::OpBuilder& builder,
                                        const ExpansionContext& context) {
  auto op = llvm::cast<BatchNormOp>(operation);
  if (failed(checkRows(op, context.microBatches()))) {
    return failure();
  }
  Emitter emit(builder, op.getLoc());
  return Writer(emit, context).forward(op);
}

mlir::FailureOr<Values> expandBatchNormGrad(mlir::Operation* operation, mlir::OpBuilder& builder,
                                            const ExpansionContext& context) {
  auto op = llvm::cast<BatchNormGradOp>(operation);
  for (Value statistic : {op.getMean(), op.getRstd(), op.getShare()}) {
    const Shape shape = shapeOf(statistic);
    if (!shape.empty() && shape[0] != context.microBatches()) {
      return op.emitError() << labelOf(op) << " reads a statistic of " << shape[0] << " micro-batches in a step of "
                            << context.microBatches() << "; it should be that of an nn.batch_norm, expanded before";
    }
  }
  Emitter emit(builder, op.getLoc());
  return Writer(emit, context).backward(op);
}

}  // namespace

void addBatchNormExpansions(OperatorRegistry& registry) {
  registry.addExpansion(BatchNormOp::getOperationName().str(), expandBatchNorm);
  registry.addExpansion(BatchNormGradOp::getOperationName().str(), expandBatchNormGrad);
}

}  // namespace weft::ir
