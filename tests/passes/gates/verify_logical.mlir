// RUN: weft-opt %s -weft-verify-logical -split-input-file -verify-diagnostics | FileCheck %s

// CHECK-LABEL: func.func @step
func.func @step(%x: tensor<4xf32> {nn.kind = "input", nn.name = "x"}) -> tensor<4xf32> {
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
  %0 = dist.all_reduce %x {groups = [[0, 1]], reduce = "sum"} : (tensor<4xf32>) -> tensor<4xf32>
  return
}
