// A convolution over a split height, and its gradients: over blocks of rows with the rows that border on them.
//
// The height of an image is cut into P blocks of R rows, [.., c, P, R, w], and each block is given the rows before and
// behind it that its windows read, zeros at the edge of the image. So it is an image of its own:
//
//   x            [.., c, P R, w]
//   its borders  [.., c, P, before, w], [.., c, P, behind, w]: of each block the last rows and the first rows, which
//                the next block and the one before it get
//   blocks       [.., P, c, before + R + behind, w], convolved without vertical padding to [.., P, c', R / stride, w']
//
// Where ranks share the height each has whole blocks. Only the borders are exchanged: moving them on by a block needs
// them whole over P, so they are split over their width meanwhile, or gathered, (before + behind) P rows of the image.
// The gradient of x reads the places of dy around a block in the same way; that of the weight is a sum over the blocks.
#include <algorithm>
#include <numeric>

#include "ir/nn/gradients/gradients.h"
#include "ir/nn/window_line.h"

namespace weft::ir {
namespace {

using namespace nn;  // NOLINT: the operators this file is about
using llvm::ArrayRef;
using llvm::SmallVector;
using mlir::Value;
using Values = SmallVector<Value>;
using Sizes = SmallVector<int64_t>;

Sizes sizesOf(Value x) {
  return Sizes(plainType(x).getShape());
}

// The height of `image` under the windows of a convolution that gives `result`.
template <typename Op>
WindowLine heightOf(Op op, Value image, Value weight, Value result) {
  const Shape x = shapeOf(image);
  const Shape y = shapeOf(result);
  return {x[x.size() - 2],    y[y.size() - 2],     shapeOf(weight)[2],
          op.getStrides()[0], op.getPaddings()[0], op.getDilations()[0]};
}

// Of a height: at most so many that every number of ranks may have as many, none smaller than its borders.
int64_t blocksOf(const WindowLine& line, const ExpansionContext& context) {
  const int64_t most = std::gcd(line.places, context.rowParts());
  for (int64_t blocks = most; blocks > 1; --blocks) {
    const bool divides = most % blocks == 0;
    const int64_t places = line.places / blocks;
    if (divides && places >= line.placesAround() && places * line.stride >= std::max(line.before(), line.behind())) {
      return blocks;
    }
  }
  return 1;
}

// Images in blocks of rows.
class BlockWriter {
 public:
  BlockWriter(Emitter& emit, int64_t blocks) : emit_(emit), blocks_(blocks) {}

  // [.., c, h, w] to [.., P, c, before + h / P + behind, w].
  Value withBorders(Value image, int64_t before, int64_t behind) {
    Sizes shape = sizesOf(image);
    const size_t rows = shape.size() - 2;
    shape[rows] /= blocks_;
    shape.insert(shape.begin() + rows, blocks_);
    Value blocks = emit_.reshape(image, shape);
    const int64_t dim = static_cast<int64_t>(rows) + 1;
    Values parts;
    if (before > 0) {
      parts.push_back(moved(part(blocks, dim, shape[dim] - before, before), dim - 1, 1));
    }
    parts.push_back(blocks);
    if (behind > 0) {
      parts.push_back(moved(part(blocks, dim, 0, behind), dim - 1, -1));
    }
    Value whole = parts.size() == 1 ? blocks : emit_.make<ConcatOp>(parts, dim);
    return exchanged(whole);
  }

  // [.., P, c, R, w] to `shape`, [.., c, P R, w].
  Value joined(Value blocks, const Shape& shape) { return emit_.reshape(exchanged(blocks), shape); }

 private:
  // `count` elements of dimension `dim` from `from` on.
  Value part(Value x, int64_t dim, int64_t from, int64_t count) {
    Sizes sizes = sizesOf(x);
    Sizes offsets(sizes.size(), 0);
    offsets[dim] = from;
    sizes[dim] = count;
    return emit_.make<SliceOp>(x, offsets, sizes);
  }

  // Element i of dimension `dim` becomes element i + by (1 or -1), with zeros where none comes from.
  Value moved(Value x, int64_t dim, int64_t by) {
    Sizes low(sizesOf(x).size(), 0);
    Sizes high = low;
    (by > 0 ? low : high)[dim] = 1;
    return emit_.make<PadOp>(part(x, dim, by > 0 ? 0 : 1, blocks_ - 1), low, high);
  }

  // Exchanges channels and blocks, the third and fourth dimension from behind.
  Value exchanged(Value x) {
    Sizes permutation(sizesOf(x).size());
    std::iota(permutation.begin(), permutation.end(), 0);
    std::swap(permutation[permutation.size() - 4], permutation[permutation.size() - 3]);
    return emit_.make<TransposeOp>(x, permutation);
  }

  Emitter& emit_;
  const int64_t blocks_;
};

// The attribute with another number for the height.
Sizes withHeight(ArrayRef<int64_t> pair, int64_t height) {
  return {height, pair[1]};
}

Value expandForward(Conv2dOp op, Emitter& emit, const ExpansionContext& context) {
  const WindowLine line = heightOf(op, op.getX(), op.getWeight(), op.getY());
  const int64_t blocks = blocksOf(line, context);
  if (blocks == 1) {
    return emit.make<Conv2dOp>(op.getX(), op.getWeight(), op.getStrides(), op.getPaddings(), op.getDilations());
  }
  BlockWriter writer(emit, blocks);
  Value y = emit.make<Conv2dOp>(writer.withBorders(op.getX(), line.before(), line.behind()), op.getWeight(),
                                op.getStrides(), withHeight(op.getPaddings(), 0), op.getDilations());
  return writer.joined(y, shapeOf(op.getY()));
}

// With as many places of dy on both sides of a block, of which each has `stride` rows.
Value expandInputGrad(Conv2dInputGradOp op, Emitter& emit, const ExpansionContext& context) {
  const WindowLine line = heightOf(op, op.getDx(), op.getWeight(), op.getDy());
  const int64_t blocks = blocksOf(line, context);
  if (blocks == 1) {
    return emit.make<Conv2dInputGradOp>(plainType(op.getDx()), op.getDy(), op.getWeight(), op.getStrides(),
                                        op.getPaddings(), op.getDilations());
  }
  BlockWriter writer(emit, blocks);
  const int64_t around = line.placesAround();
  Sizes shape = sizesOf(op.getDx());
  shape[shape.size() - 2] /= blocks;
  shape.insert(shape.end() - 3, blocks);
  Value dx = emit.make<Conv2dInputGradOp>(
      withShape(op.getDx(), shape), writer.withBorders(op.getDy(), around, around), op.getWeight(), op.getStrides(),
      withHeight(op.getPaddings(), line.padding + line.stride * around), op.getDilations());
  return writer.joined(dx, shapeOf(op.getDx()));
}

Value expandWeightGrad(Conv2dWeightGradOp op, Emitter& emit, const ExpansionContext& context) {
  const WindowLine line = heightOf(op, op.getX(), op.getDweight(), op.getDy());
  const int64_t blocks = blocksOf(line, context);
  if (blocks == 1) {
    return emit.make<Conv2dWeightGradOp>(plainType(op.getDweight()), op.getX(), op.getDy(), op.getStrides(),
                                         op.getPaddings(), op.getDilations());
  }
  BlockWriter writer(emit, blocks);
  return emit.make<Conv2dWeightGradOp>(
      plainType(op.getDweight()), writer.withBorders(op.getX(), line.before(), line.behind()),
      writer.withBorders(op.getDy(), 0, 0), op.getStrides(), withHeight(op.getPaddings(), 0), op.getDilations());
}

template <typename Op>
void add(OperatorRegistry& registry, Value (*body)(Op, Emitter&, const ExpansionContext&)) {
  registry.addExpansion(Op::getOperationName().str(),
                        [body](mlir::Operation* op, mlir::OpBuilder& builder,
                               const ExpansionContext& context) -> mlir::FailureOr<Values> {
                          Emitter emit(builder, op->getLoc());
                          return Values{body(llvm::cast<Op>(op), emit, context)};
                        });
}

}  // namespace

void addConvolutionExpansions(OperatorRegistry& registry) {
  add(registry, expandForward);
  add(registry, expandInputGrad);
  add(registry, expandWeightGrad);
}

}  // namespace weft::ir
