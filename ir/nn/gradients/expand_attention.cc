// Attention over split keys, and its gradient, by operators that allow it: products, element-wise ones and reductions.
//
// With keys [S] split over ranks the scores [T, S] lie where their keys lie. The ranks exchange the greatest score and
// the sum of exponentials of each row, and add the products with their parts of v, which are sums over keys:
//
//   e = exp(x - max(x)),  l = sum(e),  out = (e v) / l,  lse = log(l) + max(x)       x = scale q k^T + bias
//   p = exp(x - lse),  dv = p^T dout,  dx = p (dout v^T - rowsum(dout out)),  dbias = dx,
//   dq = scale dx k,  dk = scale dx^T q
//
// (Dao et al., "FlashAttention", 2022, for the gradient from lse.) Only dq is a sum over keys there. Unlike the kernel
// of attention, which holds those of one head at a time, this holds the scores of all heads: T S elements of each, in
// the parts that the split leaves to a rank.
#include <limits>

#include "ir/nn/gradients/gradients.h"

namespace weft::ir {
namespace {

using namespace nn;  // NOLINT: the operators this file is about
using llvm::ArrayRef;
using llvm::SmallVector;
using mlir::Value;
using Values = SmallVector<Value>;

constexpr double kUnseen = -std::numeric_limits<double>::infinity();

// What forward and gradient share. Where heads share keys, heads h of q are [g, r]: the head of k, and which of its
// readers.
class ScoreWriter {
 public:
  ScoreWriter(Emitter& emit, Value q, Value k) : emit_(emit), q_(shapeOf(q)), keyHeads_(shapeOf(k)[1]) {}

  // Of [batch, heads, ...]; heads of size 1, as in a bias, are shared by all.
  Value grouped(Value x) {
    if (!isShared()) {
      return x;
    }
    Shape shape = shapeOf(x);
    const bool stretched = shape[1] == 1;
    shape[1] = stretched ? 1 : keyHeads_;
    shape.insert(shape.begin() + 2, stretched ? 1 : q_[1] / keyHeads_);
    return emit_.reshape(x, shape);
  }
  // grouped(), with a last dimension of size 1.
  Value column(Value rows) {
    Shape shape = shapeOf(rows);
    shape.push_back(1);
    return grouped(emit_.reshape(rows, shape));
  }

  // The sum over `width` of x [.., t, width] and y [.., s, width].
  Value toScores(Value x, Value y) { return product(x, y, "t d", "s d", "t s"); }
  // The sum over keys of scores [.., t, s] and y [.., s, width].
  Value toRows(Value scores, Value y) { return product(scores, y, "t s", "s d", "t d"); }
  // The sum over queries, and the heads that share a key, of scores [.., t, s] and x [.., t, width].
  Value toKeys(Value scores, Value x) {
    return emit_.make<ContractOp>(scores, x, queries("t s") + ", " + queries("t d") + " -> b g s d");
  }

  // scale q k^T + bias; -inf where a causal query does not see a key.
  Value scores(Value scaled, Value k, Value bias, bool causal) {
    Value x = toScores(scaled, k);
    if (bias) {
      x = emit_.make<AddOp>(x, grouped(bias));
    }
    if (!causal) {
      return x;
    }
    const int64_t keys = shapeOf(k)[2];
    Value seen = emit_.make<CompareOp>(places({q_[2], 1}, 0, x), places({1, keys}, 1, x), "ge");
    return emit_.make<SelectOp>(seen, x, emit_.number(kUnseen, x));
  }

  // What scores are made relative to. A row that a bias hides all keys from has -inf; its exponentials are to be 0.
  Value finite(Value x, Value bias) {
    if (!bias) {
      return x;
    }
    Value unseen = emit_.make<CompareOp>(x, emit_.number(kUnseen, x), "eq");
    return emit_.make<SelectOp>(unseen, emit_.number(0.0, x), x);
  }

  Value sumOfRows(Value x) { return emit_.make<SumOp>(x, last(x), true); }
  Value greatestOfRows(Value x) { return emit_.make<MaxOp>(x, last(x), true); }

 private:
  bool isShared() const { return keyHeads_ != q_[1]; }
  std::string queries(const std::string& rest) const { return (isShared() ? "b g r " : "b g ") + rest; }

  Value product(Value x, Value y, const std::string& ofX, const std::string& ofY, const std::string& made) {
    return emit_.make<ContractOp>(x, y, queries(ofX) + ", b g " + ofY + " -> " + queries(made));
  }

  // The index in dimension `dim` of a tensor of two dimensions.
  Value places(ArrayRef<int64_t> shape, int64_t dim, Value like) {
    return emit_.make<IotaOp>(mlir::RankedTensorType::get(shape, mlir::IntegerType::get(like.getContext(), 32)), dim);
  }

  static SmallVector<int64_t> last(Value x) { return {plainType(x).getRank() - 1}; }

  Emitter& emit_;
  const Shape q_;
  const int64_t keyHeads_;
};

Values expandAttention(AttentionOp op, Emitter& emit) {
  ScoreWriter writer(emit, op.getQ(), op.getK());
  Value scaled = writer.grouped(emit.make<MulOp>(op.getQ(), emit.number(op.getScale(), op.getQ())));
  Value scores = writer.scores(scaled, op.getK(), op.getBias(), op.getCausal());
  Value most = writer.finite(writer.greatestOfRows(scores), op.getBias());
  Value exponentials = emit.make<ExpOp>(emit.make<SubOp>(scores, most));
  Value total = writer.sumOfRows(exponentials);
  // Of a row that sees a key the greatest exponential is 1; the others' sum is 0, as their products are.
  Value divisor = op.getBias() ? emit.make<MaximumOp>(total, emit.number(1.0, total)) : total;
  Value out = emit.make<DivOp>(writer.toRows(exponentials, op.getV()), divisor);
  Value lse = emit.make<AddOp>(emit.make<LogOp>(total), most);
  return {emit.reshape(out, shapeOf(op.getOut())), emit.reshape(lse, shapeOf(op.getLse()))};
}

Values expandAttentionGrad(AttentionGradOp op, Emitter& emit) {
  ScoreWriter writer(emit, op.getQ(), op.getK());
  Value scale = emit.number(op.getScale(), op.getQ());
  Value scaled = writer.grouped(emit.make<MulOp>(op.getQ(), scale));
  Value dout = writer.grouped(op.getDout());
  Value scores = writer.scores(scaled, op.getK(), op.getBias(), op.getCausal());
  Value lse = writer.finite(writer.column(op.getLse()), op.getBias());
  Value p = emit.make<ExpOp>(emit.make<SubOp>(scores, lse));
  Value delta = writer.sumOfRows(emit.make<MulOp>(dout, writer.grouped(op.getOut())));
  Value dx = emit.make<MulOp>(p, emit.make<SubOp>(writer.toScores(dout, op.getV()), delta));
  Value dq = emit.make<MulOp>(writer.toRows(dx, op.getK()), scale);
  Values gradients = {emit.reshape(dq, shapeOf(op.getQ())), writer.toKeys(dx, scaled), writer.toKeys(p, dout)};
  if (op.getDbias()) {
    gradients.push_back(emit.reshape(emit.sumTo(dx, writer.grouped(op.getBias())), shapeOf(op.getBias())));
  }
  return gradients;
}

template <typename Op>
void add(OperatorRegistry& registry, Values (*body)(Op, Emitter&)) {
  registry.addExpansion(
      Op::getOperationName().str(),
      [body](mlir::Operation* op, mlir::OpBuilder& builder, const ExpansionContext&) -> mlir::FailureOr<Values> {
        Emitter emit(builder, op->getLoc());
        return body(llvm::cast<Op>(op), emit);
      });
}

}  // namespace

void addAttentionExpansions(OperatorRegistry& registry) {
  add(registry, expandAttention);
  add(registry, expandAttentionGrad);
}

}  // namespace weft::ir
