// Writes batch norm with operators that name the micro-batches of a step.
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
#include <numeric>

#include "ir/layout/stage_mesh_text.h"
#include "ir/nn/gradients/gradients.h"
#include "ir/nn/nn.h"
#include "ir/program/module_meshes.h"
#include "ir/program/program.h"

namespace weft {

#define GEN_PASS_DEF_EXPANDBATCHNORMPASS
#include "passes/generated/passes.h.inc"

using namespace mlir;  // NOLINT: the file is about MLIR types throughout
namespace nn = ir::nn;

namespace {

int64_t roundUp(int64_t value, int64_t step) {
  return (value + step - 1) / step * step;
}

// What the backward operator needs of its forward operator beside its operands.
struct Forward {
  Value share;  // 1 / n
  nn::ChannelAffineOp normalized;
};

class Expander {
 public:
  Expander(func::FuncOp step, int64_t parts, int64_t microBatches)
      : step_(step), parts_(parts), microBatches_(microBatches) {}

  LogicalResult run() {
    SmallVector<nn::BatchNormOp> forward(step_.getOps<nn::BatchNormOp>());
    for (nn::BatchNormOp op : forward) {
      if (failed(expand(op))) {
        return failure();
      }
    }
    assignIds(step_->getParentOfType<ModuleOp>());
    SmallVector<nn::BatchNormGradOp> backward(step_.getOps<nn::BatchNormGradOp>());
    for (nn::BatchNormGradOp op : backward) {
      if (failed(expand(op))) {
        return failure();
      }
    }
    assignIds(step_->getParentOfType<ModuleOp>());
    return success();
  }

 private:
  LogicalResult expand(nn::BatchNormOp op) {
    OpBuilder builder(op);
    ir::Emitter emit(builder, op.getLoc());
    Value x = op->getOperand(0);
    if (failed(checkRows(op, x))) {
      return failure();
    }
    Operation* before = op->getPrevNode();
    const Value share = shareOf(emit, x);
    Value mean = emit.make<nn::MulOp>(strategyOf(op, channelSum(emit, x)), share);
    Value squares = emit.make<nn::ChannelDotOp>(x, x, mean);
    Value variance = emit.make<nn::MulOp>(squares, share);
    Value rstd = emit.make<nn::RsqrtOp>(emit.make<nn::AddOp>(variance, emit.number(op.getEpsilon(), variance)));
    Value scale = emit.make<nn::MulOp>(rstd, op->getOperand(1));
    Value shift = emit.make<nn::SubOp>(op->getOperand(2), emit.make<nn::MulOp>(mean, scale));
    auto normalized = emit.op<nn::ChannelAffineOp>(ValueRange{x, scale, shift});
    SmallVector<Value> results = {normalized.getY(), mean, rstd};
    const bool keepsRunning = op->getNumOperands() == 5;
    Value spread = keepsRunning ? unbiased(emit, squares, share, x) : Value();
    copyAllMarks(op, before);
    if (keepsRunning) {
      results.push_back(running(emit, op, 3, mean));
      results.push_back(running(emit, op, 4, spread));
    }
    forward_[mean] = {share, normalized};
    op->replaceAllUsesWith(results);
    op->erase();
    return success();
  }

  LogicalResult expand(nn::BatchNormGradOp op) {
    const auto known = forward_.find(op.getMean());
    if (known == forward_.end()) {
      return op.emitError("nn.batch_norm_grad reads a mean that no nn.batch_norm makes");
    }
    OpBuilder builder(op);
    ir::Emitter emit(builder, op.getLoc());
    Operation* before = op->getPrevNode();
    const auto [share, normalized] = known->second;
    Value sum = channelSum(emit, op.getDy());
    Value dot = emit.make<nn::MulOp>(emit.make<nn::ChannelDotOp>(op.getDy(), op.getX(), op.getMean()), op.getRstd());
    Value dgamma = emit.make<nn::SumOp>(dot, ArrayRef<int64_t>{0});
    Value dbeta = emit.make<nn::SumOp>(sum, ArrayRef<int64_t>{0});
    Value slope = emit.make<nn::MulOp>(op.getRstd(), op.getGamma());
    Value toMean = emit.make<nn::MulOp>(emit.make<nn::MulOp>(slope, op.getRstd()), emit.make<nn::MulOp>(dot, share));
    Value ofSum = emit.make<nn::MulOp>(slope, emit.make<nn::MulOp>(sum, share));
    Value offset = emit.make<nn::SubOp>(emit.make<nn::MulOp>(toMean, op.getMean()), ofSum);
    Value ofX = emit.make<nn::NegOp>(toMean);
    Value dx = emit.make<nn::ChannelAffineOp>(ValueRange{op.getDy(), slope, op.getX(), ofX, offset});
    op->setAttr(kForwardAttr, normalized->getAttr(kIdAttr));
    copyAllMarks(op, before);
    op->replaceAllUsesWith(ValueRange{dx, dgamma, dbeta});
    op->erase();
    return success();
  }

  // A micro-batch without any row has no statistics. The first ranks hold rows before the others do.
  LogicalResult checkRows(nn::BatchNormOp op, Value x) const {
    const int64_t rows = ir::shapeOf(x)[0];
    const int64_t stored = roundUp(rows, microBatches_);
    const int64_t each = stored / microBatches_;
    if ((microBatches_ - 1) * each >= rows) {
      return op.emitError() << labelOf(op) << " normalizes " << rows << " rows in " << microBatches_
                            << " micro-batches, which leaves a micro-batch without rows; use a batch of at least "
                            << microBatches_ << " rows that divides better, or fewer micro-batches";
    }
    return success();
  }

  Value channelSum(ir::Emitter& emit, Value x) const {
    return emit.make<nn::ChannelSumOp>(ir::withShape(x, {microBatches_, ir::shapeOf(x)[1]}), x);
  }

  // Elements of a channel in a micro-batch where no row can be padding; 0: unknown.
  int64_t elementsOf(Value x) const {
    const Shape shape = ir::shapeOf(x);
    const bool even = shape[0] % (parts_ * microBatches_) == 0;
    return even ? ir::plainType(x).getNumElements() / shape[1] / microBatches_ : 0;
  }

  // 1 / n: a number where it is known, else counted.
  Value shareOf(ir::Emitter& emit, Value x) const {
    if (const int64_t elements = elementsOf(x); elements > 0) {
      return emit.number(1.0 / static_cast<double>(elements), x);
    }
    Value ones = emit.cast(emit.make<nn::CompareOp>(x, x, "eq"), ir::plainType(x).getElementType());
    Value count = emit.make<nn::MaximumOp>(channelSum(emit, ones), emit.number(1.0, x));
    return emit.make<nn::DivOp>(emit.number(1.0, x), count);
  }

  // The variance with n - 1 degrees of freedom (n where n is 1): squares / (n - 1) = squares share / (1 - share).
  Value unbiased(ir::Emitter& emit, Value squares, Value share, Value x) const {
    if (const int64_t elements = elementsOf(x); elements > 0) {
      const auto degrees = static_cast<double>(std::max<int64_t>(elements - 1, 1));
      return emit.make<nn::MulOp>(squares, emit.number(1.0 / degrees, squares));
    }
    Value one = emit.number(1.0, squares);
    Value degrees = emit.make<nn::SubOp>(one, share);
    Value isOne = emit.make<nn::CompareOp>(degrees, emit.number(0.0, squares), "eq");
    Value divisor = emit.make<nn::SelectOp>(isOne, one, degrees);
    return emit.make<nn::DivOp>(emit.make<nn::MulOp>(squares, share), divisor);
  }

  // The running statistic `index` after the step.
  Value running(ir::Emitter& emit, nn::BatchNormOp op, unsigned index, Value statistic) const {
    const double momentum = op.getMomentum();
    Operation* before = op->getPrevNode();
    Value weighted = emit.make<nn::MulOp>(statistic, weights(emit, statistic, momentum));
    Value sum = emit.make<nn::SumOp>(weighted, ArrayRef<int64_t>{0});
    copyAllMarks(op, before);
    // Once per step, after the last micro-batch.
    before = op->getPrevNode();
    Value old = op->getOperand(index);
    Value kept = emit.make<nn::MulOp>(old, emit.number(std::pow(1 - momentum, microBatches_), old));
    Value updated = emit.make<nn::AddOp>(kept, sum);
    copyAllMarks(op, before);
    for (Value value : {kept, updated}) {
      value.getDefiningOp()->setAttr(kPhaseAttr, StringAttr::get(op.getContext(), "update"));
      value.getDefiningOp()->removeAttr(kUserRecomputeAttr);
    }
    return updated;
  }

  // The weight of each micro-batch's statistic, [micro-batches, 1].
  Value weights(ir::Emitter& emit, Value like, double momentum) const {
    SmallVector<APFloat> values;
    Type element = ir::plainType(like).getElementType();
    for (int64_t p = 0; p < microBatches_; ++p) {
      APFloat value(momentum * std::pow(1 - momentum, microBatches_ - 1 - p));
      bool exact = false;
      value.convert(cast<FloatType>(element).getFloatSemantics(), APFloat::rmNearestTiesToEven, &exact);
      values.push_back(value);
    }
    if (microBatches_ == 1) {
      return emit.number(momentum, like);
    }
    RankedTensorType type = ir::withShape(like, {microBatches_, 1});
    return emit.make<nn::ConstantOp>(type, DenseElementsAttr::get(type, values));
  }

  // The user's strategy of batch norm says how x is split: that of the first sum.
  static Value strategyOf(nn::BatchNormOp op, Value sum) {
    auto strategy = op->getAttrOfType<DictionaryAttr>(kStrategyAttr);
    auto in = strategy ? dyn_cast_or_null<ArrayAttr>(strategy.get("in")) : ArrayAttr();
    if (in && !in.empty()) {
      NamedAttrList entries;
      entries.set("in", ArrayAttr::get(op.getContext(), {in[0]}));
      sum.getDefiningOp()->setAttr(kStrategyAttr, entries.getDictionary(op.getContext()));
    }
    return sum;
  }

  static void copyAllMarks(Operation* op, Operation* before) {
    Operation* made = before != nullptr ? before->getNextNode() : &op->getBlock()->front();
    for (; made != op; made = made->getNextNode()) {
      copyMarks(op, made);
    }
  }

  func::FuncOp step_;
  int64_t parts_;  // see mostParts
  int64_t microBatches_;
  llvm::DenseMap<Value, Forward> forward_;  // by the mean
};

class ExpandBatchNormPass : public impl::ExpandBatchNormPassBase<ExpandBatchNormPass> {
 public:
  void runOnOperation() override {
    func::FuncOp step = stepFunction(getOperation());
    if (!step) {
      return signalPassFailure();
    }
    Mesh mesh;
    if (getOperation()->hasAttr(kMeshAttr)) {
      FailureOr<Mesh> given = meshOf(getOperation());
      if (failed(given)) {
        return signalPassFailure();
      }
      mesh = *given;
    }
    if (failed(Expander(step, mostParts(mesh), mesh.microBatches()).run())) {
      signalPassFailure();
    }
  }

 private:
  // A common multiple of every number of ranks that may split the batch: the ranks of a submesh, or their least common
  // multiple where submeshes differ.
  int64_t mostParts(const Mesh& mesh) {
    auto text = getOperation()->getAttrOfType<StringAttr>(kStageMeshesAttr);
    const auto meshes = parseStageMeshes(text ? text.getValue().str() : "", mesh.microBatches());
    int64_t parts = mesh.ranks();
    for (const Mesh& other : text&& meshes.ok() ? *meshes : std::vector<Mesh>()) {
      parts = std::lcm(parts, other.ranks());
    }
    return parts;
  }
};

}  // namespace
}  // namespace weft
