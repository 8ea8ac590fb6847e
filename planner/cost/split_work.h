// What one rank has of the operator of a program, however a plan splits it.
//
// A plan gives each factor of an operator some of the axes of its submesh, so that on P ranks the parts of all factors
// multiply to at most P; the batch is cut into m micro-batches besides. Factors that stand in the same tensors count as
// one, of a product by their role, and nothing is padded: both only make kernels smaller. The size of each role of a
// product is rounded up, so that every kernel has the waves of tiles that it does not fill.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "planner/cost/product_families.h"
#include "planner/graph/graph_view.h"
#include "planner/machine/times.h"

namespace weft {

// How a plan divides ranks and batch: each of its submeshes has so many ranks, its step so many micro-batches.
struct WorkGrid {
  int64_t ranks = 1;
  int64_t microBatches = 1;
};

// When an operator runs in every plan.
//   kPerhapsNever   counts nothing
//   kAtLeastOnce    once in a step or, with work as large, more often
//   kWholeBatch     together for the whole batch: it depends on inputs alone and may run before the micro-batches
//   kPerMicroBatch  for each micro-batch
enum class WorkRuns : uint8_t { kPerhapsNever, kAtLeastOnce, kWholeBatch, kPerMicroBatch };

using Parts = std::array<int64_t, kRoles>;  // of each role

// All ways to give the ranks to the roles of a product; to its batch only where it has one.
std::vector<Parts> splitsOf(int64_t ranks, bool hasBatch);

struct SplitWork {
  // What a tensor of the whole program has.
  struct Tensor {
    double bytes = 0;
    unsigned roles = 0;  // a bit for each role of a factor that stands in it

    // Into how many parts it is split.
    int64_t parts(const Parts& parts) const;
  };
  KernelWork work;              // of the whole program
  int64_t sums = 1;             // of a product: how many terms each of them has
  std::vector<Tensor> tensors;  // operands, then results
  int batchRole = -1;           // of the factor that carries the batch
  int64_t sureSum = 0;          // bytes, of the whole batch (sure_sums.h)
  WorkRuns runs = WorkRuns::kAtLeastOnce;

  // `batch`: the factor that carries it where the operator runs for each micro-batch; else -1. Error: a rule that does
  // not fit.
  static absl::StatusOr<SplitWork> of(const GraphView& view, int op, int batch, WorkRuns runs);

  // How often it runs in a step.
  int64_t calls(const WorkGrid& grid) const { return runs == WorkRuns::kPerMicroBatch ? grid.microBatches : 1; }
  // One rank's part of one call.
  KernelWork share(const WorkGrid& grid, const Parts& split) const;
  // Of all of it.
  KernelWork share(const Parts& parts) const;
};

}  // namespace weft
