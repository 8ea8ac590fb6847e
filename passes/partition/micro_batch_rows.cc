#include "passes/partition/micro_batch_rows.h"

#include <algorithm>

namespace weft {

Layout withoutTime(const Layout& layout) {
  Layout space = layout;
  for (size_t d = 0; d < layout.dimensions(); ++d) {
    std::vector<Axis> axes = layout.dim(d);
    std::erase_if(axes, isTime);
    space.setDim(d, axes);
    space.setPad(d, 0);
  }
  std::vector<Partial> partial = layout.partial();
  std::erase_if(partial, [](const Partial& p) { return isTime(p.axis); });
  space.setPartial(partial);
  return space;
}

bool partialOverTime(const Layout& layout) {
  return std::any_of(layout.partial().begin(), layout.partial().end(), [](const Partial& p) { return isTime(p.axis); });
}

int timeDim(const Layout& layout) {
  for (size_t d = 0; d < layout.dimensions(); ++d) {
    if (std::any_of(layout.dim(d).begin(), layout.dim(d).end(), isTime)) {
      return static_cast<int>(d);
    }
  }
  return -1;
}

Shape microBatchShape(const Shape& shape, const Layout& layout, int64_t microBatches) {
  Shape microBatch = layout.storedShape(shape);
  if (const int dim = timeDim(layout); dim >= 0) {
    microBatch[dim] /= microBatches;
  }
  return microBatch;
}

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
