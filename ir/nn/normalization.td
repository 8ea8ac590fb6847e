// Operators that normalise over the last dimension, which must be whole.
#ifndef WEFT_IR_NN_NORMALIZATION
#define WEFT_IR_NN_NORMALIZATION

include "ir/nn/nn_base.td"

def Nn_SoftmaxOp : Nn_InferOp<"softmax"> {
  let summary = "softmax over the last dimension";
  let arguments = (ins Nn_Float:$x);
  let results = (outs Nn_Float:$y);
  let rule = "rules::wholeLast(*this)";
  let padFill = "-std::numeric_limits<double>::infinity()";
  let infer = "infer::rowwise(site, adaptor.getX())";
  let flops = "5 * ::weft::ir::operandElements(*this)";
}
def Nn_SoftmaxGradOp : Nn_InferOp<"softmax_grad"> {
  let summary = "y (dy - sum(y dy)) over the last dimension";
  let arguments = (ins Nn_Float:$y, Nn_Float:$dy);
  let results = (outs Nn_Float:$dx);
  let rule = "rules::wholeLast(*this)";
  let linear = "{{1}}";
  let infer = "infer::sameOperands(site, adaptor.getOperands())";
  let flops = "4 * ::weft::ir::operandElements(*this)";
}
def Nn_LayerNormOp : Nn_InferOp<"layer_norm"> {
  let summary = "gamma (x - mean) rstd + beta over the last dimension, rstd = 1 / sqrt(variance + epsilon)";
  let arguments = (ins Nn_Float:$x, Nn_Float:$gamma, Nn_Float:$beta, DefaultValuedAttr<Nn_Real, "1e-5">:$epsilon);
  let results = (outs Nn_Float:$y, Nn_Float:$mean, Nn_Float:$rstd);
  let rule = "rules::layerNorm(*this)";
  let padFill = "std::nullopt";
  let infer = "infer::layerNorm(site, adaptor.getX(), adaptor.getGamma(), adaptor.getBeta())";
  let flops = "8 * ::weft::ir::operandElements(*this)";
}
def Nn_LayerNormGradOp : Nn_InferOp<"layer_norm_grad"> {
  let summary = "gradients of layer_norm";
  let arguments = (ins Nn_Float:$x, Nn_Float:$gamma, Nn_Float:$mean, Nn_Float:$rstd, Nn_Float:$dy);
  let results = (outs Nn_Float:$dx, Nn_Float:$dgamma, Nn_Float:$dbeta);
  let rule = "rules::layerNormGrad(*this)";
  let linear = "{{4}}";
  let padFill = "std::nullopt";
  let infer = "infer::layerNormGrad(site, adaptor.getOperands())";
  let flops = "14 * ::weft::ir::operandElements(*this)";
}

#endif
