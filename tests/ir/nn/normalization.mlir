// RUN: weft-opt %s -split-input-file -verify-diagnostics | weft-opt -split-input-file | FileCheck %s

// CHECK-LABEL: @normalization
func.func @normalization(%x: tensor<2x3x4xf32>, %g: tensor<4xf32>) {
  // CHECK: nn.softmax
  %0 = nn.softmax %x : (tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
  // CHECK: nn.softmax_grad
  %1 = nn.softmax_grad %0, %x : (tensor<2x3x4xf32>, tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
  // CHECK: nn.layer_norm {{.*}} {epsilon = 2.500000e-01 : f64}
  %y, %m, %r = nn.layer_norm %x, %g, %g {epsilon = 0.25} : (tensor<2x3x4xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<2x3x4xf32>, tensor<2x3xf32>, tensor<2x3xf32>)
  // CHECK: nn.layer_norm_grad
  %dx, %dg, %db = nn.layer_norm_grad %x, %g, %m, %r, %y : (tensor<2x3x4xf32>, tensor<4xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3x4xf32>) -> (tensor<2x3x4xf32>, tensor<4xf32>, tensor<4xf32>)
  return
}

// -----

func.func @scalar(%x: tensor<f32>) {
  // expected-error @+2 {{nn.softmax (1): f32 has no last dimension}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = nn.softmax %x : (tensor<f32>) -> tensor<f32>
  return
}

// -----

func.func @gamma(%x: tensor<2x4xf32>, %g: tensor<4xf32>, %b: tensor<2xf32>) {
  // expected-error @+2 {{nn.layer_norm (2): beta is 2xf32; it must have the last dimension of 2x4xf32}}
  // expected-error @+1 {{failed to infer returned types}}
  %y, %m, %r = nn.layer_norm %x, %g, %b : (tensor<2x4xf32>, tensor<4xf32>, tensor<2xf32>) -> (tensor<2x4xf32>, tensor<2xf32>, tensor<2xf32>)
  return
}

// -----

func.func @mean(%x: tensor<2x4xf32>, %g: tensor<4xf32>, %m: tensor<4xf32>) {
  // expected-error @+2 {{nn.layer_norm_grad (4): mean is 4xf32; it must have the leading dimensions of 2x4xf32}}
  // expected-error @+1 {{failed to infer returned types}}
  %dx, %dg, %db = nn.layer_norm_grad %x, %g, %m, %m, %x : (tensor<2x4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<2x4xf32>) -> (tensor<2x4xf32>, tensor<4xf32>, tensor<4xf32>)
  return
}
