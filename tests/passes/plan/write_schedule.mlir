// RUN: weft-opt %s -weft-write-schedule -split-input-file -verify-diagnostics | FileCheck %s

// One submesh: init once; then both functions for each micro-batch in turn, and the update.
// CHECK: dist.actions = #dist.actions<init = [@init 0], step = [@prologue 0, @forward 0, @backward 0, @forward 1, @backward 1, @update 0]>
module attributes {dist.mesh = #dist.mesh<"dp=2,micro=2">} {
  func.func @update() attributes {dist.kind = "update"} { return }
  func.func @backward() attributes {dist.kind = "backward"} { return }
  func.func @forward() attributes {dist.kind = "forward"} { return }
  func.func @prologue() attributes {dist.kind = "prologue"} { return }
  func.func @init() attributes {dist.kind = "init"} { return }
}

// -----

// Two submeshes under 1F1B: the first is a micro-batch ahead, so that two are under way. What the prologue sends is under
// way once.
// CHECK: module @submesh0 attributes {dist.actions = #dist.actions<init = [], step = [@prologue 0, @forward 0, @forward 1, @backward 0, @forward 2, @backward 1, @backward 2]>
// CHECK: func.func @prologue
// CHECK: dist.send %{{.*}} {capacity = 1 : i64, channel = 0 : i64
// CHECK: func.func @forward
// CHECK: dist.send %{{.*}} {capacity = 2 : i64, channel = 1 : i64
// CHECK: func.func @backward
// CHECK: dist.receive {capacity = 2 : i64, channel = 2 : i64
// CHECK: module @submesh1 attributes {dist.actions = #dist.actions<init = [], step = [@prologue 0, @forward 0, @backward 0, @forward 1, @backward 1, @forward 2, @backward 2]>
// CHECK: dist.receive {capacity = 1 : i64, channel = 0 : i64
// CHECK: dist.receive {capacity = 2 : i64, channel = 1 : i64
// CHECK: dist.send %{{.*}} {capacity = 2 : i64, channel = 2 : i64
module attributes {dist.mesh = #dist.mesh<"dp=1,micro=3">, dist.submeshes = array<i64: 0, 1>, dist.schedule = "1f1b", dist.virtual = 1 : i64} {
  module @submesh0 attributes {dist.mesh = #dist.mesh<"dp=1,micro=3">} {
    func.func @prologue(%s: tensor<f32> {dist.value = "s", dist.memory = #dist.memory<state>}) attributes {dist.kind = "prologue"} {
      dist.send %s {channel = 0 : i64, submesh = 1 : i64} : (tensor<f32>) -> ()
      return
    }
    func.func @forward(%x: tensor<4xf32> {dist.value = "x", dist.memory = #dist.memory<input>}) attributes {dist.kind = "forward"} {
      dist.send %x {channel = 1 : i64, submesh = 1 : i64} : (tensor<4xf32>) -> ()
      return
    }
    func.func @backward() attributes {dist.kind = "backward"} {
      %0 = dist.receive {channel = 2 : i64, submesh = 1 : i64} : () -> tensor<4xf32>
      return
    }
  }
  module @submesh1 attributes {dist.mesh = #dist.mesh<"dp=1,micro=3">} {
    func.func @prologue() attributes {dist.kind = "prologue"} {
      %0 = dist.receive {channel = 0 : i64, submesh = 0 : i64} : () -> tensor<f32>
      return
    }
    func.func @forward() -> (tensor<4xf32> {dist.value = "v0", dist.memory = #dist.memory<activation>}) attributes {dist.kind = "forward"} {
      %0 = dist.receive {channel = 1 : i64, submesh = 0 : i64} : () -> tensor<4xf32>
      return %0 : tensor<4xf32>
    }
    func.func @backward(%0: tensor<4xf32> {dist.value = "v0", dist.memory = #dist.memory<activation>}) attributes {dist.kind = "backward"} {
      dist.send %0 {channel = 2 : i64, submesh = 0 : i64} : (tensor<4xf32>) -> ()
      return
    }
  }
}

// -----

// expected-error @+1 {{unknown kind of schedule '2f2b'; known: gpipe, 1f1b}}
module attributes {dist.mesh = #dist.mesh<"dp=1,micro=3">, dist.submeshes = array<i64: 0, 1>, dist.schedule = "2f2b", dist.virtual = 1 : i64} {
  module @submesh0 attributes {dist.mesh = #dist.mesh<"dp=1,micro=3">} {
    func.func @backward() attributes {dist.kind = "backward"} { return }
  }
  module @submesh1 attributes {dist.mesh = #dist.mesh<"dp=1,micro=3">} {}
}
