// The gradient of what is sliced is put together of the gradients of its slices, in their order; boxes that leave a gap
// are padded and added.
// RUN: weft-opt %s --weft-build-gradients | FileCheck %s

// CHECK-LABEL: func.func @step
// CHECK: %[[WHOLE:.*]] = nn.concat %{{.*}}, %{{.*}}, %{{.*}} {dim = 1 : i64{{.*}}(4x1xf32, 4x2xf32, 4x1xf32) -> 4x4xf32
// CHECK-NOT: nn.pad
// CHECK: return %{{.*}}, %[[WHOLE]]
func.func @step(%w: tensor<4x4xf32> {nn.kind = "parameter", nn.name = "w", nn.init = {distribution = "zeros"}})
    -> (tensor<f32> {nn.kind = "loss", nn.name = "loss"}) {
  %a = nn.slice %w {offsets = array<i64: 0, 1>, sizes = array<i64: 4, 2>} : (tensor<4x4xf32>) -> tensor<4x2xf32>
  %b = nn.slice %w {offsets = array<i64: 0, 3>, sizes = array<i64: 4, 1>} : (tensor<4x4xf32>) -> tensor<4x1xf32>
  %c = nn.slice %w {offsets = array<i64: 0, 0>, sizes = array<i64: 4, 1>} : (tensor<4x4xf32>) -> tensor<4x1xf32>
  %ea = nn.exp %a : (tensor<4x2xf32>) -> tensor<4x2xf32>
  %eb = nn.exp %b : (tensor<4x1xf32>) -> tensor<4x1xf32>
  %ec = nn.tanh %c : (tensor<4x1xf32>) -> tensor<4x1xf32>
  %sa = nn.sum %ea {dims = array<i64: 0, 1>} : (tensor<4x2xf32>) -> tensor<f32>
  %sb = nn.sum %eb {dims = array<i64: 0, 1>} : (tensor<4x1xf32>) -> tensor<f32>
  %sc = nn.sum %ec {dims = array<i64: 0, 1>} : (tensor<4x1xf32>) -> tensor<f32>
  %ab = nn.add %sa, %sb : (tensor<f32>, tensor<f32>) -> tensor<f32>
  %loss = nn.add %ab, %sc : (tensor<f32>, tensor<f32>) -> tensor<f32>
  return %loss : tensor<f32>
}
