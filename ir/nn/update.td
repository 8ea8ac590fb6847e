// Optimizer steps as operators on device state. `apply`, a bool scalar, false leaves every tensor as it was.
// Formulas: SGD with momentum and decoupled or coupled weight decay; Adam (Kingma and Ba 2015), AdamW (Loshchilov and
// Hutter 2019) when `decoupled`. `step` counts from 1.
//
// SGD and Adam are one operator each. Other optimizers are composed (passes/logical/optimizers.cc): a direction, made of
// the gradient and its state, and a step along it, `descend` or `sgd`. An operator makes all elements of a direction in
// one pass and may write it over the gradient, so that it costs no memory.
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

// A direction made of a gradient and state of the same shape: the direction, then the new state.
class Nn_Direction<string mnemonic> : Nn_InferOp<mnemonic> {
  let rule = "rules::elementwise(*this)";
}
def Nn_AdamDirectionOp : Nn_Direction<"adam_direction"> {
  let summary = "Adam's: mean of gradients over the root of that of squares, both without the bias of the first steps";
  let arguments = (ins Nn_Float:$grad, Nn_Float:$m, Nn_Float:$v, Nn_Ids:$step, DefaultValuedAttr<Nn_Real, "0.9">:$beta1,
                       DefaultValuedAttr<Nn_Real, "0.999">:$beta2, DefaultValuedAttr<Nn_Real, "1e-8">:$epsilon);
  let results = (outs Nn_Float:$direction, Nn_Float:$new_m, Nn_Float:$new_v);
  let infer = "infer::update(site, adaptor.getOperands(), 3, 3)";
  let flops = "12 * ::weft::ir::operandElements(*this)";
}
def Nn_RmsDirectionOp : Nn_Direction<"rms_direction"> {
  let summary = "grad / (sqrt(v') + epsilon), v' = decay v + gain grad^2: that of Adagrad and RMSprop";
  let arguments = (ins Nn_Float:$grad, Nn_Float:$v, DefaultValuedAttr<Nn_Real, "1.0">:$decay,
                       DefaultValuedAttr<Nn_Real, "1.0">:$gain, DefaultValuedAttr<Nn_Real, "1e-8">:$epsilon);
  let results = (outs Nn_Float:$direction, Nn_Float:$new_v);
  let infer = "infer::update(site, adaptor.getOperands(), 2, 2)";
  let flops = "7 * ::weft::ir::operandElements(*this)";
}
def Nn_LionDirectionOp : Nn_Direction<"lion_direction"> {
  let summary = "Lion's: sign(beta1 m + (1 - beta1) grad), m' = beta2 m + (1 - beta2) grad (Chen et al. 2023)";
  let arguments = (ins Nn_Float:$grad, Nn_Float:$m, DefaultValuedAttr<Nn_Real, "0.9">:$beta1,
                       DefaultValuedAttr<Nn_Real, "0.99">:$beta2);
  let results = (outs Nn_Float:$direction, Nn_Float:$new_m);
  let infer = "infer::update(site, adaptor.getOperands(), 2, 2)";
  let flops = "8 * ::weft::ir::operandElements(*this)";
}
def Nn_DescendOp : Nn_InferOp<"descend"> {
  let summary = "param (1 - lr weight_decay) - rate direction: a step, with decay that is not part of the direction";
  let arguments = (ins Nn_Float:$param, Nn_Float:$direction, Nn_Float:$rate, Nn_Float:$lr,
                       DefaultValuedAttr<Nn_Real, "0.0">:$weight_decay);
  let results = (outs Nn_Float:$new_param);
  let rule = "rules::elementwise(*this)";
  let updatesParameter = "true";
  let infer = "infer::update(site, adaptor.getOperands(), 2, 1)";
  let flops = "3 * ::weft::ir::operandElements(*this)";
}

#endif
