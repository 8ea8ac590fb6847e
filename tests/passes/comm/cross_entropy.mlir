// A loss whose classes are split: the largest logit is reduced, then the sum of exponentials and the label's logit
// together, as nothing reads either before both exist.
// RUN: weft-opt %s --weft-compile | FileCheck %s

// CHECK: func.func @forward
// CHECK: dist.all_reduce {{.*}}reduce = "max"
// CHECK: dist.all_reduce %{{.*}}, %{{.*}}dist.members = ["sum", "pick"]{{.*}}reduce = "sum"
// CHECK-NOT: dist.all_reduce
// CHECK: func.func @backward
module attributes {dist.mesh = #dist.mesh<"tp=2">, nn.optimizer = {kind = "sgd"}} {
  func.func @step(%x: tensor<16x8xf32> {nn.kind = "input", nn.name = "x"},
                  %y: tensor<16xi32> {nn.kind = "input", nn.name = "y"},
                  %w: tensor<8x64xf32> {nn.kind = "parameter", nn.name = "w", nn.init = {distribution = "normal", b = 1.0}, nn.layout = "[{},{tp}]"})
      -> (tensor<f32> {nn.kind = "loss", nn.name = "loss"}) {
    %0 = nn.matmul %x, %w : (tensor<16x8xf32>, tensor<8x64xf32>) -> tensor<16x64xf32>
    %1, %2 = nn.softmax_cross_entropy %0, %y {ignore_index = -100 : i64, rows = 64 : i64} : (tensor<16x64xf32>, tensor<16xi32>) -> (tensor<16xf32>, tensor<16xf32>)
    %3 = nn.mean %1 {dims = array<i64: 0>, count = 16 : i64} : (tensor<16xf32>) -> tensor<f32>
    return %3 : tensor<f32>
  }
}
