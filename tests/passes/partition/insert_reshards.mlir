// A reshard stands where a value lies otherwise than it is read; readers of one layout share it, forward and backward;
// what is read as it lies is left alone. A sum over the micro-batches is accumulated where it is made, an output that
// carries the batch collected there. Values without layouts are refused, and a state that the batch would replace.
// RUN: weft-opt %s --weft-simplify --weft-build-gradients --weft-build-update --weft-decide --weft-assign-layouts --weft-insert-reshards -split-input-file -verify-diagnostics | FileCheck %s
// RUN: not weft-opt %s --weft-simplify --weft-build-gradients --weft-build-update --weft-decide --weft-insert-reshards -split-input-file 2>&1 | FileCheck %s --check-prefix=REFUSED

// REFUSED: error: value has no layout; run --weft-assign-layouts first

// CHECK-LABEL: func.func @step
// CHECK: %[[X:.*]] = dist.reshard %arg0 {dist.function = "forward", {{.*}}reason = "matmul reads operand 0"}
// CHECK-SAME: -> 8x4xf32 "[{micro},{dp}]"
// CHECK: %[[Y:.*]] = nn.matmul %[[X]], %arg1 {dist.function = "forward", dist.stage
// CHECK: %[[R:.*]] = dist.reshard %[[Y]] {{.*}}reason = "relu reads operand 0"
// CHECK: nn.relu %[[R]]
// CHECK: %[[G:.*]] = nn.contract %[[X]],
// CHECK: dist.reshard %[[G]] {dist.function = "backward", {{.*}}reason = "grad.w reads operand 0"
// CHECK-SAME: (4x2xf32 "[{dp},{}] partial{micro:sum}") -> 4x2xf32 "[{dp},{}]"
// CHECK: nn.sgd %arg1
// CHECK: %[[L:.*]] = dist.reshard {{.*}}reason = "result 0"
// CHECK: return %[[L]]
// CHECK-NOT: dist.reads
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

// CHECK-LABEL: func.func @step
// CHECK: %[[Y:.*]] = nn.matmul
// CHECK: dist.reshard %[[Y]] {dist.function = "forward", {{.*}}reason = "result 1"
// CHECK-SAME: (8x2xf32 "[{dp,micro},{}]") -> 8x2xf32 "[{dp},{}]"
module attributes {dist.mesh = #dist.mesh<"dp=2,micro=2">, nn.optimizer = {kind = "none"}} {
  func.func @step(%x: tensor<8x4xf32> {nn.kind = "input", nn.name = "x"},
                  %w: tensor<4x2xf32> {nn.kind = "parameter", nn.name = "w", nn.init = {distribution = "zeros"}})
      -> (tensor<f32> {nn.kind = "loss", nn.name = "loss"}, tensor<8x2xf32> {nn.kind = "output", nn.name = "y"}) {
    %y = nn.matmul %x, %w : (tensor<8x4xf32>, tensor<4x2xf32>) -> tensor<8x2xf32>
    %loss = nn.sum %y {dims = array<i64: 0, 1>, keep_dims = false} : (tensor<8x2xf32>) -> tensor<f32>
    return %loss, %y : tensor<f32>, tensor<8x2xf32>
  }
}

// -----

module attributes {dist.mesh = #dist.mesh<"dp=2,micro=2">, nn.optimizer = {kind = "none"}} {
  func.func @step(%x: tensor<8x4xf32> {nn.kind = "input", nn.name = "x"},
                  %s: tensor<8x4xf32> {nn.kind = "state", nn.name = "s", nn.init = {distribution = "zeros"}})
      -> (tensor<f32> {nn.kind = "loss", nn.name = "loss"},
          tensor<8x4xf32> {nn.kind = "updated", nn.name = "s", nn.arg = 1 : i64}) {
    // expected-error@below {{'s' would be replaced by a value that carries the batch, but the step runs in 2 micro-batches; reduce it over the batch, or use micro = 1}}
    %y = nn.tanh %x : (tensor<8x4xf32>) -> tensor<8x4xf32>
    %loss = nn.sum %y {dims = array<i64: 0, 1>, keep_dims = false} : (tensor<8x4xf32>) -> tensor<f32>
    return %loss, %y : tensor<f32>, tensor<8x4xf32>
  }
}

// -----

// ZeRO-2: a large gradient is scattered behind what makes it, a small one before its reader, behind all of them.
// CHECK-LABEL: func.func @step
// CHECK: %[[GV:.*]] = nn.contract {{.*}} -> 4096x4096xf32 "[{},{}] partial{dp:sum}"
// CHECK-NEXT: dist.reshard %[[GV]] {dist.function = "backward", {{.*}}reason = "grad.v reads operand 0"
// CHECK: %[[GW:.*]] = nn.contract {{.*}} -> 8x4096xf32 "[{},{}] partial{dp:sum}"
// CHECK: dist.reshard %[[GW]] {dist.function = "backward", {{.*}}reason = "grad.w reads operand 0"
module attributes {dist.mesh = #dist.mesh<"dp=2">, nn.options = {zero = 2 : i64, default = "data_parallel", seed = 1 : i64},
                   nn.optimizer = {kind = "sgd", lr = 0.1 : f64}} {
  func.func @step(%x: tensor<8x8xf32> {nn.kind = "input", nn.name = "x"},
                  %w: tensor<8x4096xf32> {nn.kind = "parameter", nn.name = "w", nn.init = {distribution = "zeros"}},
                  %v: tensor<4096x4096xf32> {nn.kind = "parameter", nn.name = "v", nn.init = {distribution = "zeros"}})
      -> (tensor<f32> {nn.kind = "loss", nn.name = "loss"}) {
    %y = nn.matmul %x, %w : (tensor<8x8xf32>, tensor<8x4096xf32>) -> tensor<8x4096xf32>
    %z = nn.matmul %y, %v : (tensor<8x4096xf32>, tensor<4096x4096xf32>) -> tensor<8x4096xf32>
    %loss = nn.sum %z {dims = array<i64: 0, 1>, keep_dims = false} : (tensor<8x4096xf32>) -> tensor<f32>
    return %loss : tensor<f32>
  }
}
