#include "passes/partition/micro_batch_rows.h"

#include "ir/nn/operator_interface.h"
#include "ir/program/program.h"
#include "planner/step/time_layouts.h"

namespace weft {

std::vector<int64_t> MicroBatchRows::origins() const {
  std::vector<int64_t> origins;
  for (const int64_t row : first) {
    origins.push_back(row / part * (batch / stripes) + row % part);
  }
  return origins;
}

std::vector<int64_t> MicroBatchRows::firstStripes() const {
  std::vector<int64_t> numbers;
  for (const int64_t row : first) {
    numbers.push_back(row / part);
  }
  return numbers;
}

MicroBatchRows microBatchRows(const Shape& shape, const Placed& placed, int64_t stripes) {
  const int dim = timeDim(placed.layout);
  MicroBatchRows rows;
  rows.batch = placed.layout.storedShape(shape)[dim];
  rows.local = placed.layout.localShape(shape)[dim];
  // A dimension of one row for each micro-batch (a statistic's) is no batch: that has a row in each stripe for each
  // micro-batch.
  rows.stripes = rows.batch == placed.mesh.microBatches() ? 1 : stripes;
  rows.part = rows.batch / (rows.stripes * placed.mesh.microBatches());
  for (int64_t rank = 0; rank < placed.mesh.ranks(); ++rank) {
    // Without time each rank has the rows of all its micro-batches.
    rows.first.push_back(placed.layout.slice(shape, placed.mesh, rank).offset[dim] / placed.mesh.microBatches());
  }
  return rows;
}

int64_t countStripes(mlir::func::FuncOp step, const ValueLayouts& layouts) {
  if (auto given = step->getParentOfType<mlir::ModuleOp>()->getAttrOfType<mlir::IntegerAttr>(kStripesAttr)) {
    return std::max<int64_t>(given.getInt(), 1);
  }
  for (const Argument& argument : argumentsOf(step)) {
    auto dim = step.getArgAttrOfType<mlir::IntegerAttr>(argument.index, kBatchDimAttr);
    const Shape shape = ir::shapeOf(step.getArgument(argument.index));
    const int64_t d = dim ? dim.getInt() : 0;
    const bool inside = d >= 0 && d < static_cast<int64_t>(shape.size());
    if (argument.kind == "input" && inside && shape[d] > 1) {
      return layouts.of(step.getArgument(argument.index)).parts(d);
    }
  }
  return 1;
}

Shape rowsSeenAs(Shape shape, int dim, int64_t major, int64_t minor) {
  shape[dim] = major;
  shape.insert(shape.begin() + dim + 1, minor);
  return shape;
}

std::vector<int64_t> flatBoxes(const std::vector<TransferBox>& boxes) {
  std::vector<int64_t> flat;
  for (const TransferBox& box : boxes) {
    flat.insert(flat.end(), {box.source, box.target});
    for (size_t d = 0; d < box.size.size(); ++d) {
      flat.insert(flat.end(), {box.sourceOffset[d], box.targetOffset[d], box.size[d]});
    }
  }
  return flat;
}

}  // namespace weft
