// Scaled dot-product attention, and the rotation of its queries and keys by their positions.
#ifndef WEFT_IR_NN_ATTENTION
#define WEFT_IR_NN_ATTENTION

include "ir/nn/nn_base.td"

def Nn_AttentionOp : Nn_InferOp<"attention"> {
  let summary = "softmax(scale q k^T + bias) v; causal: query t sees keys s <= t";
  let description = [{
    q is [B, H, T, D], k and v are [B, G, S, D] where G divides H: heads h G' to (h + 1) G' - 1 of q share head h of k
    and v, G' = H / G (Ainslie et al., "GQA", 2023). bias [B or 1, H or 1, T or 1, S] is added to the scores; a key of
    bias -inf is not seen. lse [B, H, T] is the log of the sum that each row of the softmax is divided by.
  }];
  let arguments = (ins Nn_Float:$q, Nn_Float:$k, Nn_Float:$v, Optional<Nn_Float>:$bias, BoolAttr:$causal,
                       Nn_Real:$scale);
  let results = (outs Nn_Float:$out, Nn_Float:$lse);
  let rule = "rules::attention(*this)";
  let origins = "{{false, 0, 2}}";
  let padFill = "operand == 0 ? std::optional<double>(0.0) : std::nullopt";
  let infer = "infer::attention(site, adaptor.getOperands())";
  let flops = "::weft::ir::attentionFlops(*this, 2)";
}
def Nn_AttentionGradOp : Nn_InferOp<"attention_grad"> {
  let summary = "gradients of attention: dq, dk, dv and, where bias_gradient says so, dbias";
  let arguments = (ins Nn_Float:$q, Nn_Float:$k, Nn_Float:$v, Nn_Float:$out, Nn_Float:$lse, Nn_Float:$dout,
                       Optional<Nn_Float>:$bias, BoolAttr:$causal, Nn_Real:$scale,
                       DefaultValuedAttr<BoolAttr, "false">:$bias_gradient);
  let results = (outs Nn_Float:$dq, Nn_Float:$dk, Nn_Float:$dv, Optional<Nn_Float>:$dbias);
  let rule = "rules::attentionGrad(*this)";
  let origins = "{{false, 0, 2}}";
  let padFill = "operand == 1 || operand == 2 || operand == 6 ? std::nullopt : std::optional<double>(0.0)";
  let infer = "infer::attentionGrad(site, adaptor.getOperands(), adaptor.getBiasGradient())";
  let flops = "::weft::ir::attentionFlops(*this, 5)";
}

def Nn_RotaryOp : Nn_InferOp<"rotary"> {
  let summary = "pairs of elements of each row of x [..., T, D] turned by the angles of cos and sin [T, D / 2]";
  let description = [{
    (a, b) becomes (a cos - b sin, a sin + b cos); `inverse` turns back (Su et al., "RoFormer", 2021). The pairs are
    (i, i + D / 2), or (2 i, 2 i + 1) where `interleaved`.
  }];
  let arguments = (ins Nn_Float:$x, Nn_Float:$cos, Nn_Float:$sin, DefaultValuedAttr<BoolAttr, "false">:$interleaved,
                       DefaultValuedAttr<BoolAttr, "false">:$inverse);
  let results = (outs Nn_Float:$y);
  let rule = "rules::rotary(*this)";
  let linear = "{{0}}";
  let infer = "infer::rotary(site, adaptor.getX(), adaptor.getCos(), adaptor.getSin())";
  let flops = "3 * ::weft::ir::operandElements(*this)";
}

#endif
