// RUN: weft-opt %s -weft-build-gradients -split-input-file -verify-diagnostics | FileCheck %s

// Results, marks, factor letters of the forward rule, and a sum that has no forward operator.
// CHECK-LABEL: func.func @step
// CHECK-SAME: tensor<8x16xf32> {nn.kind = "gradient", nn.name = "grad.w"}
// CHECK-SAME: tensor<3xf32> {nn.kind = "gradient", nn.name = "grad.unused"}
func.func @step(%x: tensor<4x8xf32> {nn.kind = "input", nn.name = "x"},
                %w: tensor<8x16xf32> {nn.kind = "parameter", nn.name = "w"},
                %f: tensor<4x16xf32> {nn.kind = "parameter", nn.name = "f", nn.frozen},
                %u: tensor<3xf32> {nn.kind = "parameter", nn.name = "unused"})
    -> (tensor<f32> {nn.kind = "loss", nn.name = "loss"}) {
  // CHECK: nn.matmul {{.*}}nn.id = 0 : i64
  %0 = nn.matmul %x, %w {nn.name = "fc"} : (tensor<4x8xf32>, tensor<8x16xf32>) -> tensor<4x16xf32>
  %1 = nn.mul %0, %f : (tensor<4x16xf32>, tensor<4x16xf32>) -> tensor<4x16xf32>
  %2 = nn.add %1, %0 : (tensor<4x16xf32>, tensor<4x16xf32>) -> tensor<4x16xf32>
  // CHECK: nn.sum {{.*}}nn.id = 3 : i64
  %3 = nn.sum %2 {dims = array<i64: 0, 1>} : (tensor<4x16xf32>) -> tensor<f32>
  // CHECK: nn.fill {nn.phase = "backward", value = 1.000000e+00 : f64}
  // CHECK: nn.broadcast {{.*}}nn.fwd = 3 : i64, nn.phase = "backward"
  // CHECK: nn.mul {{.*}}nn.fwd = 1 : i64
  // CHECK-NEXT: nn.add %{{[0-9]+}}, %{{[0-9]+}} {nn.phase = "backward"}
  // CHECK-NEXT: nn.contract {{.*}} {nn.fwd = 0 : i64, nn.name = "fc.grad", nn.phase = "backward", spec = "m k, m n -> k n"}
  // CHECK-NEXT: nn.fill {nn.phase = "backward", value = 0.000000e+00 : f64} : 3xf32
  return %3 : tensor<f32>
}

// -----

func.func @step(%w: tensor<2xf32> {nn.kind = "parameter", nn.name = "w"}) -> (tensor<2xf32> {nn.kind = "loss", nn.name = "loss"}) {
  // expected-error @+1 {{the loss is 'tensor<2xf32>'; it must be a scalar of a float type: take its mean or sum}}
  %0 = nn.exp %w : (tensor<2xf32>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}

// -----

func.func @step(%w: tensor<2xf32> {nn.kind = "parameter", nn.name = "w"}, %dy: tensor<2xf32> {nn.kind = "input", nn.name = "dy"})
    -> (tensor<f32> {nn.kind = "loss", nn.name = "loss"}) {
  // expected-error @+1 {{nn.relu_grad has no gradient, and the loss depends through it on parameter 'w'; use stop_gradient, freeze the parameter, or register a gradient}}
  %0 = nn.relu_grad %w, %dy : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %1 = nn.sum %0 {dims = array<i64: 0>} : (tensor<2xf32>) -> tensor<f32>
  return %1 : tensor<f32>
}

// -----

// Behind stop_gradient an operator needs no gradient.
// CHECK-LABEL: func.func @step
// CHECK-SAME: nn.name = "grad.w"
func.func @step(%w: tensor<2xf32> {nn.kind = "parameter", nn.name = "w"}) -> (tensor<f32> {nn.kind = "loss", nn.name = "loss"}) {
  %0 = nn.relu_grad %w, %w : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %1 = nn.stop_gradient %0 : (tensor<2xf32>) -> tensor<2xf32>
  %2 = nn.sum %1 {dims = array<i64: 0>} : (tensor<2xf32>) -> tensor<f32>
  // CHECK: nn.fill {{.*}}value = 0.000000e+00
  return %2 : tensor<f32>
}

// -----

// expected-error @+1 {{the first result of @step is not marked nn.kind = "loss"; there is nothing to differentiate}}
func.func @step(%w: tensor<f32> {nn.kind = "parameter", nn.name = "w"}) -> (tensor<f32> {nn.kind = "output", nn.name = "y"}) {
  return %w : tensor<f32>
}

// -----

func.func @step(%x: tensor<2x4xf32> {nn.kind = "parameter", nn.name = "x"}, %g: tensor<4xf32> {nn.kind = "input", nn.name = "g"})
    -> (tensor<f32> {nn.kind = "loss", nn.name = "loss"}) {
  // expected-error @+1 {{the mean or rstd result of nn.layer_norm is part of the loss; it has no gradient}}
  %y, %m, %r = nn.layer_norm %x, %g, %g : (tensor<2x4xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<2x4xf32>, tensor<2xf32>, tensor<2xf32>)
  %0 = nn.sum %m {dims = array<i64: 0>} : (tensor<2xf32>) -> tensor<f32>
  return %0 : tensor<f32>
}

// -----

// Gradients that the user asked for: of a parameter, finished for what reads it, which runs in the update; of an input,
// as it is. The parameter that he updates is no business of the loss.
// CHECK-LABEL: func.func @step
// CHECK-SAME: nn.name = "grad.v"
// CHECK-NOT: nn.name = "grad.w"
func.func @step(%x: tensor<2xf32> {nn.kind = "input", nn.name = "x"}, %w: tensor<2xf32> {nn.kind = "parameter", nn.name = "w"},
                %v: tensor<2xf32> {nn.kind = "parameter", nn.name = "v"})
    -> (tensor<f32> {nn.kind = "loss", nn.name = "loss"}, tensor<2xf32> {nn.arg = 1 : i64, nn.kind = "updated", nn.name = "w"},
        tensor<2xf32> {nn.kind = "output", nn.name = "dx"}) {
  %0 = nn.mul %x, %w : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %1 = nn.mul %0, %v : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %2 = nn.sum %1 {dims = array<i64: 0>} : (tensor<2xf32>) -> tensor<f32>
  // CHECK: %[[DX:.*]] = nn.mul %{{.*}}, %arg1 {nn.fwd = 0 : i64, {{.*}}nn.phase = "backward"}
  // CHECK: %[[DW:.*]] = nn.mul %{{.*}}, %arg0 {nn.fwd = 0 : i64, {{.*}}nn.phase = "backward"}
  // CHECK: %[[G:.*]] = nn.constrain %[[DW]] {layout = "", nn.gradient_of = "w", {{.*}}nn.phase = "update"}
  %dw, %dx = nn.gradient %2, %w, %x : (tensor<f32>, tensor<2xf32>, tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>)
  // CHECK: nn.sub %arg1, %[[G]] {{.*}}nn.phase = "update"
  %3 = nn.sub %w, %dw : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  // CHECK: nn.exp %[[DX]] {{.*}}nn.phase = "backward"
  %4 = nn.exp %dx : (tensor<2xf32>) -> tensor<2xf32>
  return %2, %3, %4 : tensor<f32>, tensor<2xf32>, tensor<2xf32>
}

// -----

// The loss depends on a gradient: what was differentiated again reads it before it is finished.
// CHECK-LABEL: func.func @step
func.func @step(%x: tensor<2xf32> {nn.kind = "input", nn.name = "x"}, %w: tensor<2xf32> {nn.kind = "parameter", nn.name = "w"})
    -> (tensor<f32> {nn.kind = "loss", nn.name = "loss"}) {
  %0 = nn.mul %w, %w : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %1 = nn.sum %0 {dims = array<i64: 0>} : (tensor<2xf32>) -> tensor<f32>
  // CHECK: %[[DW:.*]] = nn.add %{{.*}} {{.*}}nn.phase = "backward"
  // CHECK: nn.constrain %[[DW]]
  %dw = nn.gradient %1, %w : (tensor<f32>, tensor<2xf32>) -> tensor<2xf32>
  // CHECK: nn.mul %[[DW]], %[[DW]] {{.*}}nn.phase = "backward"
  %2 = nn.mul %dw, %dw : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %3 = nn.sum %2 {dims = array<i64: 0>} : (tensor<2xf32>) -> tensor<f32>
  return %3 : tensor<f32>
}

// -----

func.func @step(%w: tensor<2xf32> {nn.kind = "parameter", nn.name = "w"}) -> (tensor<2xf32> {nn.kind = "output", nn.name = "y"}) {
  // expected-error @+1 {{nn.gradient (1): y is 2xf32; a scalar is differentiated: take its sum or mean}}
  %0 = nn.gradient %w, %w : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}

// -----

func.func @step(%l: tensor<f32> {nn.kind = "parameter", nn.name = "l"}, %w: tensor<2xf32> {nn.kind = "parameter", nn.name = "w"})
    -> (tensor<3xf32> {nn.kind = "output", nn.name = "y"}) {
  // expected-error @+1 {{nn.gradient (2): the gradients are not like the values that they are taken with respect to}}
  %0 = nn.gradient %l, %w : (tensor<f32>, tensor<2xf32>) -> tensor<3xf32>
  return %0 : tensor<3xf32>
}
