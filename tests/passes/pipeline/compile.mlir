// The whole compiler as one pass pipeline, and from a state or phase on.
// RUN: weft-opt %s --weft-compile | FileCheck %s --check-prefix=ALL
// RUN: weft-opt %s --weft-simplify --weft-build-gradients --weft-build-update | weft-opt --weft-compile=from=build-update | FileCheck %s --check-prefix=ALL
// RUN: not weft-opt %s --weft-compile=from=nowhere 2>&1 | FileCheck %s --check-prefix=UNKNOWN

// ALL: module attributes {{.*}}dist.phase = "plan-memory"
// ALL: func.func @forward
// ALL: func.func @backward
// ALL: func.func @update
// ALL: dist.all_reduce
// UNKNOWN: no state or phase 'nowhere' to start from
module attributes {dist.mesh = #dist.mesh<"dp=2">,
                   nn.options = {zero = 0 : i64, default = "data_parallel", seed = 1 : i64},
                   nn.optimizer = {kind = "sgd", lr = 0.1 : f64, momentum = 0.0 : f64, weight_decay = 0.0 : f64}} {
  func.func @step(%x: tensor<4x3xf32> {nn.kind = "input", nn.name = "x"},
                  %w: tensor<3x2xf32> {nn.kind = "parameter", nn.name = "w",
                                       nn.init = {distribution = "normal", a = 0.0 : f64, b = 1.0 : f64}})
      -> (tensor<f32> {nn.kind = "loss", nn.name = "loss"}) {
    %y = nn.matmul %x, %w : (tensor<4x3xf32>, tensor<3x2xf32>) -> tensor<4x2xf32>
    %loss = nn.sum %y {dims = array<i64: 0, 1>, keep_dims = false} : (tensor<4x2xf32>) -> tensor<f32>
    return %loss : tensor<f32>
  }
}
