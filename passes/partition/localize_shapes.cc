// Makes the functions those of one rank: local shapes in place of global ones with layouts, and origins.
//
// What differs between ranks (the place of a rank's part in the tensor, the starts of slices) becomes columns of the
// rank table, on which operators have scalars. First the origins, while types still say the layouts; then the types.

#include <vector>

#include "ir/dist/dist.h"
#include "ir/nn/nn.h"
#include "ir/nn/operator_interface.h"
#include "ir/program/program.h"
#include "mlir/IR/Builders.h"
#include "passes/partition/micro_batch_rows.h"
#include "passes/partition/rank_table.h"
#include "passes/partition/value_layouts.h"
#include "planner/step/time_layouts.h"

namespace weft {

#define GEN_PASS_DEF_LOCALIZESHAPESPASS
#include "passes/generated/passes.h.inc"

namespace {

using namespace mlir;  // NOLINT

ModuleMeshes single(const Mesh& mesh) {
  ModuleMeshes meshes;
  meshes.ofSubmesh = {mesh};
  return meshes;
}

Value view(OpBuilder& builder, Value value, RankedTensorType type) {
  OperationState state(value.getLoc(), ir::nn::ReshapeOp::getOperationName());
  state.addOperands(value);
  state.addTypes(type);
  return builder.create(state)->getResult(0);
}

void setScalars(Operation* op, ArrayRef<Attribute> scalars) {
  if (!scalars.empty()) {
    op->setAttr(kScalarsAttr, ArrayAttr::get(op->getContext(), scalars));
  }
}

void setGlobalShape(Operation* op, const Shape& shape) {
  op->setAttr("global_shape", DenseI64ArrayAttr::get(op->getContext(), shape));
}

// The functions of one submesh.
class ShapeLocalizer {
 public:
  ShapeLocalizer(const Mesh& mesh, int64_t stripes)
      : mesh_(mesh), stripes_(stripes), table_(mesh), layouts_(single(mesh)) {}

  LogicalResult run(func::FuncOp function) {
    if (failed(layouts_.read(function))) {
      return failure();
    }
    for (Operation& op : llvm::make_early_inc_range(function.getBody().front().without_terminator())) {
      if (failed(giveOrigins(&op))) {
        return failure();
      }
    }
    localizeTypes(function);
    return success();
  }

  const RankTable& table() const { return table_; }

 private:
  LogicalResult giveOrigins(Operation* op) {
    if (isa<ir::nn::ConstantOp>(op)) {
      return sliceConstant(op);
    }
    if (auto slice = dyn_cast<ir::dist::DynamicSliceOp>(op)) {
      return startSlice(slice);
    }
    if (auto update = dyn_cast<ir::dist::DynamicUpdateSliceOp>(op)) {
      return placeMicroBatch(update);
    }
    if (inStripes(op)) {
      return runInStripes(op);
    }
    SmallVector<Attribute> scalars;
    if (auto mask = dyn_cast<ir::dist::MaskPadOp>(op)) {
      if (failed(addOrigins(mask, scalars))) {
        return failure();
      }
    } else if (auto interface = dyn_cast<ir::OperatorInterface>(op)) {
      for (const ir::OriginRequest& request : interface.getOriginRequests()) {
        Value value = request.isResult ? Value(op->getResult(request.index)) : op->getOperand(request.index);
        if (failed(addOrigin(value, request.dim, scalars))) {
          return failure();
        }
      }
      if (interface.needsGlobalShape()) {
        setGlobalShape(op, ir::shapeOf(op->getResult(0)));
      }
    }
    setScalars(op, scalars);
    return success();
  }

  // A mask can fill rows of several stripes.
  LogicalResult addOrigins(ir::dist::MaskPadOp mask, SmallVector<Attribute>& scalars) {
    for (const int64_t dim : mask.getDims()) {
      const bool isRows = dim == timeDim(layouts_.of(mask.getX()));
      const MicroBatchRows rows = isRows ? rowsOf(mask.getX()) : MicroBatchRows();
      if (isRows && rows.localStripes() > 1) {
        mask.setRunDim(dim);
        mask.setRun(rows.part);
        mask.setStride(rows.batch / rows.stripes);
        scalars.push_back(table_.scalar(rows.origins(), rows.part, mask.getContext()));
      } else if (failed(addOrigin(mask.getX(), dim, scalars))) {
        return failure();
      }
    }
    return success();
  }

  LogicalResult addOrigin(Value value, int64_t dim, SmallVector<Attribute>& scalars) {
    const Layout& layout = layouts_.of(value);
    if (dim == timeDim(layout)) {
      return addRowOrigin(value, layout, scalars);
    }
    std::vector<int64_t> offsets;
    for (int64_t rank = 0; rank < mesh_.ranks(); ++rank) {
      offsets.push_back(layout.slice(ir::shapeOf(value), mesh_, rank, 0).offset[dim]);
    }
    scalars.push_back(table_.scalar(offsets, 0, value.getContext()));
    return success();
  }

  MicroBatchRows rowsOf(Value value) const {
    return microBatchRows(ir::shapeOf(value), {layouts_.of(value), mesh_}, stripes_);
  }

  // The place in the batch of a rank's rows of a micro-batch, which they have if they lie in one stripe.
  LogicalResult addRowOrigin(Value value, const Layout& layout, SmallVector<Attribute>& scalars) {
    const MicroBatchRows rows = rowsOf(value);
    if (!rows.oneRun()) {
      const int64_t given = ir::shapeOf(value)[timeDim(layout)];
      const int64_t multiple = rows.stripes * mesh_.microBatches();
      InFlightDiagnostic error = emitError(value.getLoc());
      error << "an operator here needs the place of its rows in the batch, but inside a micro-batch they are "
            << rows.local << " rows of several of the batch's " << rows.stripes << " stripes, ";
      if (rows.batch != given) {
        return error << "as " << given << " rows are padded to " << rows.batch << " for " << mesh_.microBatches()
                     << " micro-batches of " << rows.stripes << " stripes; give a multiple of " << multiple
                     << " rows, or as many micro-batches as divide them";
      }
      return error << "gathered or on a mesh that splits the batch less than another; use micro = 1, or keep the batch "
                      "split as the inputs are";
    }
    scalars.push_back(table_.scalar(rows.origins(), rows.part, value.getContext()));
    return success();
  }

  // Does an operator that numbers all elements (dropout) work on whole stripes of rows, several of them?
  bool inStripes(Operation* op) const {
    auto interface = dyn_cast<ir::OperatorInterface>(op);
    if (!interface || !interface.needsGlobalShape() || mesh_.microBatches() == 1) {
      return false;
    }
    const int dim = timeDim(layouts_.of(op->getResult(0)));
    if (dim < 0) {
      return false;
    }
    // A pad changes the numbers of elements unless the batch is the first dimension.
    const MicroBatchRows rows = rowsOf(op->getResult(0));
    const bool padded = rows.batch != ir::shapeOf(op->getResult(0))[dim];
    return rows.localStripes() > 1 && (!padded || dim == 0);
  }

  // Such an operator sees its rows as [stripes, rows of one]: in [D, B / D] the elements of the batch have the same
  // numbers.
  LogicalResult runInStripes(Operation* op) {
    Value result = op->getResult(0);
    const Layout& layout = layouts_.of(result);
    const RankedTensorType type = localType(result);
    const MicroBatchRows rows = rowsOf(result);
    const int dim = timeDim(layout);
    SmallVector<Attribute> scalars;
    for (int d = 0; d < type.getRank(); ++d) {
      if (d == dim) {
        scalars.push_back(table_.scalar(rows.firstStripes(), 0, op->getContext()));
        scalars.push_back(RankTable::scalar(0, rows.part, op->getContext()));
      } else if (failed(addOrigin(result, d, scalars))) {
        return failure();
      }
    }
    setScalars(op, scalars);
    setGlobalShape(op, rowsSeenAs(ir::shapeOf(result), dim, rows.stripes, rows.batch / rows.stripes));
    const auto seen =
        RankedTensorType::get(rowsSeenAs(type.getShape(), dim, rows.localStripes(), rows.part), type.getElementType());
    OpBuilder before(op);
    for (OpOperand& operand : op->getOpOperands()) {
      if (localType(operand.get()) == type) {
        operand.set(view(before, operand.get(), seen));
      }
    }
    makeSeenAs(result, seen);
    return success();
  }

  // A constant is the same everywhere: each rank takes its part of the whole, which includes the pad. Only a splat,
  // which has any shape, can have one.
  LogicalResult sliceConstant(Operation* op) {
    Value whole = op->getResult(0);
    const Layout& layout = layouts_.of(whole);
    if (layout.hasPad() && !cast<ir::nn::ConstantOp>(op).getValue().isSplat()) {
      return op->emitError("a constant would need a pad here; fill the tensor or split another dimension");
    }
    const auto type = cast<RankedTensorType>(whole.getType());
    const Shape stored = layout.storedShape(ir::shapeOf(whole));
    if (localType(whole).getShape() == ArrayRef<int64_t>(stored)) {
      return success();
    }
    SmallVector<Attribute> starts;
    for (int64_t dim = 0; dim < type.getRank(); ++dim) {
      if (failed(addOrigin(whole, dim, starts))) {
        return failure();
      }
    }
    OpBuilder after(op->getBlock(), std::next(op->getIterator()));
    auto slice = after.create<ir::dist::DynamicSliceOp>(op->getLoc(), type, whole);
    setScalars(slice, starts);
    whole.replaceAllUsesExcept(slice.getY(), slice);
    whole.setType(RankedTensorType::get(stored, type.getElementType()));
    return success();
  }

  // The starts of a slice: of one micro-batch, or of a rank's part of what it has.
  LogicalResult startSlice(ir::dist::DynamicSliceOp slice) {
    const Layout& from = layouts_.of(slice.getX());
    const Layout& to = layouts_.of(slice.getY());
    if (timeDim(to) >= 0 && timeDim(from) < 0) {
      return sliceMicroBatch(slice);
    }
    const Shape shape = microBatchShape(ir::shapeOf(slice.getX()), from, mesh_.microBatches());
    if (timeDim(from) != timeDim(to) || shape != microBatchShape(ir::shapeOf(slice.getY()), to, mesh_.microBatches())) {
      return slice.emitError() << "takes a part of " << from.print(mesh_) << " that lies as " << to.print(mesh_)
                               << "; both should have the same micro-batches and pads";
    }
    SmallVector<Attribute> starts;
    for (size_t d = 0; d < shape.size(); ++d) {
      std::vector<int64_t> offsets;
      for (int64_t rank = 0; rank < mesh_.ranks(); ++rank) {
        offsets.push_back(withoutTime(to).slice(shape, mesh_, rank).offset[d] -
                          withoutTime(from).slice(shape, mesh_, rank).offset[d]);
      }
      starts.push_back(table_.scalar(offsets, 0, slice.getContext()));
    }
    setScalars(slice, starts);
    return success();
  }

  // A micro-batch of the rows this rank has: the same part of each of its stripes of the batch.
  LogicalResult sliceMicroBatch(ir::dist::DynamicSliceOp slice) {
    FailureOr<MicroBatchPart> part = partOfMicroBatch(slice, slice.getY());
    if (failed(part)) {
      return failure();
    }
    setScalars(slice, part->starts);
    if (part->inStripes) {
      OpBuilder before(slice);
      slice.getXMutable().set(view(before, slice.getX(), part->whole));
      makeSeenAs(slice.getY(), part->type);
    }
    return success();
  }

  // The rows of a micro-batch go where they lie among the rows this rank has.
  LogicalResult placeMicroBatch(ir::dist::DynamicUpdateSliceOp update) {
    FailureOr<MicroBatchPart> part = partOfMicroBatch(update, update.getX());
    if (failed(part)) {
      return failure();
    }
    setScalars(update, part->starts);
    if (part->inStripes) {
      OpBuilder before(update);
      update.getWholeMutable().set(view(before, update.getWhole(), part->whole));
      update.getXMutable().set(view(before, update.getX(), part->type));
      makeSeenAs(update.getY(), part->whole);
    }
    return success();
  }

  // The rows of one micro-batch as a part of those that a rank has of all. Of several stripes, rows are seen as
  // [stripes, micro-batches, rows of a part].
  struct MicroBatchPart {
    bool inStripes = false;
    RankedTensorType type;   // of the part
    RankedTensorType whole;  // of all rows, where there are several stripes
    SmallVector<Attribute> starts;
  };

  FailureOr<MicroBatchPart> partOfMicroBatch(Operation* op, Value microBatch) {
    const RankedTensorType type = localType(microBatch);
    const int dim = timeDim(layouts_.of(microBatch));
    const MicroBatchRows rows = rowsOf(microBatch);
    const int64_t stripes = rows.localStripes();
    if (stripes == 0) {
      return op->emitError() << "a rank has " << rows.local * mesh_.microBatches() << " of " << rows.batch
                             << " rows, which are no whole stripes of the batch (" << rows.stripes
                             << "), each cut into " << mesh_.microBatches()
                             << " micro-batches; split the batch as the inputs are",
             failure();
    }
    MicroBatchPart part = {.inStripes = stripes > 1, .type = type};
    Shape cut = type.getShape();
    int along = dim;
    if (part.inStripes) {
      cut = rowsSeenAs(rowsSeenAs(cut, dim, stripes, rows.part), dim, stripes, mesh_.microBatches());
      part.whole = RankedTensorType::get(cut, type.getElementType());
      along = dim + 1;
      cut[along] = 1;
      part.type = RankedTensorType::get(cut, type.getElementType());
    }
    for (size_t d = 0; d < cut.size(); ++d) {
      part.starts.push_back(RankTable::scalar(0, static_cast<int>(d) == along ? cut[d] : 0, op->getContext()));
    }
    return part;
  }

  // The result of an operator has another shape of the same elements; its readers have the old one.
  static void makeSeenAs(Value result, RankedTensorType type) {
    OpBuilder after(result.getContext());
    after.setInsertionPointAfterValue(result);
    Value back = view(after, result, cast<RankedTensorType>(result.getType()));
    result.replaceAllUsesExcept(back, back.getDefiningOp());
    result.setType(type);
  }

  RankedTensorType localType(Value value) const {
    auto tensor = cast<RankedTensorType>(value.getType());
    return RankedTensorType::get(layouts_.of(value).localShape(ir::shapeOf(value)), tensor.getElementType());
  }

  void localizeType(Value value) const {
    if (ir::dist::hasLayout(value.getType())) {
      value.setType(localType(value));
    }
  }

  void localizeTypes(func::FuncOp function) const {
    for (BlockArgument argument : function.getArguments()) {
      localizeType(argument);
    }
    for (Operation& op : function.getBody().front().without_terminator()) {
      for (Value result : op.getResults()) {
        localizeType(result);
      }
      if (auto interface = dyn_cast<ir::OperatorInterface>(op)) {
        interface.localizeAttributes();
      }
    }
    refreshType(function);
  }

  Mesh mesh_;
  int64_t stripes_;  // of the batch
  RankTable table_;
  ValueLayouts layouts_;
};

class LocalizeShapesPass : public impl::LocalizeShapesPassBase<LocalizeShapesPass> {
 public:
  void runOnOperation() override {
    ModuleOp module = getOperation();
    auto stripes = module->getAttrOfType<IntegerAttr>(kStripesAttr);
    if (!stripes) {
      module.emitError() << "has no " << kStripesAttr << "; run --weft-cut-functions first";
      return signalPassFailure();
    }
    for (ModuleOp submesh : submeshesOf(module)) {
      FailureOr<Mesh> mesh = meshOf(submesh);
      if (failed(mesh) || failed(localize(submesh, *mesh, std::max<int64_t>(stripes.getInt(), 1)))) {
        return signalPassFailure();
      }
    }
    module->setAttr(kStateAttr, StringAttr::get(&getContext(), "local"));
  }

 private:
  // The functions of the step first, so that the columns of the rank table are in the order of the step.
  static LogicalResult localize(ModuleOp submesh, const Mesh& mesh, int64_t stripes) {
    ShapeLocalizer localizer(mesh, stripes);
    SmallVector<func::FuncOp> functions = functionsInOrder(submesh);
    llvm::stable_sort(functions,
                      [](func::FuncOp a, func::FuncOp b) { return (kindOf(a) == "init") < (kindOf(b) == "init"); });
    for (func::FuncOp function : functions) {
      if (failed(localizer.run(function))) {
        return failure();
      }
    }
    localizer.table().write(submesh);
    return success();
  }
};

}  // namespace
}  // namespace weft
