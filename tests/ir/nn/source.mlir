// RUN: weft-opt %s -split-input-file -verify-diagnostics | weft-opt -split-input-file | FileCheck %s

// CHECK-LABEL: @sources
func.func @sources(%x: tensor<4x2xf32>, %step: tensor<i32>) {
  // CHECK: nn.dropout {{.*}} {key = 3 : i64, rate = 1.000000e-01 : f64, seed = 7 : i64}
  %0 = nn.dropout %x, %step {rate = 0.1, seed = 7, key = 3} : (tensor<4x2xf32>, tensor<i32>) -> tensor<4x2xf32>
  // Local state: the shape of the whole tensor is an attribute.
  // CHECK: nn.dropout {{.*}} {global_shape = array<i64: 8, 2>
  %1 = nn.dropout %x, %step {rate = 0.1, seed = 7, key = 3, global_shape = array<i64: 8, 2>} : (tensor<4x2xf32>, tensor<i32>) -> tensor<4x2xf32>
  // CHECK: nn.random {{.*}}distribution = "normal"
  %2 = nn.random {distribution = "normal", a = 0.0, b = 0.02, seed = 1, key = 2} : () -> tensor<4x2xf32>
  // CHECK: nn.constant {{.*}}value = dense<[1, 2, 3]> : tensor<3xi32>
  %3 = nn.constant {value = dense<[1, 2, 3]> : tensor<3xi32>} : () -> tensor<3xi32>
  // A splat takes any shape: a rank's part of it is the same attribute.
  // CHECK: nn.constant {{.*}} : 2xi32
  %4 = nn.constant {value = dense<1> : tensor<4xi32>} : () -> tensor<2xi32>
  // CHECK: nn.fill
  %5 = nn.fill {value = 1.0} : () -> tensor<2x2xi1>
  // CHECK: nn.iota {{.*}}dim = 1 : i64
  %6 = nn.iota {dim = 1} : () -> tensor<2x5xi64>
  return
}

// -----

func.func @rate(%x: tensor<4xf32>, %step: tensor<i32>) {
  // expected-error @+2 {{nn.dropout (2): rate is 1.000000; it must lie in [0, 1)}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = nn.dropout %x, %step {rate = 1.0, seed = 7, key = 3} : (tensor<4xf32>, tensor<i32>) -> tensor<4xf32>
  return
}

// -----

func.func @step(%x: tensor<4xf32>, %step: tensor<4xi32>) {
  // expected-error @+2 {{nn.dropout (1): step is 4xi32; it must be a scalar}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = nn.dropout %x, %step {rate = 0.5, seed = 7, key = 3} : (tensor<4xf32>, tensor<4xi32>) -> tensor<4xf32>
  return
}

// -----

func.func @distribution() {
  // expected-error @+1 {{nn.random (1): distribution is "gauss"; it must be "normal" or "uniform"}}
  %0 = nn.random {distribution = "gauss", a = 0.0, b = 1.0, seed = 1, key = 2} : () -> tensor<2xf32>
  return
}

// -----

func.func @range() {
  // expected-error @+1 {{nn.random (2): a = 1.000000 and b = 0.000000: the range is empty}}
  %0 = nn.random {distribution = "uniform", a = 1.0, b = 0.0, seed = 1, key = 2} : () -> tensor<2xf32>
  return
}

// -----

func.func @constant() {
  // expected-error @+1 {{nn.constant (2): the value has 3 elements of another shape than the result 2xi32}}
  %0 = nn.constant {value = dense<[1, 2, 3]> : tensor<3xi32>} : () -> tensor<2xi32>
  return
}

// -----

func.func @iota() {
  // expected-error @+1 {{nn.iota (1): dim 1 is not a dimension of 2xi32}}
  %0 = nn.iota {dim = 1} : () -> tensor<2xi32>
  return
}
