// Every value gets its layout, every operator its place, and beside it the layouts in which it reads its operands: a
// sum over the split factor k is partial, the relu reads it reduced, and addition of two such sums passes them on.
// Values that lie otherwise than they are read stay so. A module without a record is refused.
// RUN: weft-opt %s --weft-simplify --weft-build-gradients --weft-build-update --weft-decide --weft-assign-layouts -split-input-file | FileCheck %s
// RUN: not weft-opt %s --weft-assign-layouts -split-input-file 2>&1 | FileCheck %s --check-prefix=REFUSED

// REFUSED: error: has no decisions to realize (dist.decisions); run --weft-decide before
// CHECK-LABEL: func.func @step
// CHECK-SAME: tensor<8x4xf32, #dist.layout<"[{},{dp}]">> {nn.kind = "input"
// CHECK: nn.matmul %arg0, %arg1 {dist.function = "forward", dist.reads = [#dist.layout<"[{micro},{dp}]">, #dist.layout<"[{dp},{}]">], dist.stage = 0
// CHECK-SAME: -> 8x2xf32 "[{micro},{}] partial{dp:sum}"
// CHECK: nn.relu {{.*}}dist.reads = [#dist.layout<"[{micro},{}]">]
// CHECK-SAME: -> 8x2xf32 "[{micro},{}]"
// CHECK: nn.contract {{.*}}dist.function = "backward"
// CHECK-SAME: -> 4x2xf32 "[{dp},{}] partial{micro:sum}"
// CHECK-NOT: dist.reshard
// CHECK-LABEL: func.func @init
// CHECK: nn.fill {{.*}}dist.function = "init"{{.*}}nn.name = "init.w"{{.*}} : 4x2xf32 "[{dp},{}]"
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
// CHECK: %[[A:.*]] = nn.matmul {{.*}} -> 8x2xf32 "[{},{}] partial{dp:sum}"
// CHECK: %[[B:.*]] = nn.matmul {{.*}} -> 8x2xf32 "[{},{}] partial{dp:sum}"
// CHECK: nn.add %[[A]], %[[B]] {{.*}}dist.reads = [#dist.layout<"[{},{}] partial{dp:sum}">, #dist.layout<"[{},{}] partial{dp:sum}">]
// CHECK-SAME: : 8x2xf32 "[{},{}] partial{dp:sum}"
module attributes {dist.mesh = #dist.mesh<"dp=2">, nn.optimizer = {kind = "none"}} {
  func.func @step(%x: tensor<8x4xf32> {nn.kind = "input", nn.name = "x"},
                  %w: tensor<4x2xf32> {nn.kind = "parameter", nn.name = "w", nn.init = {distribution = "zeros"}},
                  %v: tensor<4x2xf32> {nn.kind = "parameter", nn.name = "v", nn.init = {distribution = "zeros"}})
      -> (tensor<f32> {nn.kind = "loss", nn.name = "loss"}) {
    %a = nn.matmul %x, %w {nn.strategy = {in = [[1, 2], [2, 1]]}}
        : (tensor<8x4xf32>, tensor<4x2xf32>) -> tensor<8x2xf32>
    %b = nn.matmul %x, %v {nn.strategy = {in = [[1, 2], [2, 1]]}}
        : (tensor<8x4xf32>, tensor<4x2xf32>) -> tensor<8x2xf32>
    %s = nn.add %a, %b {nn.strategy = {in = [[1, 1], [1, 1]]}}
        : (tensor<8x2xf32>, tensor<8x2xf32>) -> tensor<8x2xf32>
    %loss = nn.sum %s {dims = array<i64: 0, 1>, keep_dims = false} : (tensor<8x2xf32>) -> tensor<f32>
    return %loss : tensor<f32>
  }
}
