// Elementwise operators. Two operands follow numpy broadcasting: shapes are aligned at the right, a missing or size-1
// dimension stretches.
#ifndef WEFT_IR_NN_ELEMENTWISE
#define WEFT_IR_NN_ELEMENTWISE

include "ir/nn/nn_base.td"

// y = f(x), same type.
class Nn_Unary<string mnemonic, Type type = Nn_Float> : Nn_InferOp<mnemonic> {
  let arguments = (ins type:$x);
  let results = (outs type:$y);
  let rule = "rules::elementwise(*this)";
  let infer = "infer::same(site, adaptor.getX())";
}

def Nn_NegOp : Nn_Unary<"neg", Nn_Number> {
  let summary = "-x";
  let linear = "{{0}}";
  let passesSums = "true";
}
def Nn_ExpOp : Nn_Unary<"exp"> { let summary = "e^x"; }
def Nn_LogOp : Nn_Unary<"log"> { let summary = "natural logarithm"; }
def Nn_SqrtOp : Nn_Unary<"sqrt"> { let summary = "square root"; }
def Nn_RsqrtOp : Nn_Unary<"rsqrt"> { let summary = "1 / square root"; }
def Nn_TanhOp : Nn_Unary<"tanh"> { let summary = "hyperbolic tangent"; }
def Nn_ReluOp : Nn_Unary<"relu"> { let summary = "max(x, 0)"; }
def Nn_GeluOp : Nn_Unary<"gelu"> {
  let summary = "x times the normal distribution function of x; approximate = \"tanh\" or \"none\"";
  let arguments = (ins Nn_Float:$x, DefaultValuedAttr<StrAttr, "\"tanh\"">:$approximate);
  let infer = "infer::gelu(site, adaptor.getX(), adaptor.getApproximate())";
}
def Nn_AbsOp : Nn_Unary<"abs", Nn_Number> { let summary = "x without its sign"; }
def Nn_SignOp : Nn_Unary<"sign", Nn_Number> { let summary = "-1, 0 or 1, as x is below, at or above 0; no gradient flows"; }
def Nn_FloorOp : Nn_Unary<"floor"> { let summary = "the greatest whole number up to x; no gradient flows"; }
def Nn_CeilOp : Nn_Unary<"ceil"> { let summary = "the smallest whole number from x on; no gradient flows"; }
def Nn_ErfOp : Nn_Unary<"erf"> { let summary = "error function"; }
def Nn_SinOp : Nn_Unary<"sin"> { let summary = "sine"; }
def Nn_CosOp : Nn_Unary<"cos"> { let summary = "cosine"; }
def Nn_SigmoidOp : Nn_Unary<"sigmoid"> { let summary = "1 / (1 + e^-x)"; }
def Nn_SiluOp : Nn_Unary<"silu"> { let summary = "x sigmoid(x)"; }
def Nn_SoftplusOp : Nn_Unary<"softplus"> { let summary = "log(1 + e^x)"; }
def Nn_HardSwishOp : Nn_Unary<"hard_swish"> { let summary = "x min(max(x + 3, 0), 6) / 6"; }
def Nn_LeakyReluOp : Nn_Unary<"leaky_relu"> {
  let summary = "x where x > 0, else slope x";
  let arguments = (ins Nn_Float:$x, Nn_Real:$slope);
}
def Nn_EluOp : Nn_Unary<"elu"> {
  let summary = "x where x > 0, else alpha (e^x - 1)";
  let arguments = (ins Nn_Float:$x, Nn_Real:$alpha);
}
def Nn_ConstrainOp : Nn_Unary<"constrain", Nn_Tensor> {
  let summary = "x itself; the user asks that it, and its gradient, lie as `layout` says";
  let arguments = (ins Nn_Tensor:$x, StrAttr:$layout);
  let linear = "{{0}}";
  let view = "::weft::ViewKind::kAnnotation";
  let flops = "0";
}
def Nn_StopGradientOp : Nn_Unary<"stop_gradient", Nn_Tensor> {
  let summary = "x itself; no gradient flows through";
  let linear = "{{0}}";
  let view = "::weft::ViewKind::kAnnotation";
  let flops = "0";
}
def Nn_CastOp : Nn_Op<"cast"> {
  let summary = "x in another element type";
  let arguments = (ins Nn_Tensor:$x);
  let results = (outs Nn_Tensor:$y);
  let rule = "rules::elementwise(*this)";
  let hasVerifier = 1;
}

// Gradients of activations, linear in dy.
class Nn_ActivationGrad<string mnemonic> : Nn_InferOp<mnemonic> {
  let arguments = (ins Nn_Float:$x, Nn_Float:$dy);
  let results = (outs Nn_Float:$dx);
  let rule = "rules::elementwise(*this)";
  let linear = "{{1}}";
  let infer = "infer::sameOperands(site, adaptor.getOperands())";
}
def Nn_ReluGradOp : Nn_ActivationGrad<"relu_grad"> { let summary = "dy where x > 0, else 0; x or relu(x)"; }
def Nn_GeluGradOp : Nn_ActivationGrad<"gelu_grad"> {
  let summary = "gelu'(x) dy";
  let arguments = (ins Nn_Float:$x, Nn_Float:$dy, DefaultValuedAttr<StrAttr, "\"tanh\"">:$approximate);
  let infer = "infer::geluGrad(site, adaptor.getOperands(), adaptor.getApproximate())";
}
def Nn_TanhGradOp : Nn_ActivationGrad<"tanh_grad"> {
  let summary = "(1 - y^2) dy";
  let arguments = (ins Nn_Float:$y, Nn_Float:$dy);
}
def Nn_SigmoidGradOp : Nn_ActivationGrad<"sigmoid_grad"> {
  let summary = "y (1 - y) dy";
  let arguments = (ins Nn_Float:$y, Nn_Float:$dy);
}
def Nn_SiluGradOp : Nn_ActivationGrad<"silu_grad"> { let summary = "s (1 + x (1 - s)) dy, s = sigmoid(x)"; }
def Nn_SoftplusGradOp : Nn_ActivationGrad<"softplus_grad"> { let summary = "sigmoid(x) dy"; }
def Nn_HardSwishGradOp : Nn_ActivationGrad<"hard_swish_grad"> {
  let summary = "0 up to x = -3, dy from x = 3 on, (x / 3 + 1/2) dy between";
}
def Nn_LeakyReluGradOp : Nn_ActivationGrad<"leaky_relu_grad"> {
  let summary = "dy where x > 0, else slope dy";
  let arguments = (ins Nn_Float:$x, Nn_Float:$dy, Nn_Real:$slope);
}
def Nn_EluGradOp : Nn_ActivationGrad<"elu_grad"> {
  let summary = "dy where x > 0, else alpha e^x dy";
  let arguments = (ins Nn_Float:$x, Nn_Float:$dy, Nn_Real:$alpha);
}

// Two operands with broadcasting, same element type.
class Nn_Binary<string mnemonic, Type type = Nn_Number> : Nn_InferOp<mnemonic> {
  let arguments = (ins type:$a, type:$b);
  let results = (outs type:$y);
  let rule = "rules::elementwise(*this)";
  let infer = "infer::binary(site, adaptor.getA(), adaptor.getB())";
}
def Nn_AddOp : Nn_Binary<"add"> {
  let summary = "a + b";
  let linear = "{{0, 1}}";
  let passesSums = "true";
  let isSum = "true";
}
def Nn_SubOp : Nn_Binary<"sub"> {
  let summary = "a - b";
  let linear = "{{0, 1}}";
  let passesSums = "true";
}
def Nn_MulOp : Nn_Binary<"mul"> {
  let summary = "a b";
  let linear = "{{0}, {1}}";
  let passesSums = "true";
}
def Nn_DivOp : Nn_Binary<"div", Nn_Float> {
  let summary = "a / b";
  let linear = "{{0}}";
  let passesSums = "true";
}
def Nn_PowOp : Nn_Binary<"pow", Nn_Float> { let summary = "a to the power of b"; }
def Nn_MaximumOp : Nn_Binary<"maximum", Nn_Tensor> { let summary = "the greater of a and b"; }
def Nn_MinimumOp : Nn_Binary<"minimum", Nn_Tensor> { let summary = "the smaller of a and b"; }
def Nn_CompareOp : Nn_Binary<"compare", Nn_Tensor> {
  let summary = "a eq, ne, lt, le, gt or ge b";
  let arguments = (ins Nn_Tensor:$a, Nn_Tensor:$b, StrAttr:$predicate);
  let results = (outs Nn_Bool:$y);
  let infer = "infer::compare(site, adaptor.getA(), adaptor.getB(), adaptor.getPredicate())";
}
def Nn_SelectOp : Nn_InferOp<"select"> {
  let summary = "a where condition, else b; broadcasting";
  let arguments = (ins Nn_Bool:$condition, Nn_Tensor:$a, Nn_Tensor:$b);
  let results = (outs Nn_Tensor:$y);
  let rule = "rules::elementwise(*this)";
  let linear = "{{1, 2}}";
  let infer = "infer::select(site, adaptor.getCondition(), adaptor.getA(), adaptor.getB())";
}

#endif
