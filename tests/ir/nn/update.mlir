// RUN: weft-opt %s -split-input-file -verify-diagnostics | weft-opt -split-input-file | FileCheck %s

// CHECK-LABEL: @updates
func.func @updates(%p: tensor<4xf32>, %lr: tensor<f32>, %step: tensor<i32>, %apply: tensor<i1>) {
  // CHECK: nn.sgd {{.*}} {momentum = 9.000000e-01 : f64}
  %0:2 = nn.sgd %p, %p, %p, %lr {momentum = 0.9} : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>)
  // CHECK: nn.sgd {{.*}}, f32, i1)
  %1:2 = nn.sgd %p, %p, %p, %lr, %apply : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>, tensor<i1>) -> (tensor<4xf32>, tensor<4xf32>)
  // CHECK: nn.adam {{.*}} {decoupled = true, weight_decay = 1.000000e-02 : f64}
  %2:3 = nn.adam %p, %p, %p, %p, %lr, %step, %apply {decoupled = true, weight_decay = 0.01} : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>, tensor<i32>, tensor<i1>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)
  // CHECK: nn.adam_direction {{.*}} {beta1 = 5.000000e-01 : f64}
  %3:3 = nn.adam_direction %p, %p, %p, %step {beta1 = 0.5} : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<i32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)
  // CHECK: nn.rms_direction {{.*}} {decay = 7.500000e-01 : f64, gain = 2.500000e-01 : f64}
  %4:2 = nn.rms_direction %p, %p {decay = 0.75, gain = 0.25} : (tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
  // CHECK: nn.lion_direction {{.*}} : (4xf32, 4xf32)
  %5:2 = nn.lion_direction %p, %p : (tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
  // CHECK: nn.descend {{.*}} {weight_decay = 1.000000e-01 : f64}
  %6 = nn.descend %p, %p, %lr, %lr {weight_decay = 0.1} : (tensor<4xf32>, tensor<4xf32>, tensor<f32>, tensor<f32>) -> tensor<4xf32>
  return
}

// -----

func.func @direction(%p: tensor<4xf32>, %v: tensor<3xf32>) {
  // expected-error @+2 {{nn.rms_direction (1): operand 1 is 3xf32; it must be 4xf32}}
  // expected-error @+1 {{failed to infer returned types}}
  %0:2 = nn.rms_direction %p, %v : (tensor<4xf32>, tensor<3xf32>) -> (tensor<4xf32>, tensor<4xf32>)
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
