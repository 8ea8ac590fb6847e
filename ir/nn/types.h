// Element types: MLIR's and Weft's (runtime/base/dtype.h).
#pragma once

#include <optional>

#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Value.h"
#include "runtime/base/dtype.h"

namespace weft::ir {

// The element type of a tensor or scalar type; nothing for one that Weft does not know.
std::optional<DType> dtypeOf(mlir::Type type);
// Has the tensor elements of floating point?
bool isFloat(mlir::Value tensor);
mlir::Type elementTypeOf(mlir::MLIRContext* context, DType type);

}  // namespace weft::ir
