// Values have layouts and operators functions; reshards may be missing. The record must be there and fit.
// RUN: weft-opt %s --weft-simplify --weft-build-gradients --weft-build-update --weft-decide --weft-assign-layouts --weft-verify-laid-out | FileCheck %s
// RUN: weft-opt %s --weft-simplify --weft-build-gradients --weft-build-update --weft-decide --weft-assign-layouts --weft-insert-reshards --weft-verify-laid-out | FileCheck %s
// RUN: not weft-opt %s --weft-simplify --weft-build-gradients --weft-build-update --weft-decide --weft-verify-laid-out 2>&1 | FileCheck %s --check-prefix=LAYOUT
// RUN: weft-opt %s --weft-simplify --weft-build-gradients --weft-build-update --weft-decide --weft-assign-layouts | sed 's/dist.function = "forward", //' | not weft-opt --weft-verify-laid-out 2>&1 | FileCheck %s --check-prefix=PLACE
// RUN: weft-opt %s --weft-simplify --weft-build-gradients --weft-build-update --weft-decide --weft-assign-layouts | sed 's/nn.name = "w"/nn.name = "v"/' | not weft-opt --weft-verify-laid-out 2>&1 | FileCheck %s --check-prefix=RECORD

// CHECK: nn.matmul
// LAYOUT: error: every value of the annotated state has a layout, this one is 'tensor<8x4xf32>'
// PLACE: error: nn.matmul has dist.function ''; it should be init, prologue, forward, backward or update
// RECORD: error: {{.*}}'w'
module attributes {dist.mesh = #dist.mesh<"dp=2,micro=2">, nn.optimizer = {kind = "none"}} {
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
