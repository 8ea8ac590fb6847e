// Normalization: softmax, layer norm and rms norm over the last dimension, which must be whole; batch norm over all
// others but the channels.
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

def Nn_RmsNormOp : Nn_InferOp<"rms_norm"> {
  let summary = "gamma x rstd over the last dimension, rstd = 1 / sqrt(mean of x^2 + epsilon)";
  let arguments = (ins Nn_Float:$x, Nn_Float:$gamma, DefaultValuedAttr<Nn_Real, "1e-6">:$epsilon);
  let results = (outs Nn_Float:$y, Nn_Float:$rstd);
  let rule = "rules::rmsNorm(*this)";
  let padFill = "std::nullopt";
  let infer = "infer::rmsNorm(site, adaptor.getX(), adaptor.getGamma())";
  let flops = "5 * ::weft::ir::operandElements(*this)";
}
def Nn_RmsNormGradOp : Nn_InferOp<"rms_norm_grad"> {
  let summary = "gradients of rms_norm";
  let arguments = (ins Nn_Float:$x, Nn_Float:$gamma, Nn_Float:$rstd, Nn_Float:$dy);
  let results = (outs Nn_Float:$dx, Nn_Float:$dgamma);
  let rule = "rules::rmsNormGrad(*this)";
  let linear = "{{3}}";
  let padFill = "std::nullopt";
  let infer = "infer::rmsNormGrad(site, adaptor.getOperands())";
  let flops = "9 * ::weft::ir::operandElements(*this)";
}

//===-- Batch norm: x is [n, c, ...], statistics are those of one micro-batch, over all its ranks --===//

// For the logical state, which does not know how many micro-batches there are. Their expansions
// (ir/nn/gradients/expand_batch_norm.cc) write them with the operators below. Then the statistics have a row for each
// micro-batch, so both are expanded or none.
def Nn_BatchNormOp : Nn_InferOp<"batch_norm"> {
  let summary = "gamma (x - mean) rstd + beta for each channel, with the mean and variance of each micro-batch of x";
  let description = [{
    Operands: x, gamma, beta, and optionally the running mean and variance. Results: y; of a micro-batch, for
    batch_norm_grad alone, mean [1, c], rstd [1, c] and share [1, c], one over the number of elements of a channel; and
    the running statistics after the step: running <- (1 - momentum) running + momentum statistic for each micro-batch in
    order, with the variance of n - 1 degrees of freedom.
  }];
  let arguments = (ins Variadic<Nn_Float>:$xs, DefaultValuedAttr<Nn_Real, "1e-5">:$epsilon,
                       DefaultValuedAttr<Nn_Real, "0.1">:$momentum);
  let results = (outs Variadic<Nn_Float>:$ys);
  let rule = "rules::batchNorm(*this)";
  let padFill = "std::nullopt";
  let infer = "infer::batchNorm(site, adaptor.getXs())";
  let mustExpand = "true";
  let flops = "8 * ::weft::ir::operandElements(*this)";
}
def Nn_BatchNormGradOp : Nn_InferOp<"batch_norm_grad"> {
  let summary = "gradients of batch_norm: dx, dgamma, dbeta";
  let arguments = (ins Nn_Float:$x, Nn_Float:$gamma, Nn_Float:$mean, Nn_Float:$rstd, Nn_Float:$share, Nn_Float:$dy);
  let results = (outs Nn_Float:$dx, Nn_Float:$dgamma, Nn_Float:$dbeta);
  let rule = "rules::batchNormGrad(*this)";
  let linear = "{{5}}";
  let padFill = "std::nullopt";
  let infer = "infer::batchNormGrad(site, adaptor.getOperands())";
  let mustExpand = "true";
  let flops = "9 * ::weft::ir::operandElements(*this)";
}
def Nn_ChannelSumOp : Nn_Op<"channel_sum"> {
  let summary = "sums [micro-batches, c] of x [n, c, ...] over everything but the channels, for each micro-batch of n";
  let arguments = (ins Nn_Float:$x);
  let results = (outs Nn_Float:$y);
  let rule = "rules::channelSum(*this)";
  let linear = "{{0}}";
  let flops = "::weft::ir::operandElements(*this)";
  let hasVerifier = 1;
}
def Nn_ChannelDotOp : Nn_InferOp<"channel_dot"> {
  let summary = "channel_sum of x (z - center), center [micro-batches, c]";
  let arguments = (ins Nn_Float:$x, Nn_Float:$z, Nn_Float:$center);
  let results = (outs Nn_Float:$y);
  let rule = "rules::channelDot(*this)";
  let linear = "{{0}, {1, 2}}";
  let infer = "infer::channelDot(site, adaptor.getX(), adaptor.getZ(), adaptor.getCenter())";
  let flops = "3 * ::weft::ir::operandElements(*this)";
}
def Nn_ChannelAffineOp : Nn_InferOp<"channel_affine"> {
  let summary = "x1 a1 + x2 a2 + ... + b with factors and offset [micro-batches, c]; operands x1, a1, x2, a2, ..., b";
  let arguments = (ins Variadic<Nn_Float>:$xs);
  let results = (outs Nn_Float:$y);
  let rule = "rules::channelAffine(*this)";
  let infer = "infer::channelAffine(site, adaptor.getXs())";
  let flops = "static_cast<int64_t>((*this)->getNumOperands() - 1) * ::weft::ir::operandElements(*this)";
}

#endif
