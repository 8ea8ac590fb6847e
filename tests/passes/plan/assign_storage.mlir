// RUN: weft-opt %s -weft-assign-storage -split-input-file | FileCheck %s

// A view lies in its operand; what nothing reads afterwards is written over; one name is one storage in all functions.
// The sum is written where its name lies; the output leaves its accumulator by a copy.
// CHECK: dist.storages = [
// CHECK-SAME: #dist.storage<memory = input, bytes = 32, label = "x">,
// CHECK-SAME: #dist.storage<memory = accumulator, bytes = 4, label = "loss">,
// CHECK-SAME: #dist.storage<memory = activation, bytes = 32, label = "fc">,
// CHECK-SAME: #dist.storage<memory = transient, bytes = 4, label = "sum">,
// CHECK-SAME: #dist.storage<memory = output, bytes = 4, label = "out.loss">]
// CHECK-LABEL: func.func @forward
// CHECK-SAME: dist.storage = 0 : i64, dist.value = "x"
// CHECK-SAME: dist.storage = 1 : i64, dist.value = "acc0"
// CHECK: nn.exp %arg0 {dist.storage = array<i64: 2>
// CHECK: nn.neg %0 {dist.storage = array<i64: 2>}
// CHECK: nn.reshape %1 {dist.storage = array<i64: 2>, dist.view}
// CHECK: nn.sum %2 {{.*}}dist.storage = array<i64: 3>
// CHECK: dist.accumulate {{.*}}dist.storage = array<i64: 1>
// CHECK-LABEL: func.func @backward
// CHECK-SAME: dist.storage = 2 : i64, dist.value = "v0"
// CHECK-LABEL: func.func @update
// CHECK: %[[COPY:.*]] = dist.copy %arg0 {dist.storage = array<i64: 4>} : f32
// CHECK-NEXT: return %[[COPY]]
module attributes {dist.mesh = #dist.mesh<"dp=1">,
    dist.tensors = [{name = "loss", kind = "output", value = "out.loss", type = "f32", shape = array<i64>, file_shape = array<i64>,
                     offsets = [array<i64>], valid = [array<i64>]}]} {
  func.func @forward(%x: tensor<8xf32> {dist.value = "x", dist.memory = #dist.memory<input>}, %a: tensor<f32> {dist.value = "acc0", dist.memory = #dist.memory<accumulator>})
      -> (tensor<2x4xf32> {dist.value = "v0", dist.memory = #dist.memory<activation>}, tensor<f32> {dist.value = "acc0", dist.memory = #dist.memory<accumulator>}) attributes {dist.kind = "forward"} {
    %0 = nn.exp %x {nn.name = "fc"} : (tensor<8xf32>) -> tensor<8xf32>
    %1 = nn.neg %0 : (tensor<8xf32>) -> tensor<8xf32>
    %2 = nn.reshape %1 : (tensor<8xf32>) -> tensor<2x4xf32>
    %3 = nn.sum %2 {dims = array<i64: 0, 1>} : (tensor<2x4xf32>) -> tensor<f32>
    %4 = dist.accumulate %a, %3 {nn.name = "loss", dist.scalars = [#dist.scalar<0, -1, 1>]} : (tensor<f32>, tensor<f32>) -> tensor<f32>
    return %2, %4 : tensor<2x4xf32>, tensor<f32>
  }
  func.func @backward(%v: tensor<2x4xf32> {dist.value = "v0", dist.memory = #dist.memory<activation>}) attributes {dist.kind = "backward"} {
    return
  }
  func.func @update(%a: tensor<f32> {dist.value = "acc0", dist.memory = #dist.memory<accumulator>}) -> (tensor<f32> {dist.value = "out.loss", dist.memory = #dist.memory<output>})
      attributes {dist.kind = "update"} {
    return %a : tensor<f32>
  }
}

// -----

// Two parameters trade places: the first moves out of the way.
// CHECK: #dist.storage<memory = transient, bytes = 8, label = "copy">
// CHECK-LABEL: func.func @update
// CHECK-SAME: %[[A:.*]]: tensor<2xf32> {dist.memory = #dist.memory<parameter>, dist.storage = 0
// CHECK-SAME: %[[B:.*]]: tensor<2xf32> {dist.memory = #dist.memory<parameter>, dist.storage = 1
// CHECK: %[[ASIDE:.*]] = dist.copy %[[B]] {dist.storage = array<i64: 2>}
// CHECK: %[[NEWB:.*]] = dist.copy %[[A]] {dist.storage = array<i64: 1>}
// CHECK: %[[NEWA:.*]] = dist.copy %[[ASIDE]] {dist.storage = array<i64: 0>}
// CHECK: return %[[NEWA]], %[[NEWB]]
module attributes {dist.mesh = #dist.mesh<"dp=1">} {
  func.func @update(%a: tensor<2xf32> {dist.value = "a", dist.memory = #dist.memory<parameter>}, %b: tensor<2xf32> {dist.value = "b", dist.memory = #dist.memory<parameter>})
      -> (tensor<2xf32> {dist.value = "a", dist.memory = #dist.memory<parameter>}, tensor<2xf32> {dist.value = "b", dist.memory = #dist.memory<parameter>}) attributes {dist.kind = "update"} {
    return %b, %a : tensor<2xf32>, tensor<2xf32>
  }
}
