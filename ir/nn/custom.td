// Operators that a user registers (frontend/weft/own_operator.h).
#ifndef WEFT_IR_NN_CUSTOM
#define WEFT_IR_NN_CUSTOM

include "ir/nn/nn_base.td"

def Nn_CustomOp : Nn_Op<"custom"> {
  let summary = "the operator `kind` of a user; what the compiler knows of it stands in its attributes";
  let description = [{
    `factors` is its rule, `linear` a list of lists of operands in which it is jointly linear, `work` the operations for
    each element of its results. `origins` lists the offsets that its kernel receives, three numbers for each: 0 for an
    operand or 1 for a result, which one, the dimension. `pad_fill` holds for each operand what padded elements of a
    dimension that is whole must be; a unit attribute, and an operand not listed, refuse pads. `reduce` says for each result how
    it is combined over a split `+` factor: sum, max or min.

    `gradient` names a function of the module: it takes the operands, the results and the gradients of the results of
    float types, and returns the gradients of the operands that `gradient_of` lists. It is gone, with both attributes,
    once the gradients are built.

    Other attributes are those of its kernel. Two of them describe it to the compiler, too (kernels/describe/describe.h).
  }];
  let arguments = (ins Variadic<Nn_Tensor>:$xs, StrAttr:$kind, StrAttr:$factors, ArrayAttr:$linear, Nn_Real:$work,
                   OptionalAttr<DenseI64ArrayAttr>:$origins, OptionalAttr<ArrayAttr>:$pad_fill,
                   OptionalAttr<ArrayAttr>:$reduce, OptionalAttr<FlatSymbolRefAttr>:$gradient,
                   OptionalAttr<DenseI64ArrayAttr>:$gradient_of);
  let results = (outs Variadic<Nn_Tensor>:$ys);
  let rule = "getFactors().str()";
  let linear = "rules::listedSets(getLinear())";
  let reduceKind = "rules::listedReduceKind(getReduceAttr(), result)";
  let origins = "rules::listedOrigins(getOrigins())";
  let padFill = "rules::listedPadFill(getPadFillAttr(), operand)";
  let flops = "::weft::ir::scaledFlops(*this, getWork())";
  let hasVerifier = 1;
}

#endif
