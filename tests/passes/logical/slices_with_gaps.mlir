// Of slices that leave a gap or overlap, those that follow one another are joined, padded and added to the others.
// RUN: weft-opt %s --weft-build-gradients | FileCheck %s

// CHECK-LABEL: func.func @step
// CHECK: %[[PADDED:.*]] = nn.pad %{{.*}} {high = array<i64: 4>, low = array<i64: 0>{{.*}}(2xf32) -> 6xf32
// CHECK: %[[BOTH:.*]] = nn.concat %{{.*}}, %{{.*}} {dim = 0 : i64{{.*}}(2xf32, 1xf32) -> 3xf32
// CHECK: %[[JOINED:.*]] = nn.pad %[[BOTH]] {high = array<i64: 2>, low = array<i64: 1>{{.*}}(3xf32) -> 6xf32
// CHECK: %[[SUM:.*]] = nn.add %[[PADDED]], %[[JOINED]]
// CHECK: return %{{.*}}, %[[SUM]]
func.func @step(%w: tensor<6xf32> {nn.kind = "parameter", nn.name = "w", nn.init = {distribution = "zeros"}})
    -> (tensor<f32> {nn.kind = "loss", nn.name = "loss"}) {
  %a = nn.slice %w {offsets = array<i64: 0>, sizes = array<i64: 2>} : (tensor<6xf32>) -> tensor<2xf32>
  %b = nn.slice %w {offsets = array<i64: 1>, sizes = array<i64: 2>} : (tensor<6xf32>) -> tensor<2xf32>
  %c = nn.slice %w {offsets = array<i64: 3>, sizes = array<i64: 1>} : (tensor<6xf32>) -> tensor<1xf32>
  %ab = nn.mul %a, %b : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %sa = nn.sum %ab {dims = array<i64: 0>} : (tensor<2xf32>) -> tensor<f32>
  %ec = nn.exp %c : (tensor<1xf32>) -> tensor<1xf32>
  %sc = nn.sum %ec {dims = array<i64: 0>} : (tensor<1xf32>) -> tensor<f32>
  %loss = nn.add %sa, %sc : (tensor<f32>, tensor<f32>) -> tensor<f32>
  return %loss : tensor<f32>
}
