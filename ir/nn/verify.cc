// Verifiers of the operators whose result type is written down, not inferred. As everywhere in nn, only shapes and
// element types count.
#include "ir/nn/nn.h"

namespace weft::ir::nn {
namespace {

using mlir::LogicalResult;
using mlir::success;
using mlir::Value;

llvm::ArrayRef<int64_t> shape(Value value) {
  return llvm::cast<mlir::RankedTensorType>(value.getType()).getShape();
}
mlir::Type element(Value value) {
  return llvm::cast<mlir::RankedTensorType>(value.getType()).getElementType();
}

LogicalResult error(mlir::Operation* op, int check, const llvm::Twine& text) {
  return op->emitError() << op->getName().getStringRef() << " (" << check << "): " << text;
}

LogicalResult sameElement(mlir::Operation* op, int check, Value a, Value b) {
  if (element(a) != element(b)) {
    return error(op, check,
                 "operand " + printType(a) + " and result " + printType(b) + " have different element types");
  }
  return success();
}

}  // namespace

// (1) Same shape.
LogicalResult CastOp::verify() {
  if (shape(getX()) != shape(getY())) {
    return error(*this, 1,
                 "operand " + printType(getX()) + " and result " + printType(getY()) + " have different shapes");
  }
  return success();
}

// (1) Same element type. (2) Same number of elements.
LogicalResult ReshapeOp::verify() {
  if (mlir::failed(sameElement(*this, 1, getX(), getY()))) {
    return mlir::failure();
  }
  int64_t from = getX().getType().getNumElements();
  int64_t to = getY().getType().getNumElements();
  if (from != to) {
    return error(*this, 2,
                 "operand " + printType(getX()) + " has " + llvm::Twine(from) + " elements, result " +
                     printType(getY()) + " has " + llvm::Twine(to));
  }
  return success();
}

// (1) Same element type. (2) The operand's dimensions are, from the right, those of the result or 1.
LogicalResult BroadcastOp::verify() {
  if (mlir::failed(sameElement(*this, 1, getX(), getY()))) {
    return mlir::failure();
  }
  llvm::ArrayRef<int64_t> from = shape(getX());
  llvm::ArrayRef<int64_t> to = shape(getY());
  bool fits = from.size() <= to.size();
  for (size_t d = 0; fits && d < from.size(); ++d) {
    int64_t wanted = to[to.size() - from.size() + d];
    fits = from[d] == wanted || from[d] == 1;
  }
  if (!fits) {
    return error(*this, 2, "operand " + printType(getX()) + " does not broadcast to " + printType(getY()));
  }
  return success();
}

// (1) Same element type of dy and result. (2) Result [V, C], dy = dimensions of ids, then C.
LogicalResult EmbeddingGradOp::verify() {
  if (mlir::failed(sameElement(*this, 1, getDy(), getDtable()))) {
    return mlir::failure();
  }
  llvm::ArrayRef<int64_t> dy = shape(getDy());
  llvm::ArrayRef<int64_t> table = shape(getDtable());
  if (table.size() != 2 || dy.empty() || dy.drop_back() != shape(getIds()) || dy.back() != table[1]) {
    return error(*this, 2,
                 "dy is " + printType(getDy()) + "; it must have the dimensions of ids " + printType(getIds()) +
                     ", then the columns of the result " + printType(getDtable()));
  }
  return success();
}

// (1) Same element type. (2) x has channels, the result is [micro-batches, channels].
LogicalResult ChannelSumOp::verify() {
  if (mlir::failed(sameElement(*this, 1, getX(), getY()))) {
    return mlir::failure();
  }
  if (shape(getX()).size() < 2 || shape(getY()).size() != 2 || shape(getX())[1] != shape(getY())[1]) {
    return error(*this, 2,
                 "operand " + printType(getX()) + ", result " + printType(getY()) +
                     "; they must be [n, c, ...] and [micro-batches, c]");
  }
  return success();
}

// (1) Same element type of d and result. (2) labels, d and the result's leading dimensions agree.
LogicalResult PickGradOp::verify() {
  if (mlir::failed(sameElement(*this, 1, getD(), getDx()))) {
    return mlir::failure();
  }
  llvm::ArrayRef<int64_t> result = shape(getDx());
  if (result.empty() || result.drop_back() != shape(getLabels()) || shape(getD()) != shape(getLabels())) {
    return error(*this, 2,
                 "labels " + printType(getLabels()) + ", d " + printType(getD()) +
                     " and the leading dimensions of the result " + printType(getDx()) + " must agree");
  }
  return success();
}

// (1) dim exists. (2) updates have index's shape. (3) The result has their element type, and their sizes in all other
// dimensions. (4) rows is positive.
LogicalResult ScatterAddOp::verify() {
  const auto rank = static_cast<int64_t>(shape(getY()).size());
  if (getDim() < 0 || getDim() >= rank) {
    return error(*this, 1, "dim " + llvm::Twine(getDim()) + " is not a dimension of " + printType(getY()));
  }
  if (shape(getIndex()) != shape(getUpdates())) {
    return error(*this, 2,
                 "the index is " + printType(getIndex()) + " and updates are " + printType(getUpdates()) +
                     "; they must have one shape");
  }
  llvm::SmallVector<int64_t> expected(shape(getY()));
  if (shape(getUpdates()).size() == expected.size()) {
    expected[getDim()] = shape(getUpdates())[getDim()];
  }
  if (plainType(getUpdates()) != withShape(getY(), expected)) {
    return error(*this, 3,
                 "updates are " + printType(getUpdates()) + "; they may differ from the result " + printType(getY()) +
                     " only in dimension " + llvm::Twine(getDim()));
  }
  if (getRows() < 1) {
    return error(*this, 4, "rows is " + llvm::Twine(getRows()) + "; it must be positive");
  }
  return success();
}

namespace {

// (1) to (6) as conv2d. (7) dy has the type of the convolution of x with the weight.
LogicalResult verifyConvolution(mlir::Operation* op, Value x, Value weight, Value dy, const infer::WindowSteps& steps) {
  llvm::SmallVector<mlir::Type> types;
  const InferSite site{op->getLoc(), op->getName().getStringRef(), types};
  if (mlir::failed(infer::conv2d(site, x, weight, steps))) {
    return mlir::failure();
  }
  if (plainType(dy) != types[0]) {
    return error(op, 7,
                 "dy is " + printType(dy) + "; an image " + printType(x) + " and a weight " + printType(weight) +
                     " give another size");
  }
  return success();
}

}  // namespace

LogicalResult Conv2dInputGradOp::verify() {
  return verifyConvolution(*this, getDx(), getWeight(), getDy(), {getStrides(), getPaddings(), getDilations()});
}

LogicalResult Conv2dWeightGradOp::verify() {
  return verifyConvolution(*this, getX(), getDweight(), getDy(), {getStrides(), getPaddings(), getDilations()});
}

// As max_pool2d_grad.
LogicalResult AvgPool2dGradOp::verify() {
  llvm::SmallVector<mlir::Type> types;
  const InferSite site{getLoc(), getOperationName(), types};
  return infer::poolGrad(site, {getDx(), getDy()}, getWindow(), {getStrides(), getPaddings()});
}

namespace {

constexpr int64_t kMostWork = int64_t{1} << 40;  // for each element

// Three numbers for each origin: operand or result, which one, and a dimension that it has.
bool areOrigins(CustomOp op, llvm::ArrayRef<int64_t> listed) {
  for (size_t i = 0; i + 2 < listed.size(); i += 3) {
    const auto values = mlir::ValueRange(listed[i] == 0 ? mlir::ValueRange(op.getXs()) : mlir::ValueRange(op.getYs()));
    const bool isValue =
        (listed[i] == 0 || listed[i] == 1) && listed[i + 1] >= 0 && listed[i + 1] < static_cast<int64_t>(values.size());
    if (!isValue || listed[i + 2] < 0 || listed[i + 2] >= static_cast<int64_t>(shape(values[listed[i + 1]]).size())) {
      return false;
    }
  }
  return listed.size() % 3 == 0;
}

bool areFills(mlir::ArrayAttr listed, unsigned operands) {
  return listed.size() <= operands && llvm::all_of(listed, [](mlir::Attribute fill) {
           auto number = llvm::dyn_cast<mlir::FloatAttr>(fill);
           return (number && !number.getValue().isNaN()) || llvm::isa<mlir::UnitAttr>(fill);
         });
}

bool areReductions(mlir::ArrayAttr listed, unsigned results) {
  return listed.size() <= results && llvm::all_of(listed, [](mlir::Attribute kind) {
           auto name = llvm::dyn_cast<mlir::StringAttr>(kind);
           return name && rules::reduceKindNamed(name.getValue());
         });
}

}  // namespace

// (1) A kind and a rule. (2) Linear sets are lists of its operands, none empty. (3) Work from 0 to 2^40. (4) Origins of
// dimensions that there are. (5) Pad fills and (6) reductions for no more operands and results than there are. (7)
// Gradients of operands that there are.
LogicalResult CustomOp::verify() {
  if (getKind().empty() || getFactors().empty()) {
    return error(*this, 1, "kind is \"" + getKind() + "\" and factors \"" + getFactors() + "\"; neither may be empty");
  }
  const auto isOperand = [&](int64_t operand) { return operand >= 0 && operand < getNumOperands(); };
  for (mlir::Attribute set : getLinear()) {
    auto numbers = llvm::dyn_cast<mlir::DenseI64ArrayAttr>(set);
    if (!numbers || numbers.empty() || !llvm::all_of(numbers.asArrayRef(), isOperand)) {
      return error(
          *this, 2,
          "linear holds lists of operands, from 0 to " + llvm::Twine(getNumOperands()) + " less one; no list is empty");
    }
  }
  if (!(getWork() >= 0 && getWork() <= static_cast<double>(kMostWork))) {
    return error(*this, 3, "work is " + std::to_string(getWork()) + "; it is from 0 to 2^40");
  }
  if (getOrigins() && !areOrigins(*this, *getOrigins())) {
    return error(*this, 4,
                 "origins holds three numbers for each: 0 for an operand or 1 for a result, which one, and a dimension "
                 "that it has");
  }
  if (getPadFill() && !areFills(*getPadFill(), getNumOperands())) {
    return error(
        *this, 5,
        "pad_fill holds a number, or unit, for each of at most " + llvm::Twine(getNumOperands()) + " operands");
  }
  if (getReduce() && !areReductions(*getReduce(), getNumResults())) {
    return error(
        *this, 6,
        "reduce holds \"sum\", \"max\" or \"min\" for each of at most " + llvm::Twine(getNumResults()) + " results");
  }
  if (getGradient().has_value() != getGradientOf().has_value() ||
      !llvm::all_of(getGradientOf().value_or(llvm::ArrayRef<int64_t>()), isOperand)) {
    return error(*this, 7,
                 "gradient names a function, gradient_of the operands whose gradients it returns, from 0 to " +
                     llvm::Twine(getNumOperands()) + " less one; both are there or none");
  }
  return success();
}

// (1) y is a scalar. (2) A gradient is like its x.
LogicalResult GradientOp::verify() {
  if (!shape(getY()).empty()) {
    return error(*this, 1, "y is " + printType(getY()) + "; a scalar is differentiated: take its sum or mean");
  }
  if (!sameShapesAndElements(getXs().getTypes(), getGradients().getTypes())) {
    return error(*this, 2, "the gradients are not like the values that they are taken with respect to");
  }
  return success();
}

// (1) A known distribution. (2) uniform: a <= b; normal: b >= 0.
LogicalResult RandomOp::verify() {
  llvm::StringRef distribution = getDistribution();
  if (distribution != "normal" && distribution != "uniform") {
    return error(*this, 1, "distribution is \"" + distribution + "\"; it must be \"normal\" or \"uniform\"");
  }
  if (distribution == "uniform" ? getA() > getB() : getB() < 0) {
    return error(*this, 2,
                 "a = " + std::to_string(getA()) + " and b = " + std::to_string(getB()) +
                     (distribution == "uniform" ? ": the range is empty" : ": the deviation is negative"));
  }
  return success();
}

// (1) Same element type. (2) Same shape, unless the value is a splat.
LogicalResult ConstantOp::verify() {
  auto type = llvm::cast<mlir::ShapedType>(getValue().getType());
  if (type.getElementType() != element(getY())) {
    return error(*this, 1, "the value has elements of another type than the result " + printType(getY()));
  }
  if (!getValue().isSplat() && type.getShape() != shape(getY())) {
    return error(*this, 2,
                 "the value has " + llvm::Twine(type.getNumElements()) + " elements of another shape than the result " +
                     printType(getY()));
  }
  return success();
}

// (1) dim is a dimension of the result.
LogicalResult IotaOp::verify() {
  if (getDim() < 0 || getDim() >= getY().getType().getRank()) {
    return error(*this, 1, "dim " + llvm::Twine(getDim()) + " is not a dimension of " + printType(getY()));
  }
  return success();
}

}  // namespace weft::ir::nn
