// RUN: weft-opt %s --weft-build-gradients --weft-expand-batch-norm -split-input-file -verify-diagnostics | FileCheck %s
// RUN: weft-opt %s --weft-build-gradients --weft-expand-batch-norm --weft-build-update --weft-decide --weft-assign-layouts --weft-insert-transfers --weft-insert-reshards --weft-send-updates --weft-mask-pads --weft-mark-recompute --weft-verify-annotated -split-input-file -verify-diagnostics | FileCheck %s --check-prefix=LAID

// Statistics have a row for each of 4 micro-batches; each micro-batch has 3 x 2 rows and 5 places of a channel: 1/30 of a sum. Running
// ones are moved once per step: 0.9^4 = 0.6561 of the old, and 0.1 * 0.9^(3 - p) of micro-batch p.
module attributes {dist.mesh = #dist.mesh<"dp=2,micro=4">} {
  // CHECK-LABEL: func.func @step
  // LAID-LABEL: func.func @step
  func.func @step(%x: tensor<24x3x5xf32> {nn.kind = "input", nn.name = "x"},
                  %g: tensor<3xf32> {nn.kind = "parameter", nn.name = "g"},
                  %b: tensor<3xf32> {nn.kind = "parameter", nn.name = "b"},
                  %m: tensor<3xf32> {nn.kind = "state", nn.name = "m"},
                  %v: tensor<3xf32> {nn.kind = "state", nn.name = "v"})
      -> (tensor<f32> {nn.kind = "loss", nn.name = "loss"}, tensor<3xf32> {nn.arg = 3 : i64, nn.kind = "updated", nn.name = "m"},
          tensor<3xf32> {nn.arg = 4 : i64, nn.kind = "updated", nn.name = "v"}) {
    // CHECK-NOT: nn.batch_norm
    // CHECK: nn.fill {{.*}}value = 0.033333
    // CHECK: %[[SUM:.*]] = nn.channel_sum %arg0 {{.*}}-> tensor<4x3xf32>
    // CHECK: %[[MEAN:.*]] = nn.mul %[[SUM]]
    // CHECK: %[[SQUARES:.*]] = nn.channel_dot %arg0, %arg0, %[[MEAN]]
    // CHECK: nn.channel_affine %arg0
    // CHECK: nn.constant {{.*}}dense<{{\[\[}}7.290000e-02], [8.100000e-02], [9.000000e-02], [1.000000e-01]]> : tensor<4x1xf32>
    // CHECK: nn.mul %arg3{{.*}}nn.phase = "update"
    // CHECK: nn.channel_sum {{.*}}nn.phase = "backward"
    // CHECK: nn.channel_dot {{.*}}nn.phase = "backward"
    // CHECK-NOT: nn.channel_sum
    // CHECK: nn.channel_affine {{.*}}nn.phase = "backward"
    // LAID: nn.channel_sum {{.*}}{dist.function = "forward"{{.*}}-> tensor<4x3xf32, #dist.layout<"[{micro},{}] partial{dp:sum}">>
    // LAID: nn.channel_affine {{.*}}-> tensor<24x3x5xf32, #dist.layout<"[{dp,micro},{},{}]">>
    %y:5 = nn.batch_norm %x, %g, %b, %m, %v : (tensor<24x3x5xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>) -> (tensor<24x3x5xf32>, tensor<1x3xf32>, tensor<1x3xf32>, tensor<3xf32>, tensor<3xf32>)
    %l = nn.sum_squares %y#0 : (tensor<24x3x5xf32>) -> tensor<f32>
    return %l, %y#3, %y#4 : tensor<f32>, tensor<3xf32>, tensor<3xf32>
  }
}

// -----

// A batch that may be padded is counted.
module attributes {dist.mesh = #dist.mesh<"dp=2,micro=3">} {
  // CHECK-LABEL: func.func @step
  func.func @step(%x: tensor<7x3xf32> {nn.kind = "input", nn.name = "x"},
                  %g: tensor<3xf32> {nn.kind = "parameter", nn.name = "g"})
      -> (tensor<f32> {nn.kind = "loss", nn.name = "loss"}) {
    // CHECK: nn.compare %arg0, %arg0
    // CHECK: nn.channel_sum
    // CHECK: nn.maximum
    %y:3 = nn.batch_norm %x, %g, %g : (tensor<7x3xf32>, tensor<3xf32>, tensor<3xf32>) -> (tensor<7x3xf32>, tensor<1x3xf32>, tensor<1x3xf32>)
    %l = nn.sum_squares %y#0 : (tensor<7x3xf32>) -> tensor<f32>
    return %l : tensor<f32>
  }
}
