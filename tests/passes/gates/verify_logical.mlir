// RUN: weft-opt %s -weft-verify-logical -split-input-file -verify-diagnostics | FileCheck %s

// CHECK-LABEL: func.func @step
func.func @step(%x: tensor<4xf32> {nn.kind = "input", nn.name = "x"}) -> (tensor<4xf32> {nn.kind = "output", nn.name = "y"}) {
  %0 = nn.exp %x : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// expected-error @+1 {{the logical state needs a function @step}}
module {}

// -----

// expected-error @+1 {{argument 0 of @step has kind 'weight'; it should be input, parameter or state}}
func.func @step(%x: tensor<4xf32> {nn.kind = "weight", nn.name = "x"}) {
  return
}

// -----

// expected-error @+1 {{argument 0 of @step has no nn.name}}
func.func @step(%x: tensor<4xf32> {nn.kind = "input"}) {
  return
}

// -----

// expected-error @+1 {{a layout has no place in the logical state: 'tensor<4xf32, #dist.layout<"[{dp}]">>'}}
func.func @step(%x: tensor<4xf32, #dist.layout<"[{dp}]">> {nn.kind = "input", nn.name = "x"}) {
  return
}

// -----

func.func @step(%x: tensor<4xf32> {nn.kind = "input", nn.name = "x"}) {
  // expected-error @+1 {{a layout has no place in the logical state: 'tensor<4xf32, #dist.layout<"[{dp}]">>'}}
  %0 = nn.exp %x : (tensor<4xf32>) -> tensor<4xf32, #dist.layout<"[{dp}]">>
  return
}

// -----

func.func @step(%x: tensor<4xf32> {nn.kind = "input", nn.name = "x"}) {
  // expected-error @+1 {{dist.all_reduce has no place in the logical state; it belongs to the states after}}
  %0 = dist.all_reduce %x {over = #dist.axes<"{dp}">, reduce = "sum"} : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

// Attributes are of the form that later passes read, and none bears a name that nobody reads.
// expected-error @+1 {{nn.layouts = 3 : i64; it should be a list of pairs}}
module attributes {nn.layouts = 3 : i64} {
  func.func @step() {
    return
  }
}

// -----

// expected-error @+1 {{nn.options has an unknown entry 'memorylimit'; did you mean 'memory_limit'?}}
module attributes {nn.options = {memorylimit = 3 : i64}} {
  func.func @step() {
    return
  }
}

// -----

// expected-error @+1 {{argument 0 of @step: nn.init.distribution is "cauchy"; it should be one of "normal", "uniform", "zeros", "ones", "constant"}}
func.func @step(%x: tensor<4xf32> {nn.kind = "parameter", nn.name = "x", nn.init = {distribution = "cauchy"}}) {
  return
}

// -----

func.func @step(%x: tensor<4xf32> {nn.kind = "input", nn.name = "x"}) {
  // expected-error @+1 {{exp: nn.fwd is "x"; it should be a 64-bit integer from 0 to 2^40}}
  %0 = nn.exp %x {nn.fwd = "x"} : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @step(%x: tensor<4xf32> {nn.kind = "input", nn.name = "x"}) {
  // expected-error @+1 {{exp: nn.strategy.in is [4]; it should be a list of lists}}
  %0 = nn.exp %x {nn.strategy = {in = [4]}} : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @step(%x: tensor<4xf32> {nn.kind = "parameter", nn.name = "x"}) -> (tensor<4xf32> {nn.kind = "updated", nn.name = "x", nn.arg = 7 : i64}) {
  // expected-error @+1 {{result 0 of @step replaces argument 7, but there are 1}}
  %0 = nn.exp %x : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

func.func @step(%x: tensor<4xf32> {nn.kind = "input", nn.name = "x"}) {
  // expected-error @+1 {{nn.gradient_of is 'w' on nn.exp}}
  %0 = nn.exp %x {nn.gradient_of = "w"} : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

// A plan could not be read that holds such a name.
// expected-error @+1 {{argument 0 of @step: nn.name is "w\FF"; it should be a text in UTF-8}}
func.func @step(%x: tensor<4xf32> {nn.kind = "parameter", nn.name = "w\FF"}) {
  return
}

// -----

// expected-error @+1 {{@step should have a body of one block}}
func.func private @step()

// -----

// expected-error @+1 {{a program has tensors of static shape}}
func.func @step(%x: tensor<4611686018427387904x4xf32> {nn.kind = "input", nn.name = "x"}) {
  return
}
