// RUN: weft-opt %s -split-input-file -verify-diagnostics | weft-opt -split-input-file | FileCheck %s

// CHECK-LABEL: @shapes
func.func @shapes(%x: tensor<2x6xf32>) {
  // CHECK: nn.reshape {{.*}} -> 3x4xf32
  %0 = nn.reshape %x : (tensor<2x6xf32>) -> tensor<3x4xf32>
  // CHECK: nn.transpose {{.*}} {permutation = array<i64: 1, 0>}
  %1 = nn.transpose %0 {permutation = array<i64: 1, 0>} : (tensor<3x4xf32>) -> tensor<4x3xf32>
  // CHECK: nn.slice {{.*}} {offsets = array<i64: 1, 0>, sizes = array<i64: 2, 3>}
  %2 = nn.slice %1 {offsets = array<i64: 1, 0>, sizes = array<i64: 2, 3>} : (tensor<4x3xf32>) -> tensor<2x3xf32>
  // CHECK: nn.pad {{.*}} {high = array<i64: 2, 0>, low = array<i64: 0, 1>}
  %3 = nn.pad %2 {low = array<i64: 0, 1>, high = array<i64: 2, 0>} : (tensor<2x3xf32>) -> tensor<4x4xf32>
  // CHECK: nn.concat {{.*}} {dim = 1 : i64}
  %4 = nn.concat %3, %1, %3 {dim = 1} : (tensor<4x4xf32>, tensor<4x3xf32>, tensor<4x4xf32>) -> tensor<4x11xf32>
  // CHECK: nn.broadcast
  %5 = nn.broadcast %2 : (tensor<2x3xf32>) -> tensor<5x2x3xf32>
  return
}

// -----

func.func @reshape(%x: tensor<2x6xf32>) {
  // expected-error @+1 {{nn.reshape (2): operand 2x6xf32 has 12 elements, result 3x5xf32 has 15}}
  %0 = nn.reshape %x : (tensor<2x6xf32>) -> tensor<3x5xf32>
  return
}

// -----

func.func @transpose(%x: tensor<2x6xf32>) {
  // expected-error @+2 {{nn.transpose (1): permutation [0, 0] does not name every dimension of 2x6xf32 once}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = nn.transpose %x {permutation = array<i64: 0, 0>} : (tensor<2x6xf32>) -> tensor<2x2xf32>
  return
}

// -----

func.func @slice(%x: tensor<2x6xf32>) {
  // expected-error @+2 {{nn.slice (2): offset 4 and size 3 reach outside a dimension of size 6 of 2x6xf32}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = nn.slice %x {offsets = array<i64: 0, 4>, sizes = array<i64: 2, 3>} : (tensor<2x6xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @slice_entries(%x: tensor<2x6xf32>) {
  // expected-error @+2 {{nn.slice (1): offsets [0] and sizes [2] must have one entry for each dimension of 2x6xf32}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = nn.slice %x {offsets = array<i64: 0>, sizes = array<i64: 2>} : (tensor<2x6xf32>) -> tensor<2x6xf32>
  return
}

// -----

func.func @pad(%x: tensor<2xf32>) {
  // expected-error @+2 {{nn.pad (2): low [-1] or high [0] is negative; use slice}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = nn.pad %x {low = array<i64: -1>, high = array<i64: 0>} : (tensor<2xf32>) -> tensor<1xf32>
  return
}

// -----

func.func @concat(%x: tensor<2x6xf32>, %y: tensor<3x6xf32>) {
  // expected-error @+2 {{nn.concat (3): 2x6xf32 and 3x6xf32 may differ only in dimension 1}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = nn.concat %x, %y {dim = 1} : (tensor<2x6xf32>, tensor<3x6xf32>) -> tensor<2x12xf32>
  return
}

// -----

func.func @broadcast(%x: tensor<2xf32>) {
  // expected-error @+1 {{nn.broadcast (2): operand 2xf32 does not broadcast to 2x3xf32}}
  %0 = nn.broadcast %x : (tensor<2xf32>) -> tensor<2x3xf32>
  return
}
