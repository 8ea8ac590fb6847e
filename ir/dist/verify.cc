// Verifiers of the dist operators. Each lists its numbered checks.
#include "ir/dist/dist.h"
#include "llvm/ADT/SmallSet.h"

namespace weft::ir::dist {

using mlir::failed;
using mlir::failure;
using mlir::LogicalResult;
using mlir::RankedTensorType;
using mlir::success;

llvm::SmallVector<llvm::SmallVector<int64_t>> groupLists(mlir::ArrayAttr groups) {
  llvm::SmallVector<llvm::SmallVector<int64_t>> lists;
  for (mlir::Attribute group : groups) {
    auto members = llvm::dyn_cast<mlir::ArrayAttr>(group);
    if (!members) {
      return {};
    }
    lists.emplace_back();
    for (mlir::Attribute member : members) {
      auto rank = llvm::dyn_cast<mlir::IntegerAttr>(member);
      if (!rank || !rank.getType().isSignlessInteger(64)) {
        return {};
      }
      lists.back().push_back(rank.getInt());
    }
  }
  return lists;
}

mlir::ArrayAttr groupsAttr(mlir::MLIRContext* context, const std::vector<std::vector<int64_t>>& groups) {
  mlir::Builder builder(context);
  llvm::SmallVector<mlir::Attribute> lists;
  for (const std::vector<int64_t>& group : groups) {
    lists.push_back(builder.getI64ArrayAttr(group));
  }
  return builder.getArrayAttr(lists);
}

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

// (1) At least one group, all of one size, no rank twice.
LogicalResult checkGroups(mlir::Operation* op, mlir::ArrayAttr groups) {
  auto lists = groupLists(groups);
  llvm::SmallSet<int64_t, 16> seen;
  if (lists.empty() || lists.front().empty()) {
    return error(op, 1) << "groups are " << groups << "; expected lists of ranks like [[0, 1], [2, 3]]";
  }
  for (const auto& group : lists) {
    if (group.size() != lists.front().size()) {
      return error(op, 1) << "groups have " << lists.front().size() << " and " << group.size()
                          << " members; all need the same number";
    }
    for (int64_t rank : group) {
      if (!seen.insert(rank).second || rank < 0) {
        return error(op, 1) << "rank " << rank << " stands twice in the groups or is negative";
      }
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

// The result is x with dimension `dim` multiplied by `times` and dimension `cut` divided by it (-1: none).
LogicalResult checkMoved(mlir::Operation* op, int check, mlir::Value x, mlir::Value y,
                         std::array<int64_t, 3> dimCutTimes) {
  auto [dim, cut, times] = dimCutTimes;
  int64_t rank = tensor(x).getRank();
  if (dim >= rank || cut >= rank || dim < -1 || cut < -1) {
    return error(op, check) << "dimension " << std::max(dim, cut) << " is not one of " << x.getType();
  }
  llvm::SmallVector<int64_t> expected(tensor(x).getShape());
  if (cut >= 0 && expected[cut] % times != 0) {
    return error(op, check) << "dimension " << cut << " of " << x.getType() << " does not divide by the group size "
                            << times;
  }
  if (cut >= 0) {
    expected[cut] /= times;
  }
  if (dim >= 0) {
    expected[dim] *= times;
  }
  if (tensor(y).getShape() != llvm::ArrayRef<int64_t>(expected) ||
      tensor(x).getElementType() != tensor(y).getElementType()) {
    return error(op, check) << "result is " << y.getType() << "; expected "
                            << RankedTensorType::get(expected, tensor(x).getElementType());
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

// (1) Groups. (2) Reduction. (3) One result for each operand. (4) Of the same type.
LogicalResult AllReduceOp::verify() {
  if (failed(checkGroups(*this, getGroups())) || failed(checkReduce(*this, getReduce())) || failed(checkCount(*this))) {
    return failure();
  }
  for (auto [x, y] : llvm::zip(getInputs(), getOutputs())) {
    if (failed(checkSame(*this, 4, x, y))) {
      return failure();
    }
  }
  return success();
}

// (1) Groups. (2) The result is x with `dim` multiplied by the group size; with layouts, the same shape.
LogicalResult AllGatherOp::verify() {
  if (failed(checkGroups(*this, getGroups()))) {
    return failure();
  }
  return isGlobal(*this) ? checkGlobal(*this, 2) : checkMoved(*this, 2, getX(), getY(), {getDim(), -1, getGroupSize()});
}

// (1) Groups. (2) Reduction. (3) One result for each operand. (4) With `dim` divided by the group size; with layouts,
// of the same shape.
LogicalResult ReduceScatterOp::verify() {
  if (failed(checkGroups(*this, getGroups())) || failed(checkReduce(*this, getReduce())) || failed(checkCount(*this))) {
    return failure();
  }
  if (isGlobal(*this)) {
    return checkGlobal(*this, 4);
  }
  for (auto [x, y] : llvm::zip(getInputs(), getOutputs())) {
    if (failed(checkMoved(*this, 4, x, y, {-1, getDim(), getGroupSize()}))) {
      return failure();
    }
  }
  return success();
}

// (1) Groups. (2) `split_dim` divided, `dim` multiplied by the group size; with layouts, the same shape.
LogicalResult AllToAllOp::verify() {
  if (failed(checkGroups(*this, getGroups()))) {
    return failure();
  }
  return isGlobal(*this) ? checkGlobal(*this, 2)
                         : checkMoved(*this, 2, getX(), getY(), {getDim(), getSplitDim(), getGroupSize()});
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

// (1) The same type. (2) Every source is a rank.
LogicalResult PermuteOp::verify() {
  if (failed(checkSame(*this, 1, getX(), getY()))) {
    return failure();
  }
  int64_t ranks = static_cast<int64_t>(getSource().size());
  for (int64_t source : getSource()) {
    if (source < 0 || source >= ranks) {
      return error(*this, 2) << "source " << source << " is not one of " << ranks << " ranks";
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

// (1) The same type. (2) dims exist, one valid for each.
LogicalResult MaskPadOp::verify() {
  if (failed(checkSame(*this, 1, getX(), getY()))) {
    return failure();
  }
  bool exist = llvm::all_of(getDims(), [&](int64_t dim) { return dim >= 0 && dim < tensor(getX()).getRank(); });
  if (!exist || getDims().size() != getValid().size()) {
    return error(*this, 2) << "dims and valid must be lists of equal length that name dimensions of "
                           << getX().getType();
  }
  return success();
}

// (1) All three have the same type.
LogicalResult AccumulateOp::verify() {
  return success(succeeded(checkSame(*this, 1, getAcc(), getX())) && succeeded(checkSame(*this, 1, getAcc(), getY())));
}

}  // namespace weft::ir::dist
