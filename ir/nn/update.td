// Optimizer steps as operators on device state. `apply`, a bool scalar, false leaves every tensor as it was.
// Formulas: SGD with momentum and decoupled or coupled weight decay; Adam (Kingma and Ba 2015), AdamW (Loshchilov and
// Hutter 2019) when `decoupled`. `step` counts from 1.
#ifndef WEFT_IR_NN_UPDATE
#define WEFT_IR_NN_UPDATE

include "ir/nn/nn_base.td"

def Nn_SgdOp : Nn_InferOp<"sgd"> {
  let summary = "one step of stochastic gradient descent: new parameter and momentum buffer";
  let arguments = (ins Nn_Float:$param, Nn_Float:$grad, Nn_Float:$velocity, Nn_Float:$lr, Optional<Nn_Bool>:$apply,
                       DefaultValuedAttr<Nn_Real, "0.0">:$momentum, DefaultValuedAttr<Nn_Real, "0.0">:$weight_decay,
                       DefaultValuedAttr<BoolAttr, "false">:$nesterov);
  let results = (outs Nn_Float:$new_param, Nn_Float:$new_velocity);
  let rule = "rules::elementwise(*this)";
  let updatesParameter = "true";
  let infer = "infer::update(site, adaptor.getOperands(), 3, 2)";
  let flops = "6 * ::weft::ir::operandElements(*this)";
}
def Nn_AdamOp : Nn_InferOp<"adam"> {
  let summary = "one step of Adam or AdamW: new parameter, first and second moment";
  let arguments = (ins Nn_Float:$param, Nn_Float:$grad, Nn_Float:$m, Nn_Float:$v, Nn_Float:$lr, Nn_Ids:$step,
                       Optional<Nn_Bool>:$apply, DefaultValuedAttr<Nn_Real, "0.9">:$beta1,
                       DefaultValuedAttr<Nn_Real, "0.999">:$beta2, DefaultValuedAttr<Nn_Real, "1e-8">:$epsilon,
                       DefaultValuedAttr<Nn_Real, "0.0">:$weight_decay,
                       DefaultValuedAttr<BoolAttr, "false">:$decoupled);
  let results = (outs Nn_Float:$new_param, Nn_Float:$new_m, Nn_Float:$new_v);
  let rule = "rules::elementwise(*this)";
  let updatesParameter = "true";
  let infer = "infer::update(site, adaptor.getOperands(), 4, 3)";
  let flops = "15 * ::weft::ir::operandElements(*this)";
}

#endif
