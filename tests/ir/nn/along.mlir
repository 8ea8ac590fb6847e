// RUN: weft-opt %s -split-input-file -verify-diagnostics | weft-opt -split-input-file | FileCheck %s

// CHECK-LABEL: @along
func.func @along(%x: tensor<2x3x4xf32>, %b: tensor<2x3xi1>) {
  // CHECK: nn.cumsum {{.*}} {dim = 1 : i64} : 2x3x4xf32
  %0 = nn.cumsum %x {dim = 1} : (tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
  // CHECK: nn.cumsum {{.*}} {dim = 0 : i64, reverse = true}
  %1 = nn.cumsum %x {dim = 0, reverse = true} : (tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
  // CHECK: nn.prod {{.*}} -> 2x4xf32
  %2 = nn.prod %x {dim = 1} : (tensor<2x3x4xf32>) -> tensor<2x4xf32>
  // CHECK: nn.prod_grad {{.*}} -> 2x3x4xf32
  %3 = nn.prod_grad %x, %2 {dim = 1} : (tensor<2x3x4xf32>, tensor<2x4xf32>) -> tensor<2x3x4xf32>
  // CHECK: nn.argmax {{.*}} -> 2x3xi32
  %4 = nn.argmax %x {dim = 2} : (tensor<2x3x4xf32>) -> tensor<2x3xi32>
  // CHECK: nn.argmin {{.*}} -> 3xi32
  %5 = nn.argmin %b {dim = 0} : (tensor<2x3xi1>) -> tensor<3xi32>
  // CHECK: nn.sort {{.*}} {count = 4 : i64} : (2x3x4xf32) -> (2x3x4xf32, 2x3x4xi32)
  %6:2 = nn.sort %x {count = 4} : (tensor<2x3x4xf32>) -> (tensor<2x3x4xf32>, tensor<2x3x4xi32>)
  // CHECK: nn.sort {{.*}} {count = 2 : i64, descending = true} : (2x3x4xf32) -> (2x3x2xf32, 2x3x2xi32)
  %7:2 = nn.sort %x {count = 2, descending = true} : (tensor<2x3x4xf32>) -> (tensor<2x3x2xf32>, tensor<2x3x2xi32>)
  // CHECK: nn.log_softmax
  %8 = nn.log_softmax %x : (tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
  // CHECK: nn.log_softmax_grad
  %9 = nn.log_softmax_grad %8, %x : (tensor<2x3x4xf32>, tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
  // CHECK: nn.flip {{.*}} {dims = array<i64: 0, 2>}
  %10 = nn.flip %x {dims = array<i64: 0, 2>} : (tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
  // CHECK: nn.pad {{.*}} {high = array<i64: 1>, low = array<i64: 0>, value = 2.500000e+00 : f64}
  %v = nn.fill {value = 1.0} : () -> tensor<3xf32>
  %11 = nn.pad %v {low = array<i64: 0>, high = array<i64: 1>, value = 2.5} : (tensor<3xf32>) -> tensor<4xf32>
  return
}

// CHECK-LABEL: @lookup
func.func @lookup(%x: tensor<2x5xf32>, %i: tensor<2x3xi32>) {
  // CHECK: nn.gather {{.*}} {dim = 1 : i64, rows = 5 : i64} {{.*}} -> 2x3xf32
  %0 = nn.gather %x, %i {dim = 1, rows = 5} : (tensor<2x5xf32>, tensor<2x3xi32>) -> tensor<2x3xf32>
  // CHECK: nn.scatter_add {{.*}} {dim = 1 : i64, rows = 5 : i64} {{.*}} -> 2x5xf32
  %1 = nn.scatter_add %i, %0 {dim = 1, rows = 5} : (tensor<2x3xi32>, tensor<2x3xf32>) -> tensor<2x5xf32>
  return
}

// -----

func.func @dim(%x: tensor<2x3xf32>) {
  // expected-error @+2 {{nn.cumsum (1): dim 2 is not a dimension of 2x3xf32}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = nn.cumsum %x {dim = 2} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @prod_grad(%x: tensor<2x3xf32>, %dy: tensor<3xf32>) {
  // expected-error @+2 {{nn.prod_grad (2): dy is 3xf32; it must be 2x3xf32 without dimension 1}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = nn.prod_grad %x, %dy {dim = 1} : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @argmax(%x: tensor<3000000000xi1>) {
  // expected-error @+2 {{nn.argmax (2): dimension 0 of 3000000000xi1 has more than 2147483647 elements, which an i32 index does not count}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = nn.argmax %x {dim = 0} : (tensor<3000000000xi1>) -> tensor<i32>
  return
}

// -----

func.func @sort_scalar(%x: tensor<f32>) {
  // expected-error @+2 {{nn.sort (1): f32 has no last dimension}}
  // expected-error @+1 {{failed to infer returned types}}
  %0:2 = nn.sort %x {count = 1} : (tensor<f32>) -> (tensor<f32>, tensor<i32>)
  return
}

// -----

func.func @sort_count(%x: tensor<2x3xf32>) {
  // expected-error @+2 {{nn.sort (2): count is 4; it must lie in [1, 3] for 2x3xf32}}
  // expected-error @+1 {{failed to infer returned types}}
  %0:2 = nn.sort %x {count = 4} : (tensor<2x3xf32>) -> (tensor<2x4xf32>, tensor<2x4xi32>)
  return
}

// -----

func.func @flip(%x: tensor<2x3xf32>) {
  // expected-error @+2 {{nn.flip (1): dims are [2]; they must increase and lie in [0, 2) for 2x3xf32}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = nn.flip %x {dims = array<i64: 2>} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @gather(%x: tensor<2x5xf32>, %i: tensor<3x3xi32>) {
  // expected-error @+2 {{nn.gather (2): the index is 3x3xi32; it may differ from 2x5xf32 only in dimension 1}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = nn.gather %x, %i {dim = 1, rows = 5} : (tensor<2x5xf32>, tensor<3x3xi32>) -> tensor<3x3xf32>
  return
}

// -----

func.func @gather_rows(%x: tensor<2x5xf32>, %i: tensor<2x3xi32>) {
  // expected-error @+2 {{nn.gather (3): rows is 0; it must be positive}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = nn.gather %x, %i {dim = 1, rows = 0} : (tensor<2x5xf32>, tensor<2x3xi32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @scatter_dim(%i: tensor<2x3xi32>, %u: tensor<2x3xf32>) {
  // expected-error @+1 {{nn.scatter_add (1): dim 2 is not a dimension of 2x5xf32}}
  %0 = nn.scatter_add %i, %u {dim = 2, rows = 5} : (tensor<2x3xi32>, tensor<2x3xf32>) -> tensor<2x5xf32>
  return
}

// -----

func.func @scatter_index(%i: tensor<2x4xi32>, %u: tensor<2x3xf32>) {
  // expected-error @+1 {{nn.scatter_add (2): the index is 2x4xi32 and updates are 2x3xf32; they must have one shape}}
  %0 = nn.scatter_add %i, %u {dim = 1, rows = 5} : (tensor<2x4xi32>, tensor<2x3xf32>) -> tensor<2x5xf32>
  return
}

// -----

func.func @scatter_result(%i: tensor<2x3xi32>, %u: tensor<2x3xf32>) {
  // expected-error @+1 {{nn.scatter_add (3): updates are 2x3xf32; they may differ from the result 4x5xf32 only in dimension 1}}
  %0 = nn.scatter_add %i, %u {dim = 1, rows = 5} : (tensor<2x3xi32>, tensor<2x3xf32>) -> tensor<4x5xf32>
  return
}

// -----

func.func @scatter_rows(%i: tensor<2x3xi32>, %u: tensor<2x3xf32>) {
  // expected-error @+1 {{nn.scatter_add (4): rows is 0; it must be positive}}
  %0 = nn.scatter_add %i, %u {dim = 1, rows = 0} : (tensor<2x3xi32>, tensor<2x3xf32>) -> tensor<2x5xf32>
  return
}
