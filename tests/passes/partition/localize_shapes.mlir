// Types become those of one rank and one micro-batch. Origins become scalars: of a slice its start on each rank, of a
// micro-batch its place in the rows of the rank, of a mask the place of what it fills. A constant is cut on each rank.
// RUN: weft-opt %s --weft-localize-shapes -split-input-file -verify-diagnostics | FileCheck %s

#rows = #dist.layout<"[{dp},{}]">
#whole = #dist.layout<"[{},{}]">
#micro = #dist.layout<"[{dp,micro},{}]">
#pad = #dist.layout<"[{},{dp}] pad{1:4}">
// CHECK: module attributes {{.*}}dist.rank_table = dense<{{\[\[}}0, 0], [4, 2]]> : tensor<2x2xi64>, dist.state = "local"
// CHECK-LABEL: func.func @forward(%arg0: tensor<8x4xf32>, %arg1: tensor<8x2xf32>) -> (tensor<2x4xf32>, tensor<4x4xf32>, tensor<8x2xf32>)
// CHECK: %[[R:.*]] = dist.dynamic_slice %arg0 {dist.scalars = [#dist.scalar<0, 0, 0>, #dist.scalar<0, -1, 0>]} : (8x4xf32) -> 4x4xf32
// CHECK: %[[M:.*]] = dist.dynamic_slice %[[R]] {dist.scalars = [#dist.scalar<0, -1, 2>, #dist.scalar<0, -1, 0>]} : (4x4xf32) -> 2x4xf32
// CHECK: nn.tanh %[[M]] : 2x4xf32
// CHECK: %[[C:.*]] = nn.constant {{.*}} : 8x4xf32
// CHECK: dist.dynamic_slice %[[C]] {dist.scalars = [#dist.scalar<0, 0, 0>, #dist.scalar<0, -1, 0>]} : (8x4xf32) -> 4x4xf32
// CHECK: dist.mask_pad %arg1 {{.*}}dist.scalars = [#dist.scalar<0, 1, 0>]
module attributes {dist.mesh = #dist.mesh<"dp=2,micro=2">, dist.stripes = 2 : i64} {
  func.func @forward(%x: tensor<8x4xf32, #whole>, %p: tensor<8x3xf32, #pad>)
      -> (tensor<8x4xf32, #micro>, tensor<8x4xf32, #rows>, tensor<8x3xf32, #pad>) attributes {dist.kind = "forward"} {
    %r = dist.dynamic_slice %x : (tensor<8x4xf32, #whole>) -> tensor<8x4xf32, #rows>
    %m = dist.dynamic_slice %r : (tensor<8x4xf32, #rows>) -> tensor<8x4xf32, #micro>
    %t = nn.tanh %m : (tensor<8x4xf32, #micro>) -> tensor<8x4xf32, #micro>
    %c = nn.constant {value = dense<1.0> : tensor<8x4xf32>} : () -> tensor<8x4xf32, #rows>
    %k = dist.mask_pad %p {dims = array<i64: 1>, valid = array<i64: 3>, fill = 0.0 : f64}
        : (tensor<8x3xf32, #pad>) -> tensor<8x3xf32, #pad>
    return %t, %c, %k : tensor<8x4xf32, #micro>, tensor<8x4xf32, #rows>, tensor<8x3xf32, #pad>
  }
}

// -----

// 10 rows stored as 12, 2 stripes of 3 micro-batches, all on one rank: a micro-batch has rows 2p, 2p+1 and 6+2p, 7+2p.
// CHECK-LABEL: func.func @runs
// CHECK: dist.mask_pad %arg0 {{.*}}dist.scalars = [#dist.scalar<0, -1, 2>]{{.*}}run = 2 : i64, run_dim = 0 : i64, stride = 6 : i64{{.*}}valid = array<i64: 10>
#micro = #dist.layout<"[{micro}] pad{0:12}">
module attributes {dist.mesh = #dist.mesh<"micro=3">, dist.stripes = 2 : i64} {
  func.func @runs(%x: tensor<10xf32, #micro>) -> tensor<10xf32, #micro> attributes {dist.kind = "forward"} {
    %k = dist.mask_pad %x {dims = array<i64: 0>, valid = array<i64: 10>, fill = 0.0 : f64}
        : (tensor<10xf32, #micro>) -> tensor<10xf32, #micro>
    return %k : tensor<10xf32, #micro>
  }
}

// -----

// Rows of micro-batch p go to part p of each stripe, of which a rank has one, or two.
// CHECK-LABEL: func.func @place
// CHECK: dist.dynamic_update_slice %arg0, %arg1 {dist.scalars = [#dist.scalar<0, -1, 2>, #dist.scalar<0, -1, 0>]} : (6x4xf32, 2x4xf32) -> 6x4xf32
#one = #dist.layout<"[{dp},{}]">
#part = #dist.layout<"[{dp,micro},{}]">
module attributes {dist.mesh = #dist.mesh<"dp=2,micro=3">, dist.stripes = 2 : i64} {
  func.func @place(%y: tensor<12x4xf32, #one>, %x: tensor<12x4xf32, #part>) -> tensor<12x4xf32, #one>
      attributes {dist.kind = "forward"} {
    %u = dist.dynamic_update_slice %y, %x : (tensor<12x4xf32, #one>, tensor<12x4xf32, #part>) -> tensor<12x4xf32, #one>
    return %u : tensor<12x4xf32, #one>
  }
}

// -----

// CHECK-LABEL: func.func @stripes
// CHECK-DAG: %[[Y:.*]] = nn.reshape %arg0 {{.*}}-> 2x3x2x4xf32
// CHECK-DAG: %[[X:.*]] = nn.reshape %arg1 {{.*}}-> 2x1x2x4xf32
// CHECK: %[[U:.*]] = dist.dynamic_update_slice %[[Y]], %[[X]] {dist.scalars = [#dist.scalar<0, -1, 0>, #dist.scalar<0, -1, 1>, #dist.scalar<0, -1, 0>, #dist.scalar<0, -1, 0>]}
// CHECK: nn.reshape %[[U]] {{.*}}-> 12x4xf32
#all = #dist.layout<"[{},{}]">
#micro = #dist.layout<"[{micro},{}]">
module attributes {dist.mesh = #dist.mesh<"micro=3">, dist.stripes = 2 : i64} {
  func.func @stripes(%y: tensor<12x4xf32, #all>, %x: tensor<12x4xf32, #micro>) -> tensor<12x4xf32, #all>
      attributes {dist.kind = "forward"} {
    %u = dist.dynamic_update_slice %y, %x : (tensor<12x4xf32, #all>, tensor<12x4xf32, #micro>) -> tensor<12x4xf32, #all>
    return %u : tensor<12x4xf32, #all>
  }
}

// -----

// expected-error@below {{has no dist.stripes; run --weft-cut-functions first}}
module attributes {dist.mesh = #dist.mesh<"2">} {
}

// -----

// A splat has any shape, the stored one too.
// CHECK-LABEL: func.func @splat
// CHECK: %[[C:.*]] = nn.constant {{.*}} : 4xf32
// CHECK: dist.dynamic_slice %[[C]] {dist.scalars = [#dist.scalar<0, 0, 0>]} : (4xf32) -> 2xf32
module attributes {dist.mesh = #dist.mesh<"2">, dist.stripes = 1 : i64} {
  func.func @splat() -> tensor<3xf32, #dist.layout<"[{all}] pad{0:4}">> attributes {dist.kind = "forward"} {
    %c = nn.constant {value = dense<1.0> : tensor<3xf32>} : () -> tensor<3xf32, #dist.layout<"[{all}] pad{0:4}">>
    return %c : tensor<3xf32, #dist.layout<"[{all}] pad{0:4}">>
  }
}

// -----

module attributes {dist.mesh = #dist.mesh<"2">, dist.stripes = 1 : i64} {
  func.func @forward() -> tensor<3xf32, #dist.layout<"[{all}] pad{0:4}">> attributes {dist.kind = "forward"} {
    // expected-error@below {{a constant would need a pad here; fill the tensor or split another dimension}}
    %c = nn.constant {value = dense<[1.0, 2.0, 3.0]> : tensor<3xf32>} : () -> tensor<3xf32, #dist.layout<"[{all}] pad{0:4}">>
    return %c : tensor<3xf32, #dist.layout<"[{all}] pad{0:4}">>
  }
}
