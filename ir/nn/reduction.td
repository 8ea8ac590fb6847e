// Reductions over dimensions.
#ifndef WEFT_IR_NN_REDUCTION
#define WEFT_IR_NN_REDUCTION

include "ir/nn/nn_base.td"

class Nn_Reduce<string mnemonic, Type type = Nn_Number> : Nn_InferOp<mnemonic> {
  let arguments = (ins type:$x, DenseI64ArrayAttr:$dims, DefaultValuedAttr<BoolAttr, "false">:$keep_dims);
  let results = (outs type:$y);
  let rule = "rules::reduce(*this, getDims(), getKeepDims())";
  let infer = "infer::reduce(site, adaptor.getX(), adaptor.getDims(), adaptor.getKeepDims())";
  let flops = "::weft::ir::operandElements(*this)";
}
def Nn_SumOp : Nn_Reduce<"sum"> {
  let summary = "sum over `dims`";
  let linear = "{{0}}";
  let passesSums = "true";
}
def Nn_MeanOp : Nn_Reduce<"mean"> {
  let summary = "sum over `dims` divided by `count`, the global number of elements that one result element sums";
  let arguments = (ins Nn_Float:$x, DenseI64ArrayAttr:$dims, DefaultValuedAttr<BoolAttr, "false">:$keep_dims,
                       Nn_Int:$count);
  let results = (outs Nn_Float:$y);
  let linear = "{{0}}";
  let passesSums = "true";
  let builders = [OpBuilder<(ins "::mlir::Value":$x, "::llvm::ArrayRef<int64_t>":$dims,
                                 CArg<"bool", "false">:$keepDims),
                            [{ build($_builder, $_state, x, dims, keepDims, ::weft::ir::reducedCount(x, dims)); }]>];
  let infer = "infer::mean(site, adaptor.getX(), adaptor.getDims(), adaptor.getKeepDims(), adaptor.getCount())";
}
def Nn_MaxOp : Nn_Reduce<"max", Nn_Tensor> {
  let summary = "greatest over `dims`; of bool: is any true?";
  let reduceKind = "::weft::ReduceKind::kMax";
  let padFill = "rules::leastElement(getX())";
}
def Nn_MinOp : Nn_Reduce<"min", Nn_Tensor> {
  let summary = "smallest over `dims`; of bool: are all true?";
  let reduceKind = "::weft::ReduceKind::kMin";
  let padFill = "std::numeric_limits<double>::infinity()";
}
def Nn_SumSquaresOp : Nn_InferOp<"sum_squares"> {
  let summary = "sum of squares of all elements, a scalar";
  let arguments = (ins Nn_Float:$x);
  let results = (outs Nn_Float:$y);
  let rule = "rules::reduceAll(*this)";
  let infer = "infer::scalarOf(site, adaptor.getX())";
  let flops = "2 * ::weft::ir::operandElements(*this)";
}
def Nn_AllFiniteOp : Nn_InferOp<"all_finite"> {
  let summary = "is every element finite? A scalar";
  let arguments = (ins Nn_Float:$x);
  let results = (outs Nn_Bool:$y);
  let rule = "rules::reduceAll(*this)";
  let reduceKind = "::weft::ReduceKind::kMin";
  let infer = "infer::boolScalar(site, adaptor.getX())";
  let flops = "::weft::ir::operandElements(*this)";
}

#endif
