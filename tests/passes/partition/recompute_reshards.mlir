// Reshards are kept or repeated for themselves: the gather of the parameter is repeated though nothing else is; of two
// reshards of tanh, which is recomputed, one is kept, the other is not. What the backward pass gathers itself is what the
// copies gathered before.
// RUN: weft-opt %s --weft-recompute | FileCheck %s

#split = #dist.layout<"[{dp},{}]">
#turned = #dist.layout<"[{},{dp}]">
#whole = #dist.layout<"[{},{}]">
// CHECK: %[[G:.*]] = dist.reshard %[[W:.*]] {{.*}}dist.function = "forward"
// CHECK: %[[T:.*]] = nn.tanh {{.*}}dist.function = "forward"
// CHECK: %[[K:.*]] = dist.reshard %[[T]]
// CHECK: dist.reshard %[[T]]
// CHECK: nn.mul %[[K]], %[[K]] {dist.function = "backward"
// CHECK: %[[G2:.*]] = dist.reshard %[[W]] {{.*}}dist.function = "backward"
// CHECK: %[[Y2:.*]] = nn.matmul %{{.*}}, %[[G2]] {dist.function = "backward"
// CHECK: %[[T2:.*]] = nn.tanh %[[Y2]] {dist.function = "backward"
// CHECK: %[[R2:.*]] = dist.reshard %[[T2]] {{.*}}dist.function = "backward"
// CHECK: nn.mul %[[R2]], %[[R2]] {dist.function = "backward"
// CHECK: nn.neg %[[G2]] {dist.function = "backward"
// CHECK-NOT: dist.reshard
// CHECK: nn.exp %[[G2]] {dist.function = "backward"
module attributes {dist.mesh = #dist.mesh<"dp=2">} {
  func.func @step(%x: tensor<4x4xf32, #split>, %w: tensor<4x4xf32, #split>) {
    %g = dist.reshard %w {reason = "", dist.function = "forward", dist.recompute}
        : (tensor<4x4xf32, #split>) -> tensor<4x4xf32, #whole>
    %y = nn.matmul %x, %g {dist.function = "forward", dist.recompute, nn.id = 1 : i64}
        : (tensor<4x4xf32, #split>, tensor<4x4xf32, #whole>) -> tensor<4x4xf32, #split>
    %t = nn.tanh %y {dist.function = "forward", dist.recompute, nn.id = 2 : i64}
        : (tensor<4x4xf32, #split>) -> tensor<4x4xf32, #split>
    %k = dist.reshard %t {reason = "", dist.function = "forward"}
        : (tensor<4x4xf32, #split>) -> tensor<4x4xf32, #whole>
    %r = dist.reshard %t {reason = "", dist.function = "forward", dist.recompute}
        : (tensor<4x4xf32, #split>) -> tensor<4x4xf32, #turned>
    %a = nn.mul %k, %k {dist.function = "backward", nn.id = 3 : i64}
        : (tensor<4x4xf32, #whole>, tensor<4x4xf32, #whole>) -> tensor<4x4xf32, #whole>
    %b = nn.mul %r, %r {dist.function = "backward", nn.id = 4 : i64}
        : (tensor<4x4xf32, #turned>, tensor<4x4xf32, #turned>) -> tensor<4x4xf32, #turned>
    %c = nn.neg %g {dist.function = "backward", nn.id = 5 : i64}
        : (tensor<4x4xf32, #whole>) -> tensor<4x4xf32, #whole>
    %h = dist.reshard %w {reason = "", dist.function = "backward"}
        : (tensor<4x4xf32, #split>) -> tensor<4x4xf32, #whole>
    %d = nn.exp %h {dist.function = "backward", nn.id = 6 : i64}
        : (tensor<4x4xf32, #whole>) -> tensor<4x4xf32, #whole>
    return
  }
}
