// Of the user's recompute scope tanh is marked; exp, which is read outside of it, and matmul are left alone. The module
// is in the annotated state.
// RUN: weft-opt %s --weft-simplify --weft-build-gradients --weft-build-update --weft-decide --weft-assign-layouts --weft-insert-reshards --weft-mark-recompute | FileCheck %s
// RUN: not weft-opt %s --weft-mark-recompute 2>&1 | FileCheck %s --check-prefix=REFUSED

// REFUSED: error: has no decisions to realize (dist.decisions); run --weft-decide before
// CHECK: module attributes {{.*}}dist.state = "annotated"
// CHECK: nn.matmul
// CHECK-NOT: dist.recompute
// CHECK: nn.tanh {{.*}}dist.recompute
// CHECK-NEXT: nn.exp
// CHECK-NOT: dist.recompute
module attributes {dist.mesh = #dist.mesh<"1">, nn.optimizer = {kind = "none"}} {
  func.func @step(%x: tensor<4x3xf32> {nn.kind = "input", nn.name = "x"},
                  %w: tensor<3x2xf32> {nn.kind = "parameter", nn.name = "w", nn.init = {distribution = "zeros"}})
      -> (tensor<f32> {nn.kind = "loss", nn.name = "loss"}) {
    %y = nn.matmul %x, %w : (tensor<4x3xf32>, tensor<3x2xf32>) -> tensor<4x2xf32>
    %t = nn.tanh %y {nn.recompute = 0 : i64} : (tensor<4x2xf32>) -> tensor<4x2xf32>
    %e = nn.exp %t {nn.recompute = 0 : i64} : (tensor<4x2xf32>) -> tensor<4x2xf32>
    %loss = nn.sum %e {dims = array<i64: 0, 1>, keep_dims = false} : (tensor<4x2xf32>) -> tensor<f32>
    return %loss : tensor<f32>
  }
}
