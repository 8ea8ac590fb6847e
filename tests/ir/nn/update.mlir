// RUN: weft-opt %s -split-input-file -verify-diagnostics | weft-opt -split-input-file | FileCheck %s

// CHECK-LABEL: @updates
func.func @updates(%p: tensor<4xf32>, %lr: tensor<f32>, %step: tensor<i32>, %apply: tensor<i1>) {
  // CHECK: nn.sgd {{.*}} {momentum = 9.000000e-01 : f64}
  %0:2 = nn.sgd %p, %p, %p, %lr {momentum = 0.9} : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>)
  // CHECK: nn.sgd {{.*}}, f32, i1)
  %1:2 = nn.sgd %p, %p, %p, %lr, %apply : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>, tensor<i1>) -> (tensor<4xf32>, tensor<4xf32>)
  // CHECK: nn.adam {{.*}} {decoupled = true, weight_decay = 1.000000e-02 : f64}
  %2:3 = nn.adam %p, %p, %p, %p, %lr, %step, %apply {decoupled = true, weight_decay = 0.01} : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>, tensor<i32>, tensor<i1>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)
  return
}

// -----

func.func @gradient(%p: tensor<4xf32>, %g: tensor<3xf32>, %lr: tensor<f32>) {
  // expected-error @+2 {{nn.sgd (1): operand 1 is 3xf32; it must be 4xf32}}
  // expected-error @+1 {{failed to infer returned types}}
  %0:2 = nn.sgd %p, %g, %p, %lr : (tensor<4xf32>, tensor<3xf32>, tensor<4xf32>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>)
  return
}

// -----

func.func @rate(%p: tensor<4xf32>, %lr: tensor<4xf32>) {
  // expected-error @+2 {{nn.sgd (2): operand 3 is 4xf32; it must be a scalar}}
  // expected-error @+1 {{failed to infer returned types}}
  %0:2 = nn.sgd %p, %p, %p, %lr : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
  return
}
