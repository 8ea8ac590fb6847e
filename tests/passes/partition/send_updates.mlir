// The new value of a parameter that both meshes hold is sent to the other one, as one more result of @step; what one
// mesh alone holds is left alone. A module without a step is refused.
// RUN: weft-opt %s --weft-simplify --weft-build-gradients --weft-build-update --weft-decide --weft-assign-layouts --weft-insert-transfers --weft-insert-reshards --weft-send-updates -split-input-file | FileCheck %s
// RUN: echo "module {}" | not weft-opt --weft-send-updates 2>&1 | FileCheck %s --check-prefix=REFUSED

// REFUSED: error: has no function @step; it is there from the logical to the annotated state

// CHECK-LABEL: func.func @step
// CHECK-SAME: dist.stage = 1 : i64, nn.arg = 1 : i64, nn.kind = "updated", nn.name = "w"
// CHECK: %[[NEW:.*]], %{{.*}} = nn.sgd %arg1
// CHECK: %[[SENT:.*]] = dist.transfer %[[NEW]] {dist.function = "update", dist.stage = 1 : i64, reason = "the new value of w"}
// CHECK-NOT: the new value of lr
// CHECK: return {{.*}}%[[SENT]] :
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
