// Operators go into the functions they name; what crosses is returned under a name and taken as an argument of that
// name; a sum over the micro-batches becomes an accumulation; shapes and layouts stay as they are.
// RUN: weft-opt %s --weft-cut-functions -split-input-file -verify-diagnostics | FileCheck %s

#rows = #dist.layout<"[{dp,micro},{}]">
#all = #dist.layout<"[{dp},{}]">
#whole = #dist.layout<"[{},{}]">
#sum = #dist.layout<"[{},{}] partial{micro:sum}">

// CHECK: module attributes {{.*}}dist.stripes = 2 : i64, dist.tensors = [{{.*}}name = "x"{{.*}}offsets = [array<i64: 0, 0>, array<i64: 4, 0>]
// CHECK-LABEL: func.func @forward
// CHECK-SAME: {dist.memory = #dist.memory<input>, dist.value = "x"}
// CHECK-SAME: {dist.memory = #dist.memory<activation>, dist.value = "v0"}
// CHECK: %[[X:.*]] = dist.reshard %arg0 {nn.name = "x"}
// CHECK: %[[T:.*]] = nn.tanh %[[X]] : 8x4xf32
// CHECK: return %[[T]]
// CHECK-LABEL: func.func @backward
// CHECK-SAME: {dist.memory = #dist.memory<activation>, dist.value = "v0"}
// CHECK: %[[G:.*]] = nn.contract
// CHECK-NEXT: dist.accumulate %{{.*}}, %[[G]] {dist.scalars = [#dist.scalar<0, -1, 1>], nn.name = "contract"}
// CHECK-LABEL: func.func @update
// CHECK-SAME: {dist.memory = #dist.memory<accumulator>, dist.value = "acc0"}
// CHECK: nn.neg
module attributes {dist.mesh = #dist.mesh<"dp=2,micro=2">, dist.state = "annotated"} {
  func.func @step(%x: tensor<8x4xf32, #all> {nn.kind = "input", nn.name = "x"})
      -> (tensor<4x4xf32, #whole> {nn.kind = "output", nn.name = "g"}) {
    %r = dist.reshard %x {reason = "", dist.function = "forward", dist.stage = 0 : i64}
        : (tensor<8x4xf32, #all>) -> tensor<8x4xf32, #rows>
    %t = nn.tanh %r {nn.id = 0 : i64, dist.function = "forward", dist.stage = 0 : i64}
        : (tensor<8x4xf32, #rows>) -> tensor<8x4xf32, #rows>
    %g = nn.contract %t, %t {nn.id = 1 : i64, spec = "m k, m n -> k n", dist.function = "backward", dist.stage = 0 : i64}
        : (tensor<8x4xf32, #rows>, tensor<8x4xf32, #rows>) -> tensor<4x4xf32, #sum>
    %s = dist.reshard %g {reason = "", dist.function = "backward", dist.stage = 0 : i64}
        : (tensor<4x4xf32, #sum>) -> tensor<4x4xf32, #whole>
    %n = nn.neg %s {nn.id = 2 : i64, dist.function = "update", dist.stage = 0 : i64}
        : (tensor<4x4xf32, #whole>) -> tensor<4x4xf32, #whole>
    return %n : tensor<4x4xf32, #whole>
  }
}

// -----

// The rows of an output go to their place in it, micro-batch after micro-batch; a second name is a copy. A maximum over
// the micro-batches is accumulated as one. What replaces a state that each call reads waits for the update.
#rows = #dist.layout<"[{dp,micro},{}]">
#all = #dist.layout<"[{dp},{}]">
#most = #dist.layout<"[{}] partial{micro:max}">
#whole = #dist.layout<"[{}]">
// CHECK-LABEL: func.func @forward
// CHECK-SAME: {dist.memory = #dist.memory<output>, dist.value = "out.y"}
// CHECK: %[[T:.*]] = nn.tanh
// CHECK-NEXT: %[[Y:.*]] = dist.dynamic_update_slice %{{.*}}, %[[T]] {nn.name = "tanh"}
// CHECK: dist.accumulate {{.*}}reduce = "max"
// CHECK: nn.add
// CHECK: return %[[Y]], %{{.*}}, %{{.*}}
// CHECK-LABEL: func.func @update
// CHECK-SAME: {dist.memory = #dist.memory<output>, dist.value = "out.again"}
// CHECK-SAME: {dist.memory = #dist.memory<state>, dist.value = "s"}
module attributes {dist.mesh = #dist.mesh<"dp=2,micro=2">, dist.state = "annotated"} {
  func.func @step(%x: tensor<8x4xf32, #all> {nn.kind = "input", nn.name = "x"},
                  %s: tensor<4xf32, #whole> {nn.kind = "state", nn.name = "s"})
      -> (tensor<8x4xf32, #all> {nn.kind = "output", nn.name = "y"},
          tensor<8x4xf32, #all> {nn.kind = "output", nn.name = "again"},
          tensor<4xf32, #whole> {nn.kind = "output", nn.name = "most"},
          tensor<4xf32, #whole> {nn.kind = "updated", nn.name = "s", nn.arg = 1 : i64}) {
    %r = dist.reshard %x {reason = "", dist.function = "forward", dist.stage = 0 : i64}
        : (tensor<8x4xf32, #all>) -> tensor<8x4xf32, #rows>
    %t = nn.tanh %r {nn.id = 0 : i64, dist.function = "forward", dist.stage = 0 : i64}
        : (tensor<8x4xf32, #rows>) -> tensor<8x4xf32, #rows>
    %y = dist.reshard %t {reason = "", dist.function = "forward", dist.stage = 0 : i64}
        : (tensor<8x4xf32, #rows>) -> tensor<8x4xf32, #all>
    %m = nn.max %t {nn.id = 1 : i64, dims = array<i64: 0>, dist.function = "forward", dist.stage = 0 : i64}
        : (tensor<8x4xf32, #rows>) -> tensor<4xf32, #most>
    %w = dist.reshard %m {reason = "", dist.function = "forward", dist.stage = 0 : i64}
        : (tensor<4xf32, #most>) -> tensor<4xf32, #whole>
    %a = nn.add %s, %s {nn.id = 2 : i64, dist.function = "forward", dist.stage = 0 : i64}
        : (tensor<4xf32, #whole>, tensor<4xf32, #whole>) -> tensor<4xf32, #whole>
    return %y, %y, %w, %a : tensor<8x4xf32, #all>, tensor<8x4xf32, #all>, tensor<4xf32, #whole>, tensor<4xf32, #whole>
  }
}

// -----

// A submesh for each stage; what the second reads of the first goes over a channel.
#whole = #dist.layout<"[{}]">
// CHECK: module @submesh0
// CHECK: %[[T:.*]] = nn.tanh
// CHECK: dist.send %[[T]] {channel = 0 : i64, nn.name = "tanh", reason = "tanh of stage 0 is read in the forward pass of submesh 1", submesh = 1 : i64}
// CHECK: module @submesh1
// CHECK: %[[R:.*]] = dist.receive {channel = 0 : i64, {{.*}}submesh = 0 : i64}
// CHECK: nn.neg %[[R]]
module attributes {dist.mesh = #dist.mesh<"1">, dist.state = "annotated", dist.submeshes = array<i64: 0, 1>,
                   dist.schedule = "1f1b", dist.virtual = 1 : i64} {
  func.func @step(%x: tensor<4xf32, #whole> {nn.kind = "input", nn.name = "x"})
      -> (tensor<4xf32, #whole> {nn.kind = "output", nn.name = "y"}) {
    %t = nn.tanh %x {nn.id = 0 : i64, dist.function = "forward", dist.stage = 0 : i64}
        : (tensor<4xf32, #whole>) -> tensor<4xf32, #whole>
    %n = nn.neg %t {nn.id = 1 : i64, dist.function = "forward", dist.stage = 1 : i64}
        : (tensor<4xf32, #whole>) -> tensor<4xf32, #whole>
    return %n : tensor<4xf32, #whole>
  }
}

// -----

#whole = #dist.layout<"[{}]">
module attributes {dist.mesh = #dist.mesh<"1">, dist.state = "annotated", dist.submeshes = array<i64: 0, 1>,
                   dist.schedule = "1f1b", dist.virtual = 1 : i64} {
  func.func @step(%x: tensor<4xf32, #whole> {nn.kind = "input", nn.name = "x"})
      -> (tensor<4xf32, #whole> {nn.kind = "output", nn.name = "y"}) {
    // expected-error@below {{tanh of stage 1 is read on stage 0 in the forward pass: the stages would wait for each other; move it to stage 0}}
    %t = nn.tanh %x {nn.id = 0 : i64, dist.function = "forward", dist.stage = 1 : i64}
        : (tensor<4xf32, #whole>) -> tensor<4xf32, #whole>
    %n = nn.neg %t {nn.id = 1 : i64, dist.function = "forward", dist.stage = 0 : i64}
        : (tensor<4xf32, #whole>) -> tensor<4xf32, #whole>
    return %n : tensor<4xf32, #whole>
  }
}

// -----

module attributes {dist.mesh = #dist.mesh<"1">} {
  // expected-error@below {{value has no layout; run --weft-assign-layouts first}}
  func.func @step(%x: tensor<4xf32> {nn.kind = "input", nn.name = "x"}) {
    return
  }
}

// -----

// expected-error@below {{has no function @step; it is there from the logical to the annotated state}}
module attributes {dist.mesh = #dist.mesh<"1">} {
}
