// RUN: weft-opt %s -weft-verify-ordered -split-input-file -verify-diagnostics | FileCheck %s

// CHECK: dist.actions = #dist.actions<init = [@init 0], step = [@forward 0, @forward 1, @update 0]>
module attributes {dist.mesh = #dist.mesh<"dp=1,micro=2">, dist.actions = #dist.actions<init = [@init 0], step = [@forward 0, @forward 1, @update 0]>} {
  func.func @init() attributes {dist.kind = "init"} { return }
  func.func @forward() attributes {dist.kind = "forward"} { return }
  func.func @update() attributes {dist.kind = "update"} { return }
}

// -----

// expected-error @+1 {{the submesh has no dist.actions; --weft-write-schedule writes it}}
module attributes {dist.mesh = #dist.mesh<"dp=1,micro=2">} {
  func.func @init() attributes {dist.kind = "init"} { return }
  func.func @forward() attributes {dist.kind = "forward"} { return }
  func.func @update() attributes {dist.kind = "update"} { return }
}

// -----

// expected-error @+1 {{dist.actions calls @backward for micro-batch 1 in a step; the submesh has no such function}}
module attributes {dist.mesh = #dist.mesh<"dp=1,micro=2">, dist.actions = #dist.actions<init = [@init 0], step = [@forward 0, @backward 1, @update 0]>} {
  func.func @init() attributes {dist.kind = "init"} { return }
  func.func @forward() attributes {dist.kind = "forward"} { return }
  func.func @update() attributes {dist.kind = "update"} { return }
}

// -----

// expected-error @+1 {{dist.actions calls @init for micro-batch 0 in a step, where it does not run}}
module attributes {dist.mesh = #dist.mesh<"dp=1,micro=2">, dist.actions = #dist.actions<init = [@init 0], step = [@init 0, @forward 0, @forward 1, @update 0]>} {
  func.func @init() attributes {dist.kind = "init"} { return }
  func.func @forward() attributes {dist.kind = "forward"} { return }
  func.func @update() attributes {dist.kind = "update"} { return }
}

// -----

// expected-error @+1 {{dist.actions calls @update for micro-batch 0 in init, where it does not run}}
module attributes {dist.mesh = #dist.mesh<"dp=1,micro=2">, dist.actions = #dist.actions<init = [@init 0, @update 0], step = [@forward 0, @forward 1]>} {
  func.func @init() attributes {dist.kind = "init"} { return }
  func.func @forward() attributes {dist.kind = "forward"} { return }
  func.func @update() attributes {dist.kind = "update"} { return }
}

// -----

// expected-error @+1 {{dist.actions calls @forward for micro-batch 2 in a step; it runs for 2 micro-batches}}
module attributes {dist.mesh = #dist.mesh<"dp=1,micro=2">, dist.actions = #dist.actions<init = [@init 0], step = [@forward 0, @forward 2, @update 0]>} {
  func.func @init() attributes {dist.kind = "init"} { return }
  func.func @forward() attributes {dist.kind = "forward"} { return }
  func.func @update() attributes {dist.kind = "update"} { return }
}

// -----

// expected-error @+1 {{dist.actions calls @forward for micro-batch -1 in a step; it runs for 2 micro-batches}}
module attributes {dist.mesh = #dist.mesh<"dp=1,micro=2">, dist.actions = #dist.actions<init = [@init 0], step = [@forward -1, @forward 1, @update 0]>} {
  func.func @init() attributes {dist.kind = "init"} { return }
  func.func @forward() attributes {dist.kind = "forward"} { return }
  func.func @update() attributes {dist.kind = "update"} { return }
}

// -----

// expected-error @+1 {{dist.actions calls @update for micro-batch 1 in a step; it runs for 1 micro-batches}}
module attributes {dist.mesh = #dist.mesh<"dp=1,micro=2">, dist.actions = #dist.actions<init = [@init 0], step = [@forward 0, @forward 1, @update 1]>} {
  func.func @init() attributes {dist.kind = "init"} { return }
  func.func @forward() attributes {dist.kind = "forward"} { return }
  func.func @update() attributes {dist.kind = "update"} { return }
}

// -----

// expected-error @+1 {{dist.actions calls @forward for micro-batch 0 in a step twice}}
module attributes {dist.mesh = #dist.mesh<"dp=1,micro=2">, dist.actions = #dist.actions<init = [@init 0], step = [@forward 0, @forward 0, @update 0]>} {
  func.func @init() attributes {dist.kind = "init"} { return }
  func.func @forward() attributes {dist.kind = "forward"} { return }
  func.func @update() attributes {dist.kind = "update"} { return }
}

// -----

module attributes {dist.mesh = #dist.mesh<"dp=1,micro=2">, dist.actions = #dist.actions<init = [@init 0], step = [@forward 0, @update 0]>} {
  func.func @init() attributes {dist.kind = "init"} { return }
  // expected-error @+1 {{dist.actions calls @forward for 1 micro-batches; it runs for 2}}
  func.func @forward() attributes {dist.kind = "forward"} { return }
  func.func @update() attributes {dist.kind = "update"} { return }
}

// -----

module attributes {dist.mesh = #dist.mesh<"dp=1,micro=2">, dist.submeshes = array<i64: 0, 1>, dist.schedule = "gpipe", dist.virtual = 1 : i64} {
  module @submesh0 attributes {dist.mesh = #dist.mesh<"dp=1,micro=2">, dist.actions = #dist.actions<init = [], step = [@forward 0, @forward 1]>} {
    func.func @forward(%x: tensor<f32> {dist.value = "x", dist.memory = #dist.memory<input>}) attributes {dist.kind = "forward"} {
      // expected-error @+1 {{the channel has room for 3 messages; it should be 1 to 2, the number of micro-batches}}
      dist.send %x {channel = 0 : i64, submesh = 1 : i64, capacity = 3 : i64} : (tensor<f32>) -> ()
      return
    }
  }
  module @submesh1 attributes {dist.mesh = #dist.mesh<"dp=1,micro=2">, dist.actions = #dist.actions<init = [], step = [@forward 0, @forward 1]>} {
    func.func @forward() attributes {dist.kind = "forward"} { return }
  }
}

// -----

module attributes {dist.mesh = #dist.mesh<"dp=1,micro=2">, dist.submeshes = array<i64: 0, 1>, dist.schedule = "gpipe", dist.virtual = 1 : i64} {
  module @submesh0 attributes {dist.mesh = #dist.mesh<"dp=1,micro=2">, dist.actions = #dist.actions<init = [], step = [@forward 0, @forward 1]>} {
    func.func @forward(%x: tensor<f32> {dist.value = "x", dist.memory = #dist.memory<input>}) attributes {dist.kind = "forward"} {
      dist.send %x {channel = 0 : i64, submesh = 1 : i64, capacity = 1 : i64} : (tensor<f32>) -> ()
      return
    }
  }
  module @submesh1 attributes {dist.mesh = #dist.mesh<"dp=1,micro=2">, dist.actions = #dist.actions<init = [], step = [@forward 0, @forward 1]>} {
    func.func @forward() attributes {dist.kind = "forward"} {
      // expected-error @+1 {{the channel has room for 0 messages; it should be 1 to 2, the number of micro-batches}}
      %0 = dist.receive {channel = 0 : i64, submesh = 0 : i64} : () -> tensor<f32>
      return
    }
  }
}
