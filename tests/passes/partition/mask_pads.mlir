// A padded dimension that a sum reduces over is filled with 0 first; an element-wise operator reads the pad as it is. An
// operator that no filling leaves right is refused.
// RUN: weft-opt %s --weft-simplify --weft-build-gradients --weft-build-update --weft-decide --weft-assign-layouts --weft-insert-reshards --weft-mask-pads -split-input-file -verify-diagnostics | FileCheck %s

// CHECK-LABEL: func.func @step
// CHECK: %[[T:.*]] = nn.tanh %arg0
// CHECK-SAME: pad{0:6}
// CHECK: %[[M:.*]] = dist.mask_pad %[[T]] {{.*}}dims = array<i64: 0>, {{.*}}fill = 0.000000e+00 : f64, {{.*}}valid = array<i64: 5>
// CHECK: nn.sum %[[M]]
module attributes {dist.mesh = #dist.mesh<"dp=2">, nn.optimizer = {kind = "none"}} {
  func.func @step(%w: tensor<5x3xf32> {nn.kind = "parameter", nn.name = "w", nn.layout = "[{dp},{}] pad{0:6}",
                                       nn.init = {distribution = "zeros"}})
      -> (tensor<f32> {nn.kind = "loss", nn.name = "loss"}) {
    %t = nn.tanh %w : (tensor<5x3xf32>) -> tensor<5x3xf32>
    %loss = nn.sum %t {dims = array<i64: 0, 1>, keep_dims = false} : (tensor<5x3xf32>) -> tensor<f32>
    return %loss : tensor<f32>
  }
}

// -----

module attributes {dist.mesh = #dist.mesh<"dp=2">, nn.optimizer = {kind = "none"}} {
  func.func @step(%w: tensor<3x5xf32> {nn.kind = "parameter", nn.name = "w", nn.layout = "[{},{dp}] pad{1:6}",
                                       nn.init = {distribution = "zeros"}},
                  %g: tensor<5xf32> {nn.kind = "parameter", nn.name = "g", nn.init = {distribution = "ones"}})
      -> (tensor<f32> {nn.kind = "loss", nn.name = "loss"}) {
    // expected-error@below {{norm cannot run on a padded dimension (5 stored as 6); split another dimension}}
    %y, %m, %r = nn.layer_norm %w, %g, %g {nn.name = "norm"}
        : (tensor<3x5xf32>, tensor<5xf32>, tensor<5xf32>) -> (tensor<3x5xf32>, tensor<3xf32>, tensor<3xf32>)
    %loss = nn.sum %y {dims = array<i64: 0, 1>, keep_dims = false} : (tensor<3x5xf32>) -> tensor<f32>
    return %loss : tensor<f32>
  }
}
