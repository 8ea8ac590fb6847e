// Operators that work along one dimension, in which no part of x will do.
#ifndef WEFT_IR_NN_ALONG
#define WEFT_IR_NN_ALONG

include "ir/nn/nn_base.td"

class Nn_Along<string mnemonic> : Nn_InferOp<mnemonic> {
  let rule = "rules::wholeDims(*this, {getDim()})";
  let flops = "::weft::ir::operandElements(*this)";
}

def Nn_CumsumOp : Nn_Along<"cumsum"> {
  let summary = "y[i] = sum of x[j], j <= i, along `dim`; with `reverse`, j >= i";
  let arguments = (ins Nn_Number:$x, Nn_Int:$dim, DefaultValuedAttr<BoolAttr, "false">:$reverse);
  let results = (outs Nn_Number:$y);
  let linear = "{{0}}";
  let passesSums = "true";
  let infer = "infer::along(site, adaptor.getX(), adaptor.getDim())";
}
// A product over ranks is no reduction that collectives have.
def Nn_ProdOp : Nn_Along<"prod"> {
  let summary = "product along `dim`, which goes";
  let arguments = (ins Nn_Number:$x, Nn_Int:$dim);
  let results = (outs Nn_Number:$y);
  let padFill = "1.0";
  let infer = "infer::prod(site, adaptor.getX(), adaptor.getDim())";
}
def Nn_ProdGradOp : Nn_Along<"prod_grad"> {
  let summary = "dx[i] = dy times the product of all x[j], j != i, along `dim`: right for zeros too";
  let arguments = (ins Nn_Float:$x, Nn_Float:$dy, Nn_Int:$dim);
  let results = (outs Nn_Float:$dx);
  let linear = "{{1}}";
  let padFill = "operand == 0 ? 1.0 : 0.0";
  let infer = "infer::prodGrad(site, adaptor.getX(), adaptor.getDy(), adaptor.getDim())";
  let flops = "4 * ::weft::ir::operandElements(*this)";
}
def Nn_ArgmaxOp : Nn_Along<"argmax"> {
  let summary = "i32 index of the greatest along `dim`, which goes: the first of equal ones, or of the NaNs";
  let arguments = (ins Nn_Tensor:$x, Nn_Int:$dim);
  let results = (outs Nn_Ids:$y);
  let padFill = "rules::leastElement(getX())";
  let infer = "infer::argExtremum(site, adaptor.getX(), adaptor.getDim())";
}
def Nn_ArgminOp : Nn_Along<"argmin"> {
  let summary = "i32 index of the smallest along `dim`, which goes: the first of equal ones, or of the NaNs";
  let arguments = (ins Nn_Tensor:$x, Nn_Int:$dim);
  let results = (outs Nn_Ids:$y);
  let padFill = "std::numeric_limits<double>::infinity()";
  let infer = "infer::argExtremum(site, adaptor.getX(), adaptor.getDim())";
}
def Nn_SortOp : Nn_InferOp<"sort"> {
  let summary = "the first `count` of the last dimension in order, equal ones as they were; and their i32 indices";
  let description = [{ A NaN is greater than all numbers. }];
  let arguments = (ins Nn_Number:$x, Nn_Int:$count, DefaultValuedAttr<BoolAttr, "false">:$descending);
  let results = (outs Nn_Number:$values, Nn_Ids:$indices);
  let rule = "rules::sort(*this)";
  let padFill = "std::nullopt";
  let infer = "infer::sort(site, adaptor.getX(), adaptor.getCount())";
  let flops = "10 * ::weft::ir::operandElements(*this)";
}

def Nn_LogSoftmaxOp : Nn_InferOp<"log_softmax"> {
  let summary = "x - log sum exp(x) over the last dimension";
  let arguments = (ins Nn_Float:$x);
  let results = (outs Nn_Float:$y);
  let rule = "rules::wholeLast(*this)";
  let padFill = "-std::numeric_limits<double>::infinity()";
  let infer = "infer::rowwise(site, adaptor.getX())";
  let flops = "5 * ::weft::ir::operandElements(*this)";
}
def Nn_LogSoftmaxGradOp : Nn_InferOp<"log_softmax_grad"> {
  let summary = "dy - exp(y) sum(dy) over the last dimension";
  let arguments = (ins Nn_Float:$y, Nn_Float:$dy);
  let results = (outs Nn_Float:$dx);
  let rule = "rules::wholeLast(*this)";
  let linear = "{{1}}";
  let infer = "infer::sameOperands(site, adaptor.getOperands())";
  let flops = "4 * ::weft::ir::operandElements(*this)";
}

#endif
