// Convolution over images, and its two gradients.
#ifndef WEFT_IR_NN_CONVOLUTION
#define WEFT_IR_NN_CONVOLUTION

include "ir/nn/nn_base.td"

// Images are [n, channels, height, width], weights [co, ci, kh, kw]; instead of n there may be several dimensions. An
// image of G ci channels is convolved in G groups: ci channels each give co / G of the result (G = 1: all channels meet;
// ci = 1: each alone). `strides`, `paddings` and `dilations` are [vertical, horizontal]; the paddings are symmetric, a
// window has its elements `dilations` apart.
//
// Batch, groups and output channels may be split freely, input channels leave a partial sum. A dimension of the image
// may be split where no window of it lies across a border (patches), the height also by an expansion
// (ir/nn/gradients/expand_convolution.cc); else it is whole, and may not be stored with a pad either.

def Nn_Conv2dOp : Nn_InferOp<"conv2d"> {
  let summary = "y[n, co, i, j] = sum of x[n, ci, i s - p + a d, j s - p + b d] weight[co, ci, a, b]; zeros around x";
  let arguments = (ins Nn_Float:$x, Nn_Float:$weight, DenseI64ArrayAttr:$strides, DenseI64ArrayAttr:$paddings,
                       DefaultValuedAttr<DenseI64ArrayAttr, "{1, 1}">:$dilations);
  let results = (outs Nn_Float:$y);
  let rule = "rules::conv2d(*this, {getStrides(), getPaddings(), getDilations()})";
  let linear = "{{0}, {1}}";
  let padFill = "std::nullopt";
  let infer = [{infer::conv2d(site, adaptor.getX(), adaptor.getWeight(),
                              {adaptor.getStrides(), adaptor.getPaddings(), adaptor.getDilations()})}];
  let flops = "::weft::ir::convolutionFlops(getY(), getWeight())";
}
def Nn_Conv2dInputGradOp : Nn_Op<"conv2d_input_grad"> {
  let summary = "gradient of conv2d with respect to x; of an image dy, its transposed convolution";
  let arguments = (ins Nn_Float:$dy, Nn_Float:$weight, DenseI64ArrayAttr:$strides, DenseI64ArrayAttr:$paddings,
                       DefaultValuedAttr<DenseI64ArrayAttr, "{1, 1}">:$dilations);
  let results = (outs Nn_Float:$dx);
  let rule = "rules::conv2dInputGrad(*this, {getStrides(), getPaddings(), getDilations()})";
  let linear = "{{0}, {1}}";
  let padFill = "std::nullopt";
  let flops = "::weft::ir::convolutionFlops(getDy(), getWeight())";
  let hasVerifier = 1;
}
def Nn_Conv2dWeightGradOp : Nn_Op<"conv2d_weight_grad"> {
  let summary = "gradient of conv2d with respect to the weight; a split batch leaves a partial sum";
  let arguments = (ins Nn_Float:$x, Nn_Float:$dy, DenseI64ArrayAttr:$strides, DenseI64ArrayAttr:$paddings,
                       DefaultValuedAttr<DenseI64ArrayAttr, "{1, 1}">:$dilations);
  let results = (outs Nn_Float:$dweight);
  let rule = "rules::conv2dWeightGrad(*this, {getStrides(), getPaddings(), getDilations()})";
  let linear = "{{0}, {1}}";
  let padFill = "std::nullopt";
  let flops = "::weft::ir::convolutionFlops(getDy(), getDweight())";
  let hasVerifier = 1;
}

#endif
