// Scaled dot-product attention.
#ifndef WEFT_IR_NN_ATTENTION
#define WEFT_IR_NN_ATTENTION

include "ir/nn/nn_base.td"

def Nn_AttentionOp : Nn_InferOp<"attention"> {
  let summary = "softmax(scale q k^T) v for q [B, H, T, D], k and v [B, H, S, D]; causal: query t sees s <= t";
  let arguments = (ins Nn_Float:$q, Nn_Float:$k, Nn_Float:$v, BoolAttr:$causal, Nn_Real:$scale);
  let results = (outs Nn_Float:$out, Nn_Float:$lse);
  let rule = [{"b h t d!, b h s! d!, b h s! d! -> b h t d, b h t"}];
  let origins = "{{false, 0, 2}}";
  let padFill = "operand == 0 ? std::optional<double>(0.0) : std::nullopt";
  let infer = "infer::attention(site, adaptor.getQ(), adaptor.getK(), adaptor.getV())";
  let flops = "::weft::ir::attentionFlops(*this, 2)";
}
def Nn_AttentionGradOp : Nn_InferOp<"attention_grad"> {
  let summary = "gradients of attention";
  let arguments = (ins Nn_Float:$q, Nn_Float:$k, Nn_Float:$v, Nn_Float:$out, Nn_Float:$lse, Nn_Float:$dout,
                       BoolAttr:$causal, Nn_Real:$scale);
  let results = (outs Nn_Float:$dq, Nn_Float:$dk, Nn_Float:$dv);
  let rule = [{"b h t+ d!, b h s! d!, b h s! d!, b h t d!, b h t, b h t d! -> b h t d, b h s d, b h s d"}];
  let origins = "{{false, 0, 2}}";
  let padFill = "operand == 1 || operand == 2 ? std::nullopt : std::optional<double>(0.0)";
  let infer = "infer::attentionGrad(site, adaptor.getOperands())";
  let flops = "::weft::ir::attentionFlops(*this, 5)";
}

#endif
