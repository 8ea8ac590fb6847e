// Splits that only an expansion allows: keys of attention and the height of an image.
// RUN: weft-opt %s --weft-build-gradients --weft-build-update --weft-decide -split-input-file -verify-diagnostics | FileCheck %s
// RUN: weft-opt %s --weft-build-gradients --weft-build-update --weft-decide --weft-assign-layouts --weft-insert-transfers --weft-insert-reshards --weft-send-updates --weft-mask-pads --weft-mark-recompute --weft-verify-annotated -split-input-file -verify-diagnostics | FileCheck %s --check-prefix=LAID

// Queries over cp, keys over sp. A greatest score and a sum for each query are exchanged over sp, and the sums over
// keys: out, and dq.
// CHECK: \22of\22: \22attention\22
// CHECK: \22of\22: \22attention_grad\22
// CHECK-NOT: nn.attention
// LAID: nn.contract {{.*}}-> 1x1x2x4x16xf32 "[{},{},{},{cp},{sp}]"
// LAID: %[[Q:.*]] = nn.iota {{.*}}: 4x1xi32 "[{cp},{}]"
// LAID: %[[K:.*]] = nn.iota {{.*}}: 1x16xi32 "[{},{sp}]"
// LAID: %[[SEEN:.*]] = nn.compare %[[Q]], %[[K]] {{.*}}-> 4x16xi1 "[{cp},{sp}]"
// LAID: nn.select %[[SEEN]]
// LAID: nn.max {{.*}}-> 1x1x2x4x1xf32 "[{},{},{},{cp},{}] partial{sp:max}"
// LAID: nn.sum {{.*}}-> 1x1x2x4x1xf32 "[{},{},{},{cp},{}] partial{sp:sum}"
// LAID: nn.contract {{.*}}-> 1x1x2x4x8xf32 "[{},{},{},{cp},{}] partial{sp:sum}"
// LAID: nn.div
// LAID: nn.contract {{.*}}nn.phase = "backward"{{.*}}-> 1x1x2x4x16xf32 "[{},{},{},{cp},{sp}]"
// LAID: nn.contract {{.*}}-> 1x1x2x4x8xf32 "[{},{},{},{cp},{}] partial{sp:sum}"
// LAID: nn.contract {{.*}}-> 1x1x16x8xf32 "[{},{},{sp},{}] partial{cp:sum}"
// LAID: nn.contract {{.*}}-> 1x1x16x8xf32 "[{},{},{sp},{}] partial{cp:sum}"
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
// CHECK: \22of\22: \22conv2d\22
// CHECK: \22of\22: \22conv2d_input_grad\22
// CHECK: \22of\22: \22conv2d_weight_grad\22
// Nothing but borders is gathered.
// LAID-NOT: dist.reshard {{.*}}-> 1x3x4x128x512xf32
// LAID-NOT: dist.reshard {{.*}}-> 1x5x4x128x512xf32
// LAID: nn.slice {{.*}}-> 1x3x4x1x512xf32
// LAID-NOT: dist.reshard {{.*}}-> 1x3x4x128x512xf32
// LAID-NOT: dist.reshard {{.*}}-> 1x5x4x128x512xf32
// LAID: nn.concat {{.*}}-> 1x3x4x130x512xf32 "[{},{},{sp},{},{}]"
// LAID-NOT: dist.reshard {{.*}}-> 1x3x4x128x512xf32
// LAID-NOT: dist.reshard {{.*}}-> 1x5x4x128x512xf32
// LAID: nn.conv2d %{{.*}}paddings = array<i64: 0, 1>{{.*}}-> 1x4x5x128x512xf32 "[{},{sp},{},{},{}]"
// LAID-NOT: dist.reshard {{.*}}-> 1x3x4x128x512xf32
// LAID-NOT: dist.reshard {{.*}}-> 1x5x4x128x512xf32
// LAID: nn.conv2d_input_grad %{{.*}}paddings = array<i64: 2, 1>{{.*}}(1x4x5x130x512xf32 "[{},{sp},{},{},{}]", {{.*}}-> 1x4x3x128x512xf32 "[{},{sp},{},{},{}]"
// LAID-NOT: dist.reshard {{.*}}-> 1x3x4x128x512xf32
// LAID-NOT: dist.reshard {{.*}}-> 1x5x4x128x512xf32
// LAID: nn.conv2d_weight_grad %{{.*}}-> 5x3x3x3xf32 "[{},{},{},{}] partial{sp:sum}"
module attributes {dist.mesh = #dist.mesh<"sp=4">, nn.optimizer = {kind = "sgd"}} {
  func.func @step(%x: tensor<1x3x512x512xf32> {nn.kind = "parameter", nn.name = "x"},
                  %w: tensor<5x3x3x3xf32> {nn.kind = "parameter", nn.name = "w"})
      -> (tensor<f32> {nn.kind = "loss", nn.name = "loss"}) {
    %y = nn.conv2d %x, %w {strides = array<i64: 1, 1>, paddings = array<i64: 1, 1>, nn.strategy = {in = [["", "", "sp", ""], ["", "", "", ""]]}}
        : (tensor<1x3x512x512xf32>, tensor<5x3x3x3xf32>) -> tensor<1x5x512x512xf32>
    %l = nn.sum_squares %y : (tensor<1x5x512x512xf32>) -> tensor<f32>
    return %l : tensor<f32>
  }
}

// -----

// The width is whole in the expansion, too.
module attributes {dist.mesh = #dist.mesh<"sp=4">, nn.optimizer = {kind = "sgd"}} {
  func.func @step(%x: tensor<1x3x512x512xf32> {nn.kind = "parameter", nn.name = "x"},
                  %w: tensor<5x3x3x3xf32> {nn.kind = "parameter", nn.name = "w"})
      -> (tensor<f32> {nn.kind = "loss", nn.name = "loss"}) {
    // expected-error @+1 {{factor 'w' of size 512 must stay whole in 'n ci+ ho! w!!, co ci+ kh!! kw!! -> n co ho! wo!!', but is split 4 ways over sp; nearest legal split: 1}}
    %y = nn.conv2d %x, %w {strides = array<i64: 1, 1>, paddings = array<i64: 1, 1>, nn.strategy = {in = [["", "", "", "sp"], ["", "", "", ""]]}}
        : (tensor<1x3x512x512xf32>, tensor<5x3x3x3xf32>) -> tensor<1x5x512x512xf32>
    %l = nn.sum_squares %y : (tensor<1x5x512x512xf32>) -> tensor<f32>
    return %l : tensor<f32>
  }
}
