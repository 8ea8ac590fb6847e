// Functions of the local state on global shapes: every value has a layout that fits it and the mesh.
// RUN: weft-opt %s --weft-verify-cut -split-input-file -verify-diagnostics | FileCheck %s

#rows = #dist.layout<"[{dp,micro}]">
#all = #dist.layout<"[{dp}]">
// CHECK-LABEL: func.func @forward
// CHECK: dist.reshard
module attributes {dist.mesh = #dist.mesh<"dp=2,micro=2">} {
  func.func @forward(%x: tensor<8xf32, #all> {dist.memory = #dist.memory<input>, dist.value = "x"})
      -> (tensor<8xf32, #rows> {dist.memory = #dist.memory<activation>, dist.value = "v0"}) attributes {dist.kind = "forward"} {
    %r = dist.reshard %x {reason = ""} : (tensor<8xf32, #all>) -> tensor<8xf32, #rows>
    return %r : tensor<8xf32, #rows>
  }
}

// -----

module attributes {dist.mesh = #dist.mesh<"dp=2">} {
  // expected-error@below {{every value has a layout until shapes are local, this one is 'tensor<8xf32>'}}
  func.func @forward(%x: tensor<8xf32> {dist.memory = #dist.memory<input>, dist.value = "x"}) attributes {dist.kind = "forward"} {
    return
  }
}

// -----

module attributes {dist.mesh = #dist.mesh<"dp=2">} {
  // expected-error@below {{dp}}
  func.func @forward(%x: tensor<7xf32, #dist.layout<"[{dp}]">> {dist.memory = #dist.memory<input>, dist.value = "x"})
      attributes {dist.kind = "forward"} {
    return
  }
}

// -----

#all = #dist.layout<"[{dp}]">
module attributes {dist.mesh = #dist.mesh<"dp=2">} {
  func.func @forward(%x: tensor<8xf32, #all> {dist.memory = #dist.memory<input>, dist.value = "x"})
      attributes {dist.kind = "forward"} {
    // expected-error@below {{a transfer has no place in the local state; it should have become a send and a receive}}
    %t = dist.transfer %x {reason = ""} : (tensor<8xf32, #all>) -> tensor<8xf32, #all>
    return
  }
}
