// Operators that a user registers (frontend/weft/own_operator.h).
#ifndef WEFT_IR_NN_CUSTOM
#define WEFT_IR_NN_CUSTOM

include "ir/nn/nn_base.td"

def Nn_CustomOp : Nn_Op<"custom"> {
  let summary = "the operator `kind` of a user; what the compiler knows of it stands in its attributes";
  let description = [{
    `factors` is its rule, `linear` a list of lists of operands in which it is jointly linear, `work` the operations for
    each element of its results. Other attributes are those of its kernel. Its gradient is registered by its kind.
  }];
  let arguments = (ins Variadic<Nn_Tensor>:$xs, StrAttr:$kind, StrAttr:$factors, ArrayAttr:$linear, Nn_Real:$work);
  let results = (outs Variadic<Nn_Tensor>:$ys);
  let rule = "getFactors().str()";
  let linear = "rules::listedSets(getLinear())";
  let padFill = "std::nullopt";
  let flops = "static_cast<int64_t>(getWork() * static_cast<double>(::weft::ir::elementwiseFlops(*this)))";
  let hasVerifier = 1;
}

#endif
