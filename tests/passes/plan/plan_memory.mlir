// RUN: weft-opt %s -weft-write-schedule -weft-assign-storage -weft-plan-memory -weft-verify-scheduled | FileCheck %s

// Each class lies one after another, at multiples of 64 bytes. The second submesh runs forward and backward of a micro-
// batch in turn, so one slot is enough; the first is a micro-batch ahead, and its mailbox has room for two messages.
// CHECK: module attributes
// CHECK-SAME: dist.state = "scheduled"
// CHECK: module @submesh0
// CHECK-SAME: dist.regions = [
// CHECK-SAME: #dist.region<memory = input, bytes = 128, max_live = 128, lower_bound = 128>
// CHECK-SAME: #dist.region<memory = activation, bytes = 64, max_live = 64, lower_bound = 64, slots = 2>
// CHECK-SAME: #dist.region<memory = workspace,
// CHECK-SAME: #dist.region<memory = mailbox, bytes = 64, max_live = 64, lower_bound = 64>]
// CHECK-SAME: dist.storages = [
// CHECK-SAME: #dist.storage<memory = input, bytes = 16, label = "x", offset = 0>
// CHECK-SAME: #dist.storage<memory = input, bytes = 16, label = "y", offset = 64>
// CHECK: dist.receive {capacity = 2 : i64, channel = 1 : i64, dist.storage = array<i64: {{.*}}>, mailbox = 0 : i64, submesh = 1 : i64}
// CHECK: module @submesh1
// CHECK-SAME: dist.regions = [
// CHECK-SAME: #dist.region<memory = activation, bytes = 64, max_live = 64, lower_bound = 64, stage = 1>
module attributes {dist.mesh = #dist.mesh<"dp=1,micro=3">, dist.submeshes = array<i64: 0, 1>, dist.schedule = "1f1b", dist.virtual = 1 : i64} {
  module @submesh0 attributes {dist.mesh = #dist.mesh<"dp=1,micro=3">} {
    func.func @forward(%x: tensor<4xf32> {dist.value = "x", dist.memory = #dist.memory<input>}, %y: tensor<4xf32> {dist.value = "y", dist.memory = #dist.memory<input>})
        -> (tensor<4xf32> {dist.value = "v0", dist.memory = #dist.memory<activation>}) attributes {dist.kind = "forward"} {
      %0 = nn.add %x, %y : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      dist.send %0 {channel = 0 : i64, submesh = 1 : i64} : (tensor<4xf32>) -> ()
      return %0 : tensor<4xf32>
    }
    func.func @backward(%v: tensor<4xf32> {dist.value = "v0", dist.memory = #dist.memory<activation>}) attributes {dist.kind = "backward"} {
      %0 = dist.receive {channel = 1 : i64, submesh = 1 : i64} : () -> tensor<4xf32>
      %1 = nn.mul %v, %0 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      return
    }
  }
  module @submesh1 attributes {dist.mesh = #dist.mesh<"dp=1,micro=3">} {
    func.func @forward() -> (tensor<4xf32> {dist.value = "v0", dist.memory = #dist.memory<activation>}) attributes {dist.kind = "forward"} {
      %0 = dist.receive {channel = 0 : i64, submesh = 0 : i64} : () -> tensor<4xf32>
      return %0 : tensor<4xf32>
    }
    func.func @backward(%0: tensor<4xf32> {dist.value = "v0", dist.memory = #dist.memory<activation>}) attributes {dist.kind = "backward"} {
      dist.send %0 {channel = 1 : i64, submesh = 0 : i64} : (tensor<4xf32>) -> ()
      return
    }
  }
}
