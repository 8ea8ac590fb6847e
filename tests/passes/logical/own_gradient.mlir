// RUN: weft-opt %s -weft-build-gradients -split-input-file -verify-diagnostics | FileCheck %s

// Of the function of a user's own gradient only what the wanted gradient needs is copied: %b is an input, so the
// product with %a is not. Zeros stand for the gradient of a result that nothing reads.
// CHECK-LABEL: func.func @step
func.func @step(%a: tensor<2x3xf32> {nn.kind = "parameter", nn.name = "a"},
                %b: tensor<2x3xf32> {nn.kind = "input", nn.name = "b"})
    -> (tensor<f32> {nn.kind = "loss", nn.name = "loss"}) {
  // CHECK: %[[Y:.*]]:2 = nn.custom %arg0, %arg1
  %y, %z = nn.custom %a, %b {kind = "own", factors = "r c, r c -> r c, r c", linear = [], work = 1.0 : f64, gradient = @own_gradient, gradient_of = array<i64: 0, 1>}
    : (tensor<2x3xf32>, tensor<2x3xf32>) -> (tensor<2x3xf32>, tensor<2x3xf32>)
  %loss = nn.sum %y {dims = array<i64: 0, 1>} : (tensor<2x3xf32>) -> tensor<f32>
  // CHECK: %[[DY:.*]] = nn.broadcast
  // CHECK-NEXT: %[[ZERO:.*]] = nn.fill {nn.fwd = 0 : i64, nn.phase = "backward", value = 0.000000e+00 : f64}
  // CHECK-NEXT: %[[P:.*]] = nn.mul %[[DY]], %arg1 {nn.fwd = 0 : i64, nn.phase = "backward"}
  // CHECK-NEXT: %[[G:.*]] = nn.add %[[P]], %[[ZERO]] {nn.fwd = 0 : i64, nn.phase = "backward"}
  // CHECK-NEXT: return %{{.*}}, %[[G]]
  return %loss : tensor<f32>
}
func.func private @own_gradient(%a: tensor<2x3xf32>, %b: tensor<2x3xf32>, %y: tensor<2x3xf32>, %z: tensor<2x3xf32>,
                                %dy: tensor<2x3xf32>, %dz: tensor<2x3xf32>) -> (tensor<2x3xf32>, tensor<2x3xf32>) {
  %0 = nn.mul %dy, %b : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  %1 = nn.mul %dy, %a : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  %2 = nn.add %0, %dz : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  return %2, %1 : tensor<2x3xf32>, tensor<2x3xf32>
}

// -----

func.func @step(%a: tensor<2x3xf32> {nn.kind = "parameter", nn.name = "a"})
    -> (tensor<f32> {nn.kind = "loss", nn.name = "loss"}) {
  // expected-error @+1 {{own has no gradient, and the loss depends on a parameter through it}}
  %y = nn.custom %a {kind = "own", factors = "r c -> r c", linear = [], work = 1.0 : f64} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %loss = nn.sum %y {dims = array<i64: 0, 1>} : (tensor<2x3xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

func.func @step(%a: tensor<2x3xf32> {nn.kind = "parameter", nn.name = "a"})
    -> (tensor<f32> {nn.kind = "loss", nn.name = "loss"}) {
  // expected-error @+1 {{own: its gradient, @none, is no function of the module}}
  %y = nn.custom %a {kind = "own", factors = "r c -> r c", linear = [], work = 1.0 : f64, gradient = @none, gradient_of = array<i64: 0>} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %loss = nn.sum %y {dims = array<i64: 0, 1>} : (tensor<2x3xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}
