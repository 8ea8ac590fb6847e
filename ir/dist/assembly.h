// The text of operators of nn and dist.
//
//   %1 = nn.matmul %0, %w {transpose_b = true} : (8x4xf32 "[{dp},{}]", 6x4xf32 "[{},{}]") -> 8x6xf32 "[{dp},{}]"
//   %2 = nn.tanh %1 : 8x6xf32 "[{dp},{}]"
//
// A tensor is its shape, its element type, and in quotes its layout if it has one. Where an operator makes one result
// and all its operands have the type of that result, the type is written once. Attributes with their default values are
// not written. Types are read in MLIR's form, tensor<8x6xf32, #dist.layout<"[{dp},{}]">>, as well.
#pragma once

#include "mlir/IR/OpImplementation.h"

namespace weft::ir::dist {

mlir::ParseResult parseOperator(mlir::OpAsmParser& parser, mlir::OperationState& state);
void printOperator(mlir::OpAsmPrinter& printer, mlir::Operation* op);

}  // namespace weft::ir::dist
