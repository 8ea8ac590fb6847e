// The expansions of batch norm and its gradient: numbers of micro-batches come from the request, none stands in the
// logical program.
// RUN: weft-opt %s --weft-build-gradients --weft-build-update -split-input-file | FileCheck %s --check-prefix=LOGICAL
// RUN: weft-opt %s --weft-build-gradients --weft-build-update --weft-decide -split-input-file -verify-diagnostics | FileCheck %s
// RUN: weft-opt %s --weft-build-gradients --weft-build-update --weft-decide --weft-assign-layouts --weft-insert-transfers --weft-insert-reshards --weft-send-updates --weft-mask-pads --weft-mark-recompute --weft-verify-annotated -split-input-file -verify-diagnostics | FileCheck %s --check-prefix=LAID

// Statistics have a row for each of 4 micro-batches; each micro-batch has 3 x 2 rows and 5 places of a channel: 1/30 of a sum. Running
// ones are moved once per step: 0.9^4 = 0.6561 of the old, and 0.1 * 0.9^(3 - p) of micro-batch p.
module attributes {dist.mesh = #dist.mesh<"dp=2,micro=4">, nn.optimizer = {kind = "sgd"}} {
  // LOGICAL-LABEL: func.func @step
  // LOGICAL: nn.batch_norm {{.*}}-> (24x3x5xf32, 1x3xf32, 1x3xf32, 1x3xf32, 3xf32, 3xf32)
  // LOGICAL: nn.batch_norm_grad
  // CHECK-LABEL: func.func @step
  // LAID-LABEL: func.func @step
  func.func @step(%x: tensor<24x3x5xf32> {nn.kind = "input", nn.name = "x"},
                  %g: tensor<3xf32> {nn.kind = "parameter", nn.name = "g"},
                  %b: tensor<3xf32> {nn.kind = "parameter", nn.name = "b"},
                  %m: tensor<3xf32> {nn.kind = "state", nn.name = "m"},
                  %v: tensor<3xf32> {nn.kind = "state", nn.name = "v"},
                  %w: tensor<5xf32> {nn.kind = "parameter", nn.name = "w"})
      -> (tensor<f32> {nn.kind = "loss", nn.name = "loss"}, tensor<3xf32> {nn.arg = 3 : i64, nn.kind = "updated", nn.name = "m"},
          tensor<3xf32> {nn.arg = 4 : i64, nn.kind = "updated", nn.name = "v"}) {
    // CHECK-NOT: nn.batch_norm
    // CHECK: %[[X:.*]] = nn.mul %arg0, %arg5
    // CHECK: nn.fill {{.*}}value = 0.033333
    // CHECK: %[[SUM:.*]] = nn.channel_sum %[[X]] {{.*}}4x3xf32
    // CHECK: %[[MEAN:.*]] = nn.mul %[[SUM]]
    // CHECK: %[[SQUARES:.*]] = nn.channel_dot %[[X]], %[[X]], %[[MEAN]]
    // CHECK: nn.channel_affine %[[X]]{{.*}}nn.id = [[Y:[0-9]+]]
    // CHECK: nn.constant {{.*}}dense<{{\[\[}}7.290000e-02], [8.100000e-02], [9.000000e-02], [1.000000e-01]]>
    // CHECK: nn.mul %arg3{{.*}}nn.phase = "update"
    // CHECK: nn.channel_sum {{.*}}nn.fwd = [[Y]] {{.*}}nn.phase = "backward"
    // CHECK: nn.channel_dot {{.*}}nn.phase = "backward"
    // CHECK-NOT: nn.channel_sum
    // CHECK: nn.channel_affine {{.*}}nn.phase = "backward"
    // LAID: nn.channel_sum {{.*}}{dist.function = "forward"{{.*}}-> 4x3xf32 "[{micro},{}] partial{dp:sum}"
    // LAID: nn.channel_affine {{.*}}-> 24x3x5xf32 "[{dp,micro},{},{}]"
    %h = nn.mul %x, %w : (tensor<24x3x5xf32>, tensor<5xf32>) -> tensor<24x3x5xf32>
    %y:6 = nn.batch_norm %h, %g, %b, %m, %v : (tensor<24x3x5xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>) -> (tensor<24x3x5xf32>, tensor<1x3xf32>, tensor<1x3xf32>, tensor<1x3xf32>, tensor<3xf32>, tensor<3xf32>)
    %l = nn.sum_squares %y#0 : (tensor<24x3x5xf32>) -> tensor<f32>
    return %l, %y#4, %y#5 : tensor<f32>, tensor<3xf32>, tensor<3xf32>
  }
}

// -----

// A batch that may be padded is counted.
module attributes {dist.mesh = #dist.mesh<"dp=2,micro=3">, nn.optimizer = {kind = "sgd"}} {
  // CHECK-LABEL: func.func @step
  func.func @step(%x: tensor<7x3xf32> {nn.kind = "input", nn.name = "x"},
                  %g: tensor<3xf32> {nn.kind = "parameter", nn.name = "g"},
                  %w: tensor<3xf32> {nn.kind = "parameter", nn.name = "w"})
      -> (tensor<f32> {nn.kind = "loss", nn.name = "loss"}) {
    // CHECK: nn.compare %[[X:.*]], %[[X]] {
    // CHECK: nn.channel_sum {{.*}}3x3xf32
    // CHECK: nn.maximum
    // CHECK: %[[SHARE:.*]] = nn.div
    // CHECK: nn.mul %{{.*}}, %[[SHARE]] {{.*}}nn.phase = "backward"
    // CHECK-NOT: nn.compare
    %h = nn.mul %x, %w : (tensor<7x3xf32>, tensor<3xf32>) -> tensor<7x3xf32>
    %y:4 = nn.batch_norm %h, %g, %g : (tensor<7x3xf32>, tensor<3xf32>, tensor<3xf32>) -> (tensor<7x3xf32>, tensor<1x3xf32>, tensor<1x3xf32>, tensor<1x3xf32>)
    %l = nn.sum_squares %y#0 : (tensor<7x3xf32>) -> tensor<f32>
    return %l : tensor<f32>
  }
}

// -----

// A micro-batch without rows has no statistics.
module attributes {dist.mesh = #dist.mesh<"micro=4">} {
  func.func @step(%x: tensor<5x3xf32> {nn.kind = "input", nn.name = "x"},
                  %g: tensor<3xf32> {nn.kind = "parameter", nn.name = "g"})
      -> (tensor<f32> {nn.kind = "loss", nn.name = "loss"}) {
    // expected-error @below {{normalizes 5 rows in 4 micro-batches, which leaves a micro-batch without rows; use a batch of at least 4 rows}}
    %y:4 = nn.batch_norm %x, %g, %g : (tensor<5x3xf32>, tensor<3xf32>, tensor<3xf32>) -> (tensor<5x3xf32>, tensor<1x3xf32>, tensor<1x3xf32>, tensor<1x3xf32>)
    %l = nn.sum_squares %y#0 : (tensor<5x3xf32>) -> tensor<f32>
    return %l : tensor<f32>
  }
}

// -----

// The size of a statistic is not that of the logical program.
module attributes {dist.mesh = #dist.mesh<"micro=2">} {
  func.func @step(%x: tensor<4x3xf32> {nn.kind = "input", nn.name = "x"},
                  %g: tensor<3xf32> {nn.kind = "parameter", nn.name = "g"})
      -> (tensor<f32> {nn.kind = "loss", nn.name = "loss"}, tensor<1x3xf32> {nn.kind = "output", nn.name = "mean"}) {
    %y:4 = nn.batch_norm %x, %g, %g : (tensor<4x3xf32>, tensor<3xf32>, tensor<3xf32>) -> (tensor<4x3xf32>, tensor<1x3xf32>, tensor<1x3xf32>, tensor<1x3xf32>)
    // expected-error @below {{exp reads result 1 of nn.batch_norm as 1x3xf32, expanded it is 2x3xf32; only what is expanded with it can read it}}
    %m = nn.exp %y#1 : (tensor<1x3xf32>) -> tensor<1x3xf32>
    %l = nn.sum_squares %y#0 : (tensor<4x3xf32>) -> tensor<f32>
    return %l, %m : tensor<f32>, tensor<1x3xf32>
  }
}

// -----

// What a gradient reads is what batch norm makes.
module attributes {dist.mesh = #dist.mesh<"micro=2">} {
  func.func @step(%x: tensor<4x3xf32> {nn.kind = "input", nn.name = "x"},
                  %s: tensor<1x3xf32> {nn.kind = "state", nn.name = "s"},
                  %g: tensor<3xf32> {nn.kind = "parameter", nn.name = "g", nn.frozen})
      -> (tensor<f32> {nn.kind = "loss", nn.name = "loss"}) {
    // expected-error @below {{batch_norm_grad reads a statistic of 1 micro-batches in a step of 2; it should be that of an nn.batch_norm, expanded before}}
    %dx, %dg, %db = nn.batch_norm_grad %x, %g, %s, %s, %s, %x : (tensor<4x3xf32>, tensor<3xf32>, tensor<1x3xf32>, tensor<1x3xf32>, tensor<1x3xf32>, tensor<4x3xf32>) -> (tensor<4x3xf32>, tensor<3xf32>, tensor<3xf32>)
    %l = nn.sum_squares %dx : (tensor<4x3xf32>) -> tensor<f32>
    return %l : tensor<f32>
  }
}
