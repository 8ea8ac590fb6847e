// Operators that look up by integer ids, and the loss built on them.
#ifndef WEFT_IR_NN_INDICES
#define WEFT_IR_NN_INDICES

include "ir/nn/nn_base.td"

def Nn_EmbeddingOp : Nn_InferOp<"embedding"> {
  let summary = "row ids[...] of table [rows, C]";
  let description = [{
    `rows` is the global number of rows. A rank that holds a part of the rows gives zeros for ids outside it, so the
    sum over ranks is the answer. An id outside [0, rows) is an error of the data.
  }];
  let arguments = (ins Nn_Float:$table, Nn_Ids:$ids, Nn_Int:$rows);
  let results = (outs Nn_Float:$y);
  let rule = "rules::embedding(*this)";
  let linear = "{{0}}";
  let origins = "{{false, 0, 0}}";
  let builders = [OpBuilder<(ins "::mlir::Value":$table, "::mlir::Value":$ids),
                            [{ build($_builder, $_state, table, ids, ::weft::ir::dimensionOf(table, 0)); }]>];
  let infer = "infer::embedding(site, adaptor.getTable(), adaptor.getIds(), adaptor.getRows())";
  let flops = "0";
}
def Nn_EmbeddingGradOp : Nn_Op<"embedding_grad"> {
  let summary = "table gradient [V, C]: dy summed into the rows of ids; ids of other rows are skipped";
  let arguments = (ins Nn_Ids:$ids, Nn_Float:$dy, Nn_Int:$rows);
  let results = (outs Nn_Float:$dtable);
  let rule = "rules::embeddingGrad(*this)";
  let linear = "{{1}}";
  let origins = "{{true, 0, 0}}";
  let flops = "::weft::ir::operandElements(*this, 1)";
  let hasVerifier = 1;
}
def Nn_SoftmaxCrossEntropyOp : Nn_InferOp<"softmax_cross_entropy"> {
  let summary = "loss = lse - logits[label], lse = log sum exp over the last dimension; loss 0 where ignored";
  let description = [{
    A label that is neither `ignore_index` nor in [0, rows) is an error of the data; `rows` is the global number of
    classes.
  }];
  let arguments = (ins Nn_Float:$logits, Nn_Ids:$labels, Nn_Int:$rows, Nn_Int:$ignore_index);
  let results = (outs Nn_Float:$loss, Nn_Float:$lse);
  let rule = "rules::crossEntropy(*this)";
  let padFill = "-std::numeric_limits<double>::infinity()";
  let builders = [OpBuilder<(ins "::mlir::Value":$logits, "::mlir::Value":$labels,
                                 CArg<"int64_t", "-100">:$ignoreIndex),
                            [{ build($_builder, $_state, logits, labels, ::weft::ir::dimensionOf(logits, -1),
                                     ignoreIndex); }]>];
  let infer = "infer::crossEntropy(site, adaptor.getLogits(), adaptor.getLabels())";
  let flops = "4 * ::weft::ir::operandElements(*this)";
}
def Nn_SoftmaxCrossEntropyGradOp : Nn_InferOp<"softmax_cross_entropy_grad"> {
  let summary = "(exp(logits - lse) - onehot(labels)) dloss, 0 where ignored";
  let arguments = (ins Nn_Float:$logits, Nn_Ids:$labels, Nn_Float:$lse, Nn_Float:$dloss, Nn_Int:$ignore_index);
  let results = (outs Nn_Float:$dlogits);
  let rule = "rules::crossEntropyGrad(*this)";
  let linear = "{{3}}";
  let origins = "rules::originOfDim(false, 0, getLogits(), -1)";
  let padFill = "operand == 0 ? -std::numeric_limits<double>::infinity() : 0.0";
  let infer = "infer::crossEntropyGrad(site, adaptor.getOperands())";
  let flops = "4 * ::weft::ir::operandElements(*this)";
}
def Nn_PickOp : Nn_InferOp<"pick"> {
  let summary = "x[..., labels[...]]; 0 for a label outside the part that is here";
  let description = [{
    With `rows`, the global number of classes, a label that is neither `ignore_index` nor in [0, rows) is an error of the
    data; with rows = 0 any label is taken.
  }];
  let arguments = (ins Nn_Float:$x, Nn_Ids:$labels, DefaultValuedAttr<I64Attr, "0">:$rows,
                       DefaultValuedAttr<I64Attr, "-100">:$ignore_index);
  let results = (outs Nn_Float:$y);
  let rule = "rules::pick(*this)";
  let linear = "{{0}}";
  let origins = "rules::originOfDim(false, 0, getX(), -1)";
  let infer = "infer::pick(site, adaptor.getX(), adaptor.getLabels())";
  let flops = "0";
}
def Nn_PickGradOp : Nn_Op<"pick_grad"> {
  let summary = "d at the label, 0 elsewhere: [..., V]";
  let arguments = (ins Nn_Ids:$labels, Nn_Float:$d);
  let results = (outs Nn_Float:$dx);
  let rule = "rules::pickGrad(*this)";
  let linear = "{{1}}";
  let origins = "rules::originOfDim(true, 0, getDx(), -1)";
  let flops = "0";
  let hasVerifier = 1;
}
def Nn_GatherOp : Nn_InferOp<"gather"> {
  let summary = "y[.., k, ..] = x[.., index[.., k, ..], ..] in dimension `dim`; all other dimensions agree";
  let description = [{
    `rows` is the global size of the dimension. A rank that holds a part of it gives zeros for indices outside, so the
    sum over ranks is the answer. An index outside [0, rows) is an error of the data.
  }];
  let arguments = (ins Nn_Number:$x, Nn_Ids:$index, Nn_Int:$dim, Nn_Int:$rows);
  let results = (outs Nn_Number:$y);
  let rule = "rules::gather(*this, getDim())";
  let linear = "{{0}}";
  let origins = "rules::originOfDim(false, 0, getX(), getDim())";
  let infer = "infer::gather(site, adaptor.getX(), adaptor.getIndex(), adaptor.getDim(), adaptor.getRows())";
  let flops = "0";
}
def Nn_ScatterAddOp : Nn_Op<"scatter_add"> {
  let summary = "zeros, to which y[.., index[.., k, ..], ..] += updates[.., k, ..] in dimension `dim`";
  let description = [{
    `rows` is the global size of the dimension. Indices of a part that is elsewhere are skipped; one outside [0, rows)
    is an error of the data.
  }];
  let arguments = (ins Nn_Ids:$index, Nn_Number:$updates, Nn_Int:$dim, Nn_Int:$rows);
  let results = (outs Nn_Number:$y);
  let rule = "rules::scatterAdd(*this, getDim())";
  let linear = "{{1}}";
  let origins = "rules::originOfDim(true, 0, getY(), getDim())";
  let flops = "::weft::ir::operandElements(*this, 1)";
  let hasVerifier = 1;
}

#endif
