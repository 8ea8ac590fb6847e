// Pooling over windows of images [n, channels, height, width]. Batch and channels may be split; a dimension of the image
// where no window of it lies across a border.
#ifndef WEFT_IR_NN_POOLING
#define WEFT_IR_NN_POOLING

include "ir/nn/nn_base.td"

class Nn_Pool<string mnemonic> : Nn_InferOp<mnemonic> {
  let arguments = (ins Nn_Float:$x, DenseI64ArrayAttr:$window, DenseI64ArrayAttr:$strides,
                       DenseI64ArrayAttr:$paddings);
  let results = (outs Nn_Float:$y);
  let rule = "rules::pool2d(getX(), getY(), getWindow(), {getStrides(), getPaddings()})";
  let padFill = "std::nullopt";
  let infer = "infer::pool2d(site, adaptor.getX(), adaptor.getWindow(), {adaptor.getStrides(), adaptor.getPaddings()})";
  let flops = "::weft::ir::productAtMost({::weft::ir::elementwiseFlops(*this), getWindow()[0], getWindow()[1]})";
}
def Nn_MaxPool2dOp : Nn_Pool<"max_pool2d"> {
  let summary = "greatest element of each window; what lies outside the image does not count";
}
def Nn_MaxPool2dGradOp : Nn_InferOp<"max_pool2d_grad"> {
  let summary = "dy added to the first greatest element of each window of x, row by row";
  let arguments = (ins Nn_Float:$x, Nn_Float:$dy, DenseI64ArrayAttr:$window, DenseI64ArrayAttr:$strides,
                       DenseI64ArrayAttr:$paddings);
  let results = (outs Nn_Float:$dx);
  let rule = "rules::maxPool2dGrad(*this, getWindow(), {getStrides(), getPaddings()})";
  let linear = "{{1}}";
  let padFill = "std::nullopt";
  let infer = "infer::poolGrad(site, adaptor.getOperands(), adaptor.getWindow(), "
            # "{adaptor.getStrides(), adaptor.getPaddings()})";
  let flops = "::weft::ir::productAtMost({::weft::ir::operandElements(*this, 1), getWindow()[0], getWindow()[1]})";
}
def Nn_AvgPool2dOp : Nn_Pool<"avg_pool2d"> {
  let summary = "sum of each window divided by the size of the window; zeros around x, which count";
  let linear = "{{0}}";
}
def Nn_AvgPool2dGradOp : Nn_Op<"avg_pool2d_grad"> {
  let summary = "dy shared evenly by the elements of each window";
  let arguments = (ins Nn_Float:$dy, DenseI64ArrayAttr:$window, DenseI64ArrayAttr:$strides,
                       DenseI64ArrayAttr:$paddings);
  let results = (outs Nn_Float:$dx);
  let rule = "rules::avgPool2dGrad(*this, getWindow(), {getStrides(), getPaddings()})";
  let linear = "{{0}}";
  let padFill = "std::nullopt";
  let flops = "::weft::ir::productAtMost({::weft::ir::operandElements(*this), getWindow()[0], getWindow()[1]})";
  let hasVerifier = 1;
}

#endif
