// The elements of a constant as the bytes of a CONSTANT buffer.
#pragma once

#include <string>

#include "ir/nn/nn.h"

namespace weft {

// Little-endian, row-major, bool as one byte. Fails, with the reason on the op, for elements that are not in the
// module.
mlir::FailureOr<std::string> constantData(ir::nn::ConstantOp op);

}  // namespace weft
