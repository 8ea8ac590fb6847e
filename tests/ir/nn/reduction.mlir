// RUN: weft-opt %s -split-input-file -verify-diagnostics | weft-opt -split-input-file | FileCheck %s

// CHECK-LABEL: @reductions
func.func @reductions(%x: tensor<2x3x4xf32>, %b: tensor<2x3xi1>) {
  // CHECK: nn.sum {{.*}} {dims = array<i64: 0, 2>} : (2x3x4xf32) -> 3xf32
  %0 = nn.sum %x {dims = array<i64: 0, 2>} : (tensor<2x3x4xf32>) -> tensor<3xf32>
  // CHECK: nn.sum {{.*}} {dims = array<i64: 1>, keep_dims = true}
  %1 = nn.sum %x {dims = array<i64: 1>, keep_dims = true} : (tensor<2x3x4xf32>) -> tensor<2x1x4xf32>
  // The count is the global one: a rank that holds half of the elements still divides by all.
  // CHECK: nn.mean {{.*}} {count = 48 : i64, dims = array<i64: 0, 1, 2>}
  %2 = nn.mean %x {dims = array<i64: 0, 1, 2>, keep_dims = false, count = 48} : (tensor<2x3x4xf32>) -> tensor<f32>
  // CHECK: nn.max
  %3 = nn.max %x {dims = array<i64: 2>} : (tensor<2x3x4xf32>) -> tensor<2x3xf32>
  // CHECK: nn.min
  %6 = nn.min %x {dims = array<i64: 2>} : (tensor<2x3x4xf32>) -> tensor<2x3xf32>
  // CHECK: nn.max {{.*}} -> 2xi1
  %7 = nn.max %b {dims = array<i64: 1>} : (tensor<2x3xi1>) -> tensor<2xi1>
  // CHECK: nn.sum_squares
  %4 = nn.sum_squares %x : (tensor<2x3x4xf32>) -> tensor<f32>
  // CHECK: nn.all_finite {{.*}} -> i1
  %5 = nn.all_finite %x : (tensor<2x3x4xf32>) -> tensor<i1>
  return
}

// -----

func.func @dims(%x: tensor<2x3xf32>) {
  // expected-error @+2 {{nn.sum (1): dims are [1, 0]; they must increase and lie in [0, 2) for 2x3xf32}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = nn.sum %x {dims = array<i64: 1, 0>} : (tensor<2x3xf32>) -> tensor<f32>
  return
}

// -----

func.func @outside(%x: tensor<2x3xf32>) {
  // expected-error @+2 {{nn.max (1): dims are [2]; they must increase and lie in [0, 2) for 2x3xf32}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = nn.max %x {dims = array<i64: 2>} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @count(%x: tensor<2x3xf32>) {
  // expected-error @+2 {{nn.mean (2): count is 0; it must be positive}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = nn.mean %x {dims = array<i64: 1>, keep_dims = false, count = 0} : (tensor<2x3xf32>) -> tensor<2xf32>
  return
}
