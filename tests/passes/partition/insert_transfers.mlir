// A value of the first stage is read on the mesh of the second through a transfer; a parameter that both read is held on
// both; a generator is cloned. On one mesh nothing changes. Operators that do not say how they read their
// operands are refused.
// RUN: weft-opt %s --weft-simplify --weft-build-gradients --weft-build-update --weft-decide --weft-assign-layouts --weft-insert-transfers -split-input-file | FileCheck %s
// RUN: weft-opt %s --weft-simplify --weft-build-gradients --weft-build-update --weft-decide --weft-assign-layouts --weft-insert-transfers --weft-insert-reshards -split-input-file | not weft-opt --weft-insert-transfers -split-input-file 2>&1 | FileCheck %s --check-prefix=REFUSED

// REFUSED: error: {{.*}} 0 layouts to read them in (dist.reads); run --weft-assign-layouts first

// CHECK-LABEL: func.func @step
// CHECK: %[[H:.*]] = nn.matmul %arg0, %arg1 {dist.function = "forward", {{.*}}dist.stage = 0
// CHECK: %[[T:.*]] = dist.transfer %[[H]] {dist.function = "forward", dist.stage = 1 : i64, reason = "matmul reads operand 0"}
// CHECK: %[[W:.*]] = dist.transfer %arg1 {dist.function = "forward", dist.stage = 1 : i64, reason = "matmul reads operand 1"}
// CHECK: nn.matmul %[[T]], %[[W]] {{.*}}dist.stage = 1
// CHECK-LABEL: func.func @init
// CHECK: dist.stage = 1 : i64{{.*}}nn.name = "init.w"
module attributes {dist.mesh = #dist.mesh<"micro=2">, dist.stage_meshes = "dp=1;dp=2",
                   nn.options = {schedule = "1f1b"}, nn.optimizer = {kind = "sgd", lr = 0.1 : f64}} {
  func.func @step(%x: tensor<8x3xf32> {nn.kind = "input", nn.name = "x"},
                  %w: tensor<3x3xf32> {nn.kind = "parameter", nn.name = "w", nn.init = {distribution = "zeros"}})
      -> (tensor<f32> {nn.kind = "loss", nn.name = "loss"}) {
    %h = nn.matmul %x, %w {nn.stage = 0 : i64} : (tensor<8x3xf32>, tensor<3x3xf32>) -> tensor<8x3xf32>
    %y = nn.matmul %h, %w {nn.stage = 1 : i64} : (tensor<8x3xf32>, tensor<3x3xf32>) -> tensor<8x3xf32>
    %loss = nn.sum %y {dims = array<i64: 0, 1>, keep_dims = false, nn.stage = 1 : i64} : (tensor<8x3xf32>) -> tensor<f32>
    return %loss : tensor<f32>
  }
}

// -----

// CHECK-LABEL: func.func @step
// CHECK-NOT: dist.transfer
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
