// The gradient as an operator, before it is made of others.
#ifndef WEFT_IR_NN_GRADIENT
#define WEFT_IR_NN_GRADIENT

include "ir/nn/nn_base.td"

// It has no rule and no kernel: --weft-build-gradients, the second phase, differentiates what lies between.
def Nn_GradientOp : Op<Nn_Dialect, "gradient", [Pure]> {
  let summary = "for each x of `xs` the gradient of the scalar y: tensors like them";
  let arguments = (ins Nn_Float:$y, Variadic<Nn_Float>:$xs);
  let results = (outs Variadic<Nn_Float>:$gradients);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let extraClassDefinition = [{
    ::mlir::ParseResult $cppClass::parse(::mlir::OpAsmParser& parser, ::mlir::OperationState& state) {
      return ::weft::ir::dist::parseOperator(parser, state);
    }
    void $cppClass::print(::mlir::OpAsmPrinter& printer) { ::weft::ir::dist::printOperator(printer, *this); }
  }];
}

#endif
