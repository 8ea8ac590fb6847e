// Phase `comm`: fewer, larger and cheaper collectives. Works on the local state.
#pragma once

#include <cstdint>
#include <memory>

#include "mlir/Pass/Pass.h"

namespace weft {

// An all_reduce of which every rank only keeps its own part of one dimension becomes a reduce_scatter: half the
// traffic.
std::unique_ptr<mlir::Pass> createFormReduceScatterPass();

// Joins independent all_reduces (and reduce_scatters) of a function that have the same groups, reduction and element
// type into one op of several operands, up to `bucketBytes` of operands each. A single larger collective stands alone.
std::unique_ptr<mlir::Pass> createFormBucketsPass(int64_t bucketBytes = int64_t{64} << 20);

}  // namespace weft
