// RUN: weft-opt %s -weft-simplify | FileCheck %s

// CHECK-LABEL: @identities
// CHECK-NEXT: return %arg0
func.func @identities(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %one = nn.fill {value = 1.0} : () -> tensor<f32>
  %0 = nn.reshape %x : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %1 = nn.transpose %0 {permutation = array<i64: 1, 0>} : (tensor<2x3xf32>) -> tensor<3x2xf32>
  %2 = nn.transpose %1 {permutation = array<i64: 1, 0>} : (tensor<3x2xf32>) -> tensor<2x3xf32>
  %3 = nn.mul %one, %2 : (tensor<f32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  %4 = nn.div %3, %one : (tensor<2x3xf32>, tensor<f32>) -> tensor<2x3xf32>
  %5 = nn.neg %4 : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %6 = nn.neg %5 : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %7 = nn.cast %6 : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %8 = nn.broadcast %7 : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %9 = nn.slice %8 {offsets = array<i64: 0, 0>, sizes = array<i64: 2, 3>} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %10 = nn.pad %9 {low = array<i64: 0, 0>, high = array<i64: 0, 0>} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %11 = nn.concat %10 {dim = 0} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  return %11 : tensor<2x3xf32>
}

// CHECK-LABEL: @merged
func.func @merged(%x: tensor<2x3x4xf32>) -> (tensor<4x2x3xf32>, tensor<24xf32>) {
  %0 = nn.transpose %x {permutation = array<i64: 1, 0, 2>} : (tensor<2x3x4xf32>) -> tensor<3x2x4xf32>
  // CHECK-DAG: nn.transpose %arg0 {permutation = array<i64: 2, 0, 1>} : (2x3x4xf32) -> 4x2x3xf32
  %1 = nn.transpose %0 {permutation = array<i64: 2, 1, 0>} : (tensor<3x2x4xf32>) -> tensor<4x2x3xf32>
  %2 = nn.reshape %x : (tensor<2x3x4xf32>) -> tensor<6x4xf32>
  // CHECK-DAG: nn.reshape %arg0 : (2x3x4xf32) -> 24xf32
  %3 = nn.reshape %2 : (tensor<6x4xf32>) -> tensor<24xf32>
  return %1, %3 : tensor<4x2x3xf32>, tensor<24xf32>
}

// Equal operators are one, unused ones are gone; dropouts with different keys stay apart.
// CHECK-LABEL: @equal
func.func @equal(%x: tensor<4xf32>, %step: tensor<i32>) -> tensor<4xf32> {
  // CHECK-COUNT-1: nn.exp
  // CHECK-NOT: nn.exp
  // CHECK-NOT: nn.log
  %0 = nn.exp %x : (tensor<4xf32>) -> tensor<4xf32>
  %1 = nn.exp %x : (tensor<4xf32>) -> tensor<4xf32>
  %2 = nn.log %x : (tensor<4xf32>) -> tensor<4xf32>
  // CHECK: nn.dropout {{.*}}key = 1
  %3 = nn.dropout %0, %step {rate = 0.5, seed = 0, key = 1} : (tensor<4xf32>, tensor<i32>) -> tensor<4xf32>
  // CHECK: nn.dropout {{.*}}key = 2
  %4 = nn.dropout %1, %step {rate = 0.5, seed = 0, key = 2} : (tensor<4xf32>, tensor<i32>) -> tensor<4xf32>
  %5 = nn.add %3, %4 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %5 : tensor<4xf32>
}

// What changes bits stays: -0.0 + 0.0 is 0.0. So does what the user gave a strategy, and a multiplication that widens.
// CHECK-LABEL: @kept
func.func @kept(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<2x4xf32>) {
  %zero = nn.fill {value = 0.0} : () -> tensor<f32>
  %one = nn.fill {value = 1.0} : () -> tensor<2x1xf32>
  // CHECK-DAG: nn.add
  %0 = nn.add %x, %zero : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  // CHECK-DAG: nn.reshape {{.*}}nn.strategy
  %1 = nn.reshape %x {nn.strategy = {in = [[2]]}} : (tensor<4xf32>) -> tensor<4xf32>
  // CHECK-DAG: nn.mul
  %2 = nn.mul %x, %one : (tensor<4xf32>, tensor<2x1xf32>) -> tensor<2x4xf32>
  return %0, %1, %2 : tensor<4xf32>, tensor<4xf32>, tensor<2x4xf32>
}
