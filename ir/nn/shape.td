// Operators that move elements and compute nothing. All are jointly linear in all operands, but for pads of another
// value than 0.
#ifndef WEFT_IR_NN_SHAPE
#define WEFT_IR_NN_SHAPE

include "ir/nn/nn_base.td"

def Nn_ReshapeOp : Nn_Op<"reshape"> {
  let summary = "the same elements in row-major order under another shape";
  let arguments = (ins Nn_Tensor:$x);
  let results = (outs Nn_Tensor:$y);
  let rule = "rules::reshape(*this)";
  let linear = "{{0}}";
  let passesSums = "true";
  let view = "::weft::ViewKind::kShape";
  let flops = "0";
  let hasVerifier = 1;
}
def Nn_TransposeOp : Nn_InferOp<"transpose"> {
  let summary = "result dimension i is dimension permutation[i] of x";
  let arguments = (ins Nn_Tensor:$x, DenseI64ArrayAttr:$permutation);
  let results = (outs Nn_Tensor:$y);
  let rule = "rules::transpose(getPermutation())";
  let linear = "{{0}}";
  let passesSums = "true";
  let infer = "infer::transpose(site, adaptor.getX(), adaptor.getPermutation())";
  let flops = "0";
}
def Nn_SliceOp : Nn_InferOp<"slice"> {
  let summary = "`sizes[d]` elements from `offsets[d]` on, in each dimension";
  let arguments = (ins Nn_Tensor:$x, DenseI64ArrayAttr:$offsets, DenseI64ArrayAttr:$sizes);
  let results = (outs Nn_Tensor:$y);
  let rule = "rules::sliceLike(*this)";
  let linear = "{{0}}";
  let passesSums = "true";
  let infer = "infer::slice(site, adaptor.getX(), adaptor.getOffsets(), adaptor.getSizes())";
  let flops = "0";
  let localize = "setSizes(getY().getType().getShape());";
}
def Nn_PadOp : Nn_InferOp<"pad"> {
  let summary = "`low[d]` times `value` before and `high[d]` times after x, in each dimension";
  let arguments = (ins Nn_Tensor:$x, DenseI64ArrayAttr:$low, DenseI64ArrayAttr:$high,
                       DefaultValuedAttr<Nn_Real, "0.0">:$value);
  let results = (outs Nn_Tensor:$y);
  let rule = "rules::sliceLike(*this)";
  let linear = "getValue() == 0 ? rules::allTogether(*this) : ::weft::ir::LinearSets()";
  let passesSums = "getValue() == 0";
  let padFill = "std::nullopt";
  let infer = "infer::pad(site, adaptor.getX(), adaptor.getLow(), adaptor.getHigh())";
  let flops = "0";
}
def Nn_FlipOp : Nn_InferOp<"flip"> {
  let summary = "x with the order of the elements in `dims` turned round";
  let arguments = (ins Nn_Tensor:$x, DenseI64ArrayAttr:$dims);
  let results = (outs Nn_Tensor:$y);
  let rule = "rules::wholeDims(*this, getDims())";
  let linear = "{{0}}";
  let passesSums = "true";
  let padFill = "std::nullopt";
  let infer = "infer::flip(site, adaptor.getX(), adaptor.getDims())";
  let flops = "0";
}
def Nn_ConcatOp : Nn_InferOp<"concat"> {
  let summary = "operands one after another along `dim`";
  let arguments = (ins Variadic<Nn_Tensor>:$xs, Nn_Int:$dim);
  let results = (outs Nn_Tensor:$y);
  let rule = "rules::concat(*this, getDim())";
  let linear = "rules::allTogether(*this)";
  let passesSums = "true";
  let padFill = "std::nullopt";
  let infer = "infer::concat(site, adaptor.getXs(), adaptor.getDim())";
  let flops = "0";
}
def Nn_BroadcastOp : Nn_Op<"broadcast"> {
  let summary = "x stretched to the result's shape, aligned at the right";
  let arguments = (ins Nn_Tensor:$x);
  let results = (outs Nn_Tensor:$y);
  let rule = "rules::elementwise(*this)";
  let linear = "{{0}}";
  let flops = "0";
  let hasVerifier = 1;
}

#endif
