// Which rows of the batch a rank has in one micro-batch.
//
// The batch is cut into stripes of equal length, and each stripe into the micro-batches: micro-batch p is the p-th
// part of every stripe. Its rows, numbered through the stripes, are split evenly over the ranks of a mesh. Example:
// 24 rows, 2 stripes, 3 micro-batches: micro-batch 1 is rows 4:8 and 16:20; on dp=2 each rank has one of the two parts,
// on dp=1 the rank has both. With as many stripes as ranks split the batch (any program whose submeshes have one mesh)
// a rank's rows of a micro-batch are one run.
#pragma once

#include <cstdint>
#include <vector>

#include "ir/layout/across.h"
#include "ir/layout/layout.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "passes/partition/value_layouts.h"

namespace weft {

struct MicroBatchRows {
  int64_t batch = 0;           // rows of the whole batch, stored
  int64_t local = 0;           // of one micro-batch on one rank
  int64_t part = 0;            // of one micro-batch in one stripe
  int64_t stripes = 0;         // of the batch
  std::vector<int64_t> first;  // number, within the micro-batch, of a rank's first row; by rank

  // Whole parts of stripes on each rank; 0 if they are not whole.
  int64_t localStripes() const { return part > 0 && local % part == 0 ? local / part : 0; }
  // Are a rank's rows of a micro-batch one run of the batch?
  bool oneRun() const { return part > 0 && part % local == 0; }
  // Place in the batch of each rank's first row of micro-batch 0.
  std::vector<int64_t> origins() const;
  // The stripe of each rank's first row.
  std::vector<int64_t> firstStripes() const;
};

// `layout` splits a dimension of a tensor of `shape` over time.
MicroBatchRows microBatchRows(const Shape& shape, const Placed& placed, int64_t stripes);

// Stripes of the batch: the ways in which the inputs split it, or dist.stripes where stage meshes differ.
int64_t countStripes(mlir::func::FuncOp step, const ValueLayouts& layouts);

// `shape` with the rows of dimension `dim` seen as major x minor.
Shape rowsSeenAs(Shape shape, int dim, int64_t major, int64_t minor);

// For each box: source, target, then for each dimension offset at the source, offset at the target, size.
std::vector<int64_t> flatBoxes(const std::vector<TransferBox>& boxes);

}  // namespace weft
