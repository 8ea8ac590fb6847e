// tanh and exp stand in one scope: exp, which is read outside of it, is kept, tanh is recomputed before its reader.
// RUN: weft-opt %s --weft-simplify --weft-build-gradients --weft-build-update --weft-decide --weft-assign-layouts --weft-insert-transfers --weft-insert-reshards --weft-send-updates --weft-mask-pads --weft-mark-recompute --weft-recompute | FileCheck %s

// RUN: echo "module attributes {dist.mesh = #dist.mesh<\"1\">} {}" | not weft-opt --weft-recompute 2>&1 | FileCheck %s --check-prefix=REFUSED

// REFUSED: error: has no function @step; it is there from the logical to the annotated state
// CHECK: %[[X:.*]] = nn.matmul
// CHECK: %[[T:.*]] = nn.tanh %[[X]] {{.*}}dist.function = "forward"{{.*}}dist.recompute
// CHECK: %[[E:.*]] = nn.exp %[[T]] {{.*}}dist.function = "forward"
// CHECK-NOT: dist.recompute
// CHECK: nn.mul {{.*}}%[[E]]{{.*}}dist.function = "backward"
// CHECK: %[[AGAIN:.*]] = nn.tanh %[[X]] {{.*}}dist.function = "backward"
// CHECK: %[[AGAIN]]
module attributes {dist.mesh = #dist.mesh<"1">,
                   nn.options = {zero = 0 : i64, default = "data_parallel", seed = 1 : i64},
                   nn.optimizer = {kind = "sgd", lr = 0.1 : f64, momentum = 0.0 : f64, weight_decay = 0.0 : f64}} {
  func.func @step(%x: tensor<4x3xf32> {nn.kind = "input", nn.name = "x"},
                  %w: tensor<3x2xf32> {nn.kind = "parameter", nn.name = "w",
                                       nn.init = {distribution = "normal", a = 0.0 : f64, b = 1.0 : f64}})
      -> (tensor<f32> {nn.kind = "loss", nn.name = "loss"}) {
    %y = nn.matmul %x, %w : (tensor<4x3xf32>, tensor<3x2xf32>) -> tensor<4x2xf32>
    %t = nn.tanh %y {nn.recompute = 0 : i64} : (tensor<4x2xf32>) -> tensor<4x2xf32>
    %e = nn.exp %t {nn.recompute = 0 : i64} : (tensor<4x2xf32>) -> tensor<4x2xf32>
    %loss = nn.sum %e {dims = array<i64: 0, 1>, keep_dims = false} : (tensor<4x2xf32>) -> tensor<f32>
    return %loss : tensor<f32>
  }
}
