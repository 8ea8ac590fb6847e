// Gates: verifiers that close a state. Each names what must not be there any more.
#pragma once

#include <memory>

#include "mlir/Pass/Pass.h"

namespace weft {

// Logical: no layout on any type, no op of the dist dialect, every argument of @step has a kind and a name.
std::unique_ptr<mlir::Pass> createVerifyLogicalPass();
// Laid out, on the way from logical to annotated: every tensor has a layout that divides its stored shape, every op
// names its function, and the record fits the program; reshards, transfers and masks may be missing.
std::unique_ptr<mlir::Pass> createVerifyLaidOutPass();
// Annotated: every tensor has a layout that divides its stored shape; the layouts an operator reads and leaves are
// those of its rule for one choice of axes; sums are partial only where the operator is linear; every op names its
// function.
std::unique_ptr<mlir::Pass> createVerifyAnnotatedPass();
// Cut, on the way from annotated to local: the functions of the local state, on global shapes with layouts.
std::unique_ptr<mlir::Pass> createVerifyCutPass();
// Local: no layout, no reshard, nothing but the known functions; every argument and result has a dist.value and a
// memory.
std::unique_ptr<mlir::Pass> createVerifyLocalPass();
// Scheduled: local, and all numbers are there: one type and memory class for each named value, groups that cover the
// mesh, scalars within the rank table, a slice of every named tensor for every rank.
std::unique_ptr<mlir::Pass> createVerifyScheduledPass();

}  // namespace weft
