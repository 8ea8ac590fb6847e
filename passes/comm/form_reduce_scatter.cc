// all_reduce + dynamic_slice = reduce_scatter.
//
// The reshard planner already ends a partial sum in a reduce_scatter where it is wanted split. What is left are sums
// that one reshard makes whole and a later one cuts again. The pattern: every reader of the all_reduce is the same
// dynamic_slice, which keeps part i of n equal parts of one dimension on member i of its group. Whether it does is read
// off the rank table, for every rank.

#include <algorithm>
#include <optional>

#include "ir/dist/dist.h"
#include "ir/layout/reshard.h"
#include "ir/program/program.h"
#include "llvm/ADT/STLExtras.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"
#include "passes/logical/request_attributes.h"

namespace weft {

#define GEN_PASS_DEF_FORMREDUCESCATTERPASS
#include "passes/generated/passes.h.inc"

namespace {

using namespace mlir;  // NOLINT: the file is about MLIR types throughout

// Where a dynamic_slice starts on each rank, read off dist.scalars and the module's rank table.
class Starts {
 public:
  explicit Starts(ModuleOp module) : table_(module->getAttrOfType<DenseIntElementsAttr>(kRankTableAttr)) {}

  // Nothing if the start depends on the micro-batch, or on a table that is not there.
  std::optional<int64_t> at(ir::dist::ScalarAttr scalar, int64_t rank) const {
    if (scalar.getMicroBatchFactor() != 0) {
      return std::nullopt;
    }
    if (scalar.getColumn() < 0) {
      return scalar.getImmediate();
    }
    if (!table_ || rank >= table_.getType().getDimSize(0) || scalar.getColumn() >= table_.getType().getDimSize(1)) {
      return std::nullopt;
    }
    const int64_t index = rank * table_.getType().getDimSize(1) + scalar.getColumn();
    return scalar.getImmediate() + table_.getValues<int64_t>()[index];
  }

 private:
  DenseIntElementsAttr table_;
};

// The dimension in which `slice` keeps one of `parts` equal parts; nothing if it cuts otherwise.
std::optional<int64_t> cutDimension(ir::dist::DynamicSliceOp slice, int64_t parts) {
  auto from = cast<RankedTensorType>(slice.getX().getType());
  auto to = cast<RankedTensorType>(slice.getY().getType());
  std::optional<int64_t> dim;
  for (int64_t d = 0; d < from.getRank(); ++d) {
    if (from.getDimSize(d) == to.getDimSize(d)) {
      continue;
    }
    if (dim || to.getDimSize(d) * parts != from.getDimSize(d)) {
      return std::nullopt;
    }
    dim = d;
  }
  return dim;
}

// Does member i of every group keep part i along `dim`?
bool keepsOwnPart(ir::dist::DynamicSliceOp slice, int64_t dim, const std::vector<std::vector<int64_t>>& groups,
                  const Starts& starts) {
  auto scalars = slice->getAttrOfType<ArrayAttr>(kScalarsAttr);
  const int64_t part = cast<RankedTensorType>(slice.getY().getType()).getDimSize(dim);
  if (!scalars) {
    return false;
  }
  for (const std::vector<int64_t>& group : groups) {
    for (size_t member = 0; member < group.size(); ++member) {
      for (const auto& [d, scalar] : llvm::enumerate(scalars.getAsRange<ir::dist::ScalarAttr>())) {
        const int64_t wanted = static_cast<int64_t>(d) == dim ? static_cast<int64_t>(member) * part : 0;
        if (starts.at(scalar, group[member]) != wanted) {
          return false;
        }
      }
    }
  }
  return true;
}

// The slices that read `op`, if there is nothing else and all keep the same.
SmallVector<ir::dist::DynamicSliceOp> equalSlices(ir::dist::AllReduceOp op) {
  SmallVector<ir::dist::DynamicSliceOp> slices;
  for (Operation* user : op->getUsers()) {
    auto slice = dyn_cast<ir::dist::DynamicSliceOp>(user);
    if (!slice || (!slices.empty() && (slice.getType() != slices[0].getType() ||
                                       slice->getAttr(kScalarsAttr) != slices[0]->getAttr(kScalarsAttr)))) {
      return {};
    }
    slices.push_back(slice);
  }
  return slices;
}

// Each member of a group keeps one part of a dimension.
struct Cut {
  int64_t dim;
  GroupSpan span;
};

void replace(ir::dist::AllReduceOp op, ArrayRef<ir::dist::DynamicSliceOp> slices, Cut cut, const Machine& machine) {
  OpBuilder builder(op);
  // An all_reduce is a reduce_scatter and an all_gather; the second half is saved.
  const int64_t received = op.getBytesReceived() / 2;
  const Picoseconds cost = collectiveCost(machine, CollectiveKind::kReduceScatter, cut.span, received);
  auto scatter = builder.create<ir::dist::ReduceScatterOp>(op.getLoc(), TypeRange(slices.front()->getResultTypes()),
                                                           op->getOperands(), op.getOver(), cut.dim, op.getReduce(),
                                                           op.getReason(), inSeconds(cost), received);
  if (Attribute name = op->getAttr(kNameAttr)) {
    scatter->setAttr(kNameAttr, name);
  }
  for (ir::dist::DynamicSliceOp slice : slices) {
    slice.getY().replaceAllUsesWith(scatter->getResult(0));
    slice.erase();
  }
  op.erase();
}

class FormReduceScatterPass : public impl::FormReduceScatterPassBase<FormReduceScatterPass> {
 public:
  void runOnOperation() override {
    if (failed(forEachSubmesh(getOperation(), formIn))) {
      signalPassFailure();
    }
  }

 private:
  static LogicalResult formIn(ModuleOp submesh, const Machine& machine) {
    const Starts starts(submesh);
    const FailureOr<Mesh> mesh = meshOf(submesh);
    if (failed(mesh)) {
      return failure();
    }
    SmallVector<ir::dist::AllReduceOp> reductions;
    submesh.walk([&](ir::dist::AllReduceOp op) { reductions.push_back(op); });
    for (ir::dist::AllReduceOp op : reductions) {
      const auto slices = op->getNumOperands() == 1 ? equalSlices(op) : SmallVector<ir::dist::DynamicSliceOp>();
      const FailureOr<AxisList> axes = ir::dist::axesOver(op, *mesh);
      if (failed(axes)) {
        return failure();
      }
      const int64_t parts = partsOf(*axes);
      const std::optional<int64_t> dim = slices.empty() ? std::nullopt : cutDimension(slices[0], parts);
      if (dim && keepsOwnPart(slices[0], *dim, mesh->groups(*axes), starts)) {
        replace(op, slices, {*dim, spanOf(machine, mesh->ranks(), *axes)}, machine);
      }
    }
    return success();
  }
};

}  // namespace
}  // namespace weft
