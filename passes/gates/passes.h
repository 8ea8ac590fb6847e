// Gates: verifiers that close a state. Each names what must not be there any more.
#pragma once

#include <memory>

#include "mlir/Pass/Pass.h"

namespace weft {

// Logical: no layout on any type, no op of the dist dialect, every argument of @step has a kind and a name.
std::unique_ptr<mlir::Pass> createVerifyLogicalPass();
// Annotated: every tensor has a layout that divides its stored shape; the layouts an operator reads and leaves are
// those of its rule for one choice of axes; sums are partial only where the operator is linear; every op names its
// function.
std::unique_ptr<mlir::Pass> createVerifyAnnotatedPass();
// Local: no layout, no reshard, nothing but the known functions; every argument and result has a dist.value and a
// memory.
std::unique_ptr<mlir::Pass> createVerifyLocalPass();
// Scheduled: local, and all numbers are there: one type and memory class for each named value, groups that cover the
// mesh, scalars within the rank table, a slice of every named tensor for every rank.
std::unique_ptr<mlir::Pass> createVerifyScheduledPass();

}  // namespace weft
