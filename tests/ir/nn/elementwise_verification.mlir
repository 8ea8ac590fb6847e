// RUN: weft-opt %s -split-input-file -verify-diagnostics

func.func @element_types(%a: tensor<2xf32>, %b: tensor<2xf64>) {
  // expected-error @+2 {{nn.add (1): element types differ: 2xf32 and 2xf64; cast one of them}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = nn.add %a, %b : (tensor<2xf32>, tensor<2xf64>) -> tensor<2xf32>
  return
}

// -----

func.func @shapes(%a: tensor<2x3xf32>, %b: tensor<2xf32>) {
  // expected-error @+2 {{nn.mul (2): shapes do not broadcast: 2x3xf32 and 2xf32 have sizes 3 and 2 in a dimension, aligned at the right}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = nn.mul %a, %b : (tensor<2x3xf32>, tensor<2xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @result(%a: tensor<2x3xf32>) {
  // expected-error @+2 {{failed to infer returned types}}
  // expected-error @+1 {{'nn.neg' op inferred type(s) 'tensor<2x3xf32>' are incompatible with return type(s) of operation 'tensor<3x2xf32>'}}
  %0 = nn.neg %a : (tensor<2x3xf32>) -> tensor<3x2xf32>
  return
}

// -----

func.func @predicate(%a: tensor<2xf32>) {
  // expected-error @+2 {{nn.compare (3): predicate is "less"; it must be eq, ne, lt, le, gt or ge}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = nn.compare %a, %a {predicate = "less"} : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xi1>
  return
}

// -----

func.func @approximate(%a: tensor<2xf32>) {
  // expected-error @+2 {{nn.gelu (1): approximate is "erf"; it must be "tanh" or "none"}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = nn.gelu %a {approximate = "erf"} : (tensor<2xf32>) -> tensor<2xf32>
  return
}

// -----

func.func @gradient_shape(%a: tensor<2xf32>, %b: tensor<3xf32>) {
  // expected-error @+2 {{nn.relu_grad (1): an operand is 3xf32; it must be 2xf32}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = nn.relu_grad %a, %b : (tensor<2xf32>, tensor<3xf32>) -> tensor<2xf32>
  return
}

// -----

func.func @cast_shape(%a: tensor<2xf32>) {
  // expected-error @+1 {{nn.cast (1): operand 2xf32 and result 3xf64 have different shapes}}
  %0 = nn.cast %a : (tensor<2xf32>) -> tensor<3xf64>
  return
}

// -----

func.func @integers(%a: tensor<2xi32>) {
  // expected-error @+1 {{'nn.exp' op operand #0 must be statically shaped tensor}}
  %0 = nn.exp %a : (tensor<2xi32>) -> tensor<2xi32>
  return
}

// -----

func.func @dynamic(%a: tensor<?xf32>) {
  // expected-error @+1 {{'nn.exp' op operand #0 must be statically shaped tensor}}
  %0 = nn.exp %a : (tensor<?xf32>) -> tensor<?xf32>
  return
}
