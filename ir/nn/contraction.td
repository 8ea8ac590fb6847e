// Contractions: the operators that do the arithmetic.
#ifndef WEFT_IR_NN_CONTRACTION
#define WEFT_IR_NN_CONTRACTION

include "ir/nn/nn_base.td"

def Nn_MatmulOp : Nn_InferOp<"matmul"> {
  let summary = "a [batch..., m, k] times b [k, n] or [batch..., k, n]; transposes swap the last two dimensions";
  let arguments = (ins Nn_Float:$a, Nn_Float:$b, DefaultValuedAttr<BoolAttr, "false">:$transpose_a,
                       DefaultValuedAttr<BoolAttr, "false">:$transpose_b);
  let results = (outs Nn_Float:$y);
  let rule = "rules::matmul(*this, getTransposeA(), getTransposeB())";
  let linear = "{{0}, {1}}";
  let infer = "infer::matmul(site, adaptor.getA(), adaptor.getB(), adaptor.getTransposeA(), adaptor.getTransposeB())";
  let flops = "::weft::ir::contractionFlops(*this)";
}

def Nn_ContractOp : Nn_InferOp<"contract"> {
  let summary = "Einstein sum of two operands";
  let description = [{
    `spec` names every dimension: "b t k, k n -> b t n". A letter in both operands and not in the result is summed
    over; every letter of an operand stands in the other operand or in the result; no letter stands twice in a tensor.
  }];
  let arguments = (ins Nn_Float:$a, Nn_Float:$b, StrAttr:$spec);
  let results = (outs Nn_Float:$y);
  let rule = "rules::contract(getSpec())";
  let linear = "{{0}, {1}}";
  let infer = "infer::contract(site, adaptor.getA(), adaptor.getB(), adaptor.getSpec())";
  let flops = "::weft::ir::contractionFlops(*this)";
}

#endif
