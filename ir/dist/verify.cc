// Verifiers of the dist operators. Each lists its numbered checks.
#include "ir/dist/dist.h"
#include "kernels/describe/contraction.h"
#include "runtime/base/limits.h"

namespace weft::ir::dist {

using mlir::failed;
using mlir::failure;
using mlir::LogicalResult;
using mlir::RankedTensorType;
using mlir::success;

namespace {

mlir::InFlightDiagnostic error(mlir::Operation* op, int check) {
  return op->emitError() << op->getName().getStringRef() << " (" << check << "): ";
}

RankedTensorType tensor(mlir::Value value) {
  return llvm::cast<RankedTensorType>(value.getType());
}

// Shape and element type; the layout does not matter.
bool sameTensor(mlir::Value a, mlir::Value b) {
  return tensor(a).getShape() == tensor(b).getShape() && tensor(a).getElementType() == tensor(b).getElementType();
}

LogicalResult checkSame(mlir::Operation* op, int check, mlir::Value a, mlir::Value b) {
  if (!sameTensor(a, b)) {
    return error(op, check) << a.getType() << " and " << b.getType() << " must have the same shape and element type";
  }
  return success();
}

// With layouts on the types shapes are global: a collective changes what lies where, not the shape.
bool isGlobal(mlir::Operation* op) {
  return op->getNumResults() > 0 && hasLayout(op->getResult(0).getType());
}

LogicalResult checkGlobal(mlir::Operation* op, int check) {
  for (auto [x, y] : llvm::zip(op->getOperands(), op->getResults())) {
    if (failed(checkSame(op, check, x, y))) {
      return failure();
    }
  }
  return success();
}

LogicalResult checkReduce(mlir::Operation* op, llvm::StringRef reduce) {
  if (reduce != "sum" && reduce != "max" && reduce != "min") {
    return error(op, 2) << "reduce is \"" << reduce << "\"; it must be \"sum\", \"max\" or \"min\"";
  }
  return success();
}

// The result is x with dimension `dim` multiplied by a number, and dimension `cut` divided by it (-1: none).
LogicalResult checkMoved(mlir::Operation* op, int check, mlir::Value x, mlir::Value y, int64_t dim, int64_t cut) {
  const int64_t rank = tensor(x).getRank();
  if (dim >= rank || cut >= rank || dim < -1 || cut < -1) {
    return error(op, check) << "dimension " << std::max(dim, cut) << " is not one of " << x.getType();
  }
  const int64_t moved = dim >= 0 ? dim : cut;
  bool fits = tensor(y).getRank() == rank && tensor(x).getElementType() == tensor(y).getElementType();
  const int64_t times = !fits      ? 1
                        : dim >= 0 ? tensor(y).getDimSize(moved) / tensor(x).getDimSize(moved)
                                   : tensor(x).getDimSize(moved) / tensor(y).getDimSize(moved);
  for (int64_t d = 0; d < rank && fits; ++d) {
    const int64_t from = tensor(x).getDimSize(d) * (d == dim ? times : 1);
    const int64_t to = tensor(y).getDimSize(d) * (d == cut ? times : 1);
    fits = from == to;
  }
  if (!fits) {
    mlir::InFlightDiagnostic report = error(op, check)
                                      << "result is " << y.getType() << ", the operand " << x.getType();
    return report << "; the members of a group "
                  << (dim >= 0 ? "join their parts along dimension " : "keep each a part of dimension ") << moved
                  << (dim >= 0 && cut >= 0 ? " and cut dimension " + std::to_string(cut) : "") << ", all else stays";
  }
  return success();
}

LogicalResult checkCount(mlir::Operation* op) {
  if (op->getNumOperands() == 0 || op->getNumOperands() != op->getNumResults()) {
    return error(op, 3) << op->getNumOperands() << " operands and " << op->getNumResults()
                        << " results; a bucket needs one result for each operand";
  }
  return success();
}

// All operands of a bucket are joined along `dim`, or cut along `cut`, by one group.
LogicalResult checkBucket(mlir::Operation* op, int check, int64_t dim, int64_t cut) {
  const auto members = [&](mlir::Value x, mlir::Value y) {
    return dim >= 0 ? tensor(y).getDimSize(dim) / tensor(x).getDimSize(dim)
                    : tensor(x).getDimSize(cut) / tensor(y).getDimSize(cut);
  };
  for (auto [x, y] : llvm::zip(op->getOperands(), op->getResults())) {
    if (failed(checkMoved(op, check, x, y, dim, cut))) {
      return failure();
    }
    const int64_t first = members(op->getOperand(0), op->getResult(0));
    if (members(x, y) != first) {
      return error(op, check) << "operands are " << (dim >= 0 ? "joined from " : "cut into ") << first << " and "
                              << members(x, y) << " parts; a bucket has one group";
    }
  }
  return success();
}

}  // namespace

// (1) The same tensor.
LogicalResult ReshardOp::verify() {
  return checkSame(*this, 1, getX(), getY());
}

// (1) The same tensor.
LogicalResult CopyOp::verify() {
  return checkSame(*this, 1, getX(), getY());
}

// (1) The same tensor.
LogicalResult TransferOp::verify() {
  return checkSame(*this, 1, getX(), getY());
}

// (2) Reduction. (3) One result for each operand. (4) Of the same type.
LogicalResult AllReduceOp::verify() {
  if (failed(checkReduce(*this, getReduce())) || failed(checkCount(*this))) {
    return failure();
  }
  for (auto [x, y] : llvm::zip(getInputs(), getOutputs())) {
    if (failed(checkSame(*this, 4, x, y))) {
      return failure();
    }
  }
  return success();
}

// (2) Each result is its operand with `dim` multiplied by the number of members; with layouts, the same shape. (3) One
// result for each operand.
LogicalResult AllGatherOp::verify() {
  if (failed(checkCount(*this))) {
    return failure();
  }
  return isGlobal(*this) ? checkGlobal(*this, 2) : checkBucket(*this, 2, getDim(), -1);
}

// (2) Reduction. (3) One result for each operand. (4) With `dim` divided by the number of members, the same for all;
// with layouts, of the same shape.
LogicalResult ReduceScatterOp::verify() {
  if (failed(checkReduce(*this, getReduce())) || failed(checkCount(*this))) {
    return failure();
  }
  if (isGlobal(*this)) {
    return checkGlobal(*this, 4);
  }
  return checkBucket(*this, 4, -1, getDim());
}

// (2) `split_dim` divided, `dim` multiplied by the number of members; with layouts, the same shape.
LogicalResult AllToAllOp::verify() {
  return isGlobal(*this) ? checkGlobal(*this, 2) : checkMoved(*this, 2, getX(), getY(), getDim(), getSplitDim());
}

// (1) Boxes are lists of as many numbers as the tensor's dimensions ask for.
LogicalResult ReceiveOp::verify() {
  const auto boxes = getBoxes();
  const int64_t each = 2 + 3 * tensor(getY()).getRank();
  if (boxes && boxes->size() % each != 0) {
    return error(*this, 1) << "boxes has " << boxes->size() << " numbers, each box of " << getY().getType() << " takes "
                           << each;
  }
  return success();
}

// (1) The same type. (2) Layouts of so many dimensions.
LogicalResult PermuteOp::verify() {
  if (failed(checkSame(*this, 1, getX(), getY()))) {
    return failure();
  }
  for (LayoutAttr layout : {getFrom(), getTo()}) {
    const auto at = [&] { return error(*this, 2); };
    if (failed(layout.verifyEncoding(tensor(getX()).getShape(), tensor(getX()).getElementType(), at))) {
      return failure();
    }
  }
  return success();
}

// (1) Same element type and number of dimensions. (2) The result is not larger.
LogicalResult DynamicSliceOp::verify() {
  RankedTensorType from = tensor(getX());
  RankedTensorType to = tensor(getY());
  if (from.getElementType() != to.getElementType() || from.getRank() != to.getRank()) {
    return error(*this, 1) << from << " and " << to << " must have the same element type and number of dimensions";
  }
  for (auto [larger, smaller] : llvm::zip(from.getShape(), to.getShape())) {
    if (smaller > larger) {
      return error(*this, 2) << "result " << to << " is larger than the operand " << from;
    }
  }
  return success();
}

// (1) The same type. (2) dims exist, one valid for each. (3) Runs fill one of them.
LogicalResult MaskPadOp::verify() {
  if (failed(checkSame(*this, 1, getX(), getY()))) {
    return failure();
  }
  bool exist = llvm::all_of(getDims(), [&](int64_t dim) { return dim >= 0 && dim < tensor(getX()).getRank(); });
  if (!exist || getDims().size() != getValid().size()) {
    return error(*this, 2) << "dims and valid must be lists of equal length that name dimensions of "
                           << getX().getType();
  }
  const int64_t dim = getRunDim();
  if (dim != -1 &&
      (!llvm::is_contained(getDims(), dim) || getRun() < 1 || getStride() < getRun() ||
       getStride() > kMaxBytes / tensor(getX()).getDimSize(dim) || tensor(getX()).getDimSize(dim) % getRun() != 0)) {
    return error(*this, 3) << "runs of " << getRun() << ", " << getStride() << " apart, in dimension " << dim << " of "
                           << getX().getType() << "; they must divide one of dims, and not overlap";
  }
  return success();
}

// (1) Whole and result have the same type. (2) Same element type and number of dimensions, and x is not larger.
LogicalResult DynamicUpdateSliceOp::verify() {
  if (failed(checkSame(*this, 1, getWhole(), getY()))) {
    return failure();
  }
  RankedTensorType whole = tensor(getWhole());
  RankedTensorType part = tensor(getX());
  bool fits = whole.getElementType() == part.getElementType() && whole.getRank() == part.getRank();
  for (int64_t d = 0; fits && d < whole.getRank(); ++d) {
    fits = part.getDimSize(d) <= whole.getDimSize(d);
  }
  return fits ? success() : LogicalResult(error(*this, 2) << part << " is no part of " << whole);
}

// (1) All three have the same type. (2) A known reduction.
LogicalResult AccumulateOp::verify() {
  return success(succeeded(checkSame(*this, 1, getAcc(), getX())) && succeeded(checkSame(*this, 1, getAcc(), getY())) &&
                 succeeded(checkReduce(*this, getReduce())));
}

// (1) acc and the result have the same type. (2) By the specification it is the product of a and b.
LogicalResult ContractAccumulateOp::verify() {
  if (failed(checkSame(*this, 1, getAcc(), getY()))) {
    return failure();
  }
  KernelSpec kernel{kContractAccumulateKernel, {}, {}, {{"spec", getSpec().str()}}, 1};
  for (mlir::Value operand : getOperands()) {
    kernel.inputs.push_back({DType::kF32, tensor(operand).getShape().vec()});
  }
  kernel.outputs.push_back(kernel.inputs[0]);
  const absl::StatusOr<Contraction> made = contractionOf(kernel);
  return made.ok() ? success() : LogicalResult(error(*this, 2) << std::string(made.status().message()));
}

}  // namespace weft::ir::dist
