#include "tests/passes/plan/planned.h"

#include "ir/program/program.h"
#include "ir/registry.h"
#include "mlir/IR/OwningOpRef.h"
#include "passes/compile.h"

namespace weft::testing {

absl::StatusOr<plan::Plan> planned(mlir::ModuleOp local) {
  mlir::OwningOpRef<mlir::ModuleOp> copy(local.clone());
  (*copy)->setAttr(kPhaseDoneAttr, mlir::StringAttr::get(local.getContext(), "form-buckets"));
  return compileModule(*copy, ir::OperatorRegistry::builtin(), {});
}

}  // namespace weft::testing
