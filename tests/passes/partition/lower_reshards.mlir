// Each reshard becomes the collectives of its path, on global shapes; a part that a rank or a micro-batch takes becomes
// a slice; other operators are left alone. A sum over the micro-batches should have become an accumulation.
// RUN: weft-opt %s --weft-lower-reshards -split-input-file -verify-diagnostics | FileCheck %s

#rows = #dist.layout<"[{dp},{}]">
#columns = #dist.layout<"[{},{dp}]">
#whole = #dist.layout<"[{},{}]">
#sum = #dist.layout<"[{},{}] partial{dp:sum}">
#micro = #dist.layout<"[{dp,micro},{}]">
// CHECK-LABEL: func.func @forward
// CHECK: %[[R:.*]] = dist.reduce_scatter %arg0 {{.*}}dim = 0 : i64, nn.name = "y", over = #dist.axes<"{dp}">, reason = "relu reads operand 0: [{},{}] partial{dp:sum} -> [{dp},{}]", reduce = "sum"}
// CHECK-SAME: (8x4xf32 "[{},{}] partial{dp:sum}") -> 8x4xf32 "[{dp},{}]"
// CHECK: %[[T:.*]] = nn.relu %[[R]]
// CHECK: %[[A:.*]] = dist.all_to_all %[[T]] {{.*}}dim = 0 : i64, {{.*}}split_dim = 1 : i64
// CHECK: %[[W:.*]] = dist.all_gather %[[T]]
// CHECK: %[[S:.*]] = dist.dynamic_slice %[[W]] : (8x4xf32 "[{},{}]") -> 8x4xf32 "[{},{dp}]"
// CHECK: %[[M:.*]] = dist.dynamic_slice %[[T]] : {{.*}} -> 8x4xf32 "[{dp,micro},{}]"
// CHECK: return %[[A]], %[[S]], %[[M]]
module attributes {dist.mesh = #dist.mesh<"dp=2,micro=2">} {
  func.func @forward(%y: tensor<8x4xf32, #sum>)
      -> (tensor<8x4xf32, #columns>, tensor<8x4xf32, #columns>, tensor<8x4xf32, #micro>) attributes {dist.kind = "forward"} {
    %r = dist.reshard %y {nn.name = "y", reason = "relu reads operand 0"}
        : (tensor<8x4xf32, #sum>) -> tensor<8x4xf32, #rows>
    %t = nn.relu %r : (tensor<8x4xf32, #rows>) -> tensor<8x4xf32, #rows>
    %a = dist.reshard %t {reason = ""} : (tensor<8x4xf32, #rows>) -> tensor<8x4xf32, #columns>
    %w = dist.reshard %t {reason = ""} : (tensor<8x4xf32, #rows>) -> tensor<8x4xf32, #whole>
    %s = dist.reshard %w {reason = ""} : (tensor<8x4xf32, #whole>) -> tensor<8x4xf32, #columns>
    %m = dist.reshard %t {reason = ""} : (tensor<8x4xf32, #rows>) -> tensor<8x4xf32, #micro>
    return %a, %s, %m : tensor<8x4xf32, #columns>, tensor<8x4xf32, #columns>, tensor<8x4xf32, #micro>
  }
}

// -----

#whole = #dist.layout<"[{}]">
#sum = #dist.layout<"[{}] partial{micro:sum}">
module attributes {dist.mesh = #dist.mesh<"micro=2">} {
  func.func @forward(%y: tensor<8xf32, #sum>) -> tensor<8xf32, #whole> attributes {dist.kind = "forward"} {
    // expected-error@below {{goes from [{}] partial{micro:sum} to [{}]: a sum over the micro-batches is carried out in another function; run --weft-cut-functions first}}
    %r = dist.reshard %y {reason = ""} : (tensor<8xf32, #sum>) -> tensor<8xf32, #whole>
    return %r : tensor<8xf32, #whole>
  }
}
