// Attributes of an operator as its kernel receives them (kernels/describe/attributes.h).
#pragma once

#include "kernels/describe/attributes.h"
#include "mlir/IR/Operation.h"

namespace weft::ir {

// Every attribute without a dialect prefix that a kernel can read: bool and integers as int64, floats as double,
// strings, lists of integers or floats. Of a user's own operator those that he gave it. Tensors of elements
// (nn.constant) are left out: they become buffers.
AttributeMap kernelAttributes(mlir::Operation* op);

}  // namespace weft::ir
