// Phase `comm`: fewer, larger collectives.
#pragma once

#include <memory>

#include "mlir/Pass/Pass.h"

namespace weft {

// Joins independent all_reduces of a function that have the same groups, reduction and element type into one of several
// operands, up to `bucketBytes` of operands each.
std::unique_ptr<mlir::Pass> createFormBucketsPass(int64_t bucketBytes = int64_t{64} << 20);

}  // namespace weft
