// The record: layouts of arguments, axes of factors, where operators run. A strategy that does not fit is refused at
// its operator.
// RUN: weft-opt %s --weft-simplify --weft-build-gradients --weft-build-update --weft-decide -split-input-file -verify-diagnostics | FileCheck %s

// CHECK: dist.decisions =
// CHECK-SAME: \22name\22: \22x\22
// CHECK-SAME: \22layout\22: \22[{},{dp}]\22
// CHECK-SAME: \22name\22: \22w\22
// CHECK-SAME: \22layout\22: \22[{dp},{}]\22
// CHECK-SAME: \22label\22: \22matmul\22
// CHECK-SAME: \22runs_in\22: \22forward\22
// CHECK-SAME: \22per_micro_batch\22: true
// CHECK-SAME: \22k\22: \22[{dp}]\22
// CHECK-SAME: \22origin\22: \22user\22
// CHECK: nn.matmul %{{.*}} : (8x4xf32, 4x2xf32) -> 8x2xf32
module attributes {dist.mesh = #dist.mesh<"dp=2,micro=2">, nn.optimizer = {kind = "sgd", lr = 0.1 : f64}} {
  func.func @step(%x: tensor<8x4xf32> {nn.kind = "input", nn.name = "x"},
                  %w: tensor<4x2xf32> {nn.kind = "parameter", nn.name = "w", nn.init = {distribution = "zeros"}})
      -> (tensor<f32> {nn.kind = "loss", nn.name = "loss"}) {
    %y = nn.matmul %x, %w {nn.strategy = {in = [[1, 2], [2, 1]]}}
        : (tensor<8x4xf32>, tensor<4x2xf32>) -> tensor<8x2xf32>
    %z = nn.relu %y : (tensor<8x2xf32>) -> tensor<8x2xf32>
    %loss = nn.sum %z {dims = array<i64: 0, 1>, keep_dims = false} : (tensor<8x2xf32>) -> tensor<f32>
    return %loss : tensor<f32>
  }
}

// -----

module attributes {dist.mesh = #dist.mesh<"2">, nn.optimizer = {kind = "none"}} {
  func.func @step(%x: tensor<8x4xf32> {nn.kind = "input", nn.name = "x"},
                  %w: tensor<4x2xf32> {nn.kind = "parameter", nn.name = "w", nn.init = {distribution = "zeros"}})
      -> (tensor<f32> {nn.kind = "loss", nn.name = "loss"}) {
    // expected-error@below {{matmul: operand 0 dimension 0 of size 8 does not divide into 3 parts; nearest legal splits: 2 and 4}}
    %y = nn.matmul %x, %w {nn.strategy = {in = [[3, 1], [1, 1]]}}
        : (tensor<8x4xf32>, tensor<4x2xf32>) -> tensor<8x2xf32>
    %loss = nn.sum %y {dims = array<i64: 0, 1>, keep_dims = false} : (tensor<8x2xf32>) -> tensor<f32>
    return %loss : tensor<f32>
  }
}
