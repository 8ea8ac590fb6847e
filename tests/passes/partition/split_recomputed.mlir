// What is recomputed and read in both halves of a cut backward pass is recomputed in both: between them nothing of it is
// kept, only the gradient that the first half received.
// RUN: weft-opt %s --weft-compile | FileCheck %s

// CHECK: module @submesh1
// CHECK: func.func @input_grad
// CHECK: nn.tanh {{.*}}dist.recomputed
// CHECK: dist.send {{.*}}submesh = 0
// CHECK: func.func @weight_grad
// CHECK: nn.tanh {{.*}}dist.recomputed
// CHECK: nn.contract {{.*}}m k, m n -> k n
module attributes {dist.mesh = #dist.mesh<"micro=2">,
                   nn.options = {schedule = "zb_h1"},
                   nn.optimizer = {kind = "sgd", lr = 0.1 : f64, momentum = 0.0 : f64, weight_decay = 0.0 : f64}} {
  func.func @step(%x: tensor<4x3xf32> {nn.kind = "input", nn.name = "x"},
                  %v: tensor<3x3xf32> {nn.kind = "parameter", nn.name = "v",
                                       nn.init = {distribution = "normal", a = 0.0 : f64, b = 1.0 : f64}},
                  %w: tensor<3x2xf32> {nn.kind = "parameter", nn.name = "w",
                                       nn.init = {distribution = "normal", a = 0.0 : f64, b = 1.0 : f64}})
      -> (tensor<f32> {nn.kind = "loss", nn.name = "loss"}) {
    %h = nn.matmul %x, %v {nn.stage = 0 : i64} : (tensor<4x3xf32>, tensor<3x3xf32>) -> tensor<4x3xf32>
    %t = nn.tanh %h {nn.stage = 1 : i64, nn.recompute = 0 : i64} : (tensor<4x3xf32>) -> tensor<4x3xf32>
    %y = nn.matmul %t, %w {nn.stage = 1 : i64, nn.recompute = 0 : i64} : (tensor<4x3xf32>, tensor<3x2xf32>) -> tensor<4x2xf32>
    %loss = nn.sum %y {dims = array<i64: 0, 1>, keep_dims = false, nn.stage = 1 : i64} : (tensor<4x2xf32>) -> tensor<f32>
    return %loss : tensor<f32>
  }
}
