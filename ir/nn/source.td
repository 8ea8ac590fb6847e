// Constants and counter-based random numbers, whose values depend on the global index and never on the layout.
#ifndef WEFT_IR_NN_SOURCE
#define WEFT_IR_NN_SOURCE

include "ir/nn/nn_base.td"

def Nn_DropoutOp : Nn_InferOp<"dropout"> {
  let summary = "x / (1 - rate) where the random number of (seed, key, step, global index) is >= rate, else 0";
  let arguments = (ins Nn_Float:$x, Nn_Ids:$step, Nn_Real:$rate, Nn_Int:$seed, Nn_Int:$key,
                       OptionalAttr<DenseI64ArrayAttr>:$global_shape);
  let results = (outs Nn_Float:$y);
  let rule = "rules::elementwise(*this)";
  let linear = "{{0}}";
  let origins = "rules::originsOf(false, 0, getX())";
  let globalShape = "true";
  let infer = "infer::dropout(site, adaptor.getX(), adaptor.getStep(), adaptor.getRate())";
  let flops = "10 * ::weft::ir::elementwiseFlops(*this)";
}
def Nn_RandomOp : Nn_Op<"random"> {
  let summary = "distribution = \"normal\" (a mean, b deviation) or \"uniform\" (from a to b)";
  let arguments = (ins StrAttr:$distribution, Nn_Real:$a, Nn_Real:$b, Nn_Int:$seed, Nn_Int:$key,
                       OptionalAttr<DenseI64ArrayAttr>:$global_shape);
  let results = (outs Nn_Float:$y);
  let rule = "rules::elementwise(*this)";
  let origins = "rules::originsOf(true, 0, getY())";
  let globalShape = "true";
  let flops = "20 * ::weft::ir::elementwiseFlops(*this)";
  let hasVerifier = 1;
}
def Nn_ConstantOp : Nn_Op<"constant"> {
  let summary = "the elements of `value`; a splat takes any result shape";
  let arguments = (ins ElementsAttr:$value);
  let results = (outs Nn_Tensor:$y);
  let rule = "rules::constant(*this, getValue().isSplat())";
  let flops = "0";
  let hasVerifier = 1;
}
def Nn_FillOp : Nn_Op<"fill"> {
  let summary = "every element is `value`";
  let arguments = (ins Nn_Real:$value);
  let results = (outs Nn_Tensor:$y);
  let rule = "rules::elementwise(*this)";
  let flops = "0";
}
def Nn_IotaOp : Nn_Op<"iota"> {
  let summary = "every element is its global index in dimension `dim`";
  let arguments = (ins Nn_Int:$dim);
  let results = (outs Nn_Number:$y);
  let rule = "rules::elementwise(*this)";
  let origins = "rules::originOfDim(true, 0, getY(), getDim())";
  let flops = "0";
  let hasVerifier = 1;
}

#endif
