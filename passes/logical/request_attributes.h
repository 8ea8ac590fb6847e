// A request (planner/request.h) as attributes of a module: dist.mesh, dist.stage_meshes, nn.options, nn.layouts and
// nn.optimizer, as docs/ir.md lists them. The one place that reads them as a whole, whoever wrote them.
#pragma once

#include "absl/status/statusor.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"
#include "planner/machine/machine.h"
#include "planner/request.h"

namespace weft {

// What the module asks for; what it does not say has the request's defaults. Errors: an entry that is unknown, has
// another type than it should, or is none of the words it may be. Whether the values make sense is for checkRequest.
absl::StatusOr<Request> requestOf(mlir::ModuleOp module);
// The same for a pass: an error is reported on the module.
mlir::FailureOr<Request> readRequest(mlir::ModuleOp module);

// Calls `visit` for each of submeshesOf(), in their order, with what it runs on, of the machine of the request; an
// error of the request is reported on the module.
mlir::LogicalResult forEachSubmesh(mlir::ModuleOp module,
                                   llvm::function_ref<mlir::LogicalResult(mlir::ModuleOp, const Machine&)> visit);

// Writes a request that checkRequest takes; replaces what the module says.
void setRequest(mlir::ModuleOp module, const Request& request);

// An optimizer as a dictionary, as nn.optimizer holds it: of the module, and of a gradient of the user's own on a
// result of @step.
mlir::DictionaryAttr optimizerAttribute(mlir::Builder& builder, const Optimizer& optimizer);
absl::StatusOr<Optimizer> optimizerOf(mlir::Attribute attribute);

// What a logical module's @step says of itself; empty without one.
ProgramOutline outlineOf(mlir::ModuleOp module);

}  // namespace weft
