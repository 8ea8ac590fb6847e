// Splits that only an expansion allows: keys of attention and the height of an image.
// RUN: weft-opt %s --weft-build-gradients --weft-build-update --weft-decide -split-input-file -verify-diagnostics | FileCheck %s
// RUN: weft-opt %s --weft-build-gradients --weft-build-update --weft-decide --weft-assign-layouts --weft-insert-transfers --weft-insert-reshards --weft-send-updates --weft-mask-pads --weft-mark-recompute --weft-verify-annotated -split-input-file -verify-diagnostics | FileCheck %s --check-prefix=LAID

// Queries over cp, keys over sp. A greatest score and a sum for each query are exchanged over sp, and the sums over
// keys: out, and dq.
module attributes {dist.mesh = #dist.mesh<"cp=2,sp=2">, nn.optimizer = {kind = "sgd"}} {
  func.func @step(%q: tensor<1x2x4x8xf32> {nn.kind = "parameter", nn.name = "q"},
                  %k: tensor<1x1x16x8xf32> {nn.kind = "parameter", nn.name = "k"},
                  %v: tensor<1x1x16x8xf32> {nn.kind = "parameter", nn.name = "v"})
      -> (tensor<f32> {nn.kind = "loss", nn.name = "loss"}) {
    %out:2 = nn.attention %q, %k, %v {causal = true, scale = 0.5 : f64, nn.strategy = {in = [["", "", "cp", ""], ["", "", "sp", ""], ["", "", "sp", ""]]}}
        : (tensor<1x2x4x8xf32>, tensor<1x1x16x8xf32>, tensor<1x1x16x8xf32>) -> (tensor<1x2x4x8xf32>, tensor<1x2x4xf32>)
    %l = nn.sum_squares %out#0 : (tensor<1x2x4x8xf32>) -> tensor<f32>
    return %l : tensor<f32>
  }
}

// -----

// The height over sp. Each rank convolves its block with a row from either neighbor.
module attributes {dist.mesh = #dist.mesh<"sp=4">, nn.optimizer = {kind = "sgd"}} {
  func.func @step(%x: tensor<1x3x32x8xf32> {nn.kind = "parameter", nn.name = "x"},
                  %w: tensor<5x3x3x3xf32> {nn.kind = "parameter", nn.name = "w"})
      -> (tensor<f32> {nn.kind = "loss", nn.name = "loss"}) {
    %y = nn.conv2d %x, %w {strides = array<i64: 1, 1>, paddings = array<i64: 1, 1>, nn.strategy = {in = [["", "", "sp", ""], ["", "", "", ""]]}}
        : (tensor<1x3x32x8xf32>, tensor<5x3x3x3xf32>) -> tensor<1x5x32x8xf32>
    %l = nn.sum_squares %y : (tensor<1x5x32x8xf32>) -> tensor<f32>
    return %l : tensor<f32>
  }
}

// -----

// The width is whole in the expansion, too.
module attributes {dist.mesh = #dist.mesh<"sp=4">, nn.optimizer = {kind = "sgd"}} {
  func.func @step(%x: tensor<1x3x32x8xf32> {nn.kind = "parameter", nn.name = "x"},
                  %w: tensor<5x3x3x3xf32> {nn.kind = "parameter", nn.name = "w"})
      -> (tensor<f32> {nn.kind = "loss", nn.name = "loss"}) {
    // expected-error @+1 {{factor 'w' of size 8 must stay whole in 'n ci+ ho! w!!, co ci+ kh!! kw!! -> n co ho! wo!!', but is split 4 ways over sp; nearest legal split: 1}}
    %y = nn.conv2d %x, %w {strides = array<i64: 1, 1>, paddings = array<i64: 1, 1>, nn.strategy = {in = [["", "", "", "sp"], ["", "", "", ""]]}}
        : (tensor<1x3x32x8xf32>, tensor<5x3x3x3xf32>) -> tensor<1x5x32x8xf32>
    %l = nn.sum_squares %y : (tensor<1x5x32x8xf32>) -> tensor<f32>
    return %l : tensor<f32>
  }
}
