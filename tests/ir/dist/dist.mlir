// RUN: weft-opt %s -split-input-file -verify-diagnostics | weft-opt -split-input-file | FileCheck %s

// CHECK: module attributes {dist.mesh = #dist.mesh<"dp=2,tp=2,micro=4">}
module attributes {dist.mesh = #dist.mesh<"dp=2,tp=2,micro=4">} {
  // CHECK-LABEL: @annotated
  func.func @annotated(%x: tensor<4x8xf32, #dist.layout<"[{dp},{}] partial{tp:sum}">>) {
    // CHECK: dist.reshard {{.*}} {reason = "operand 0 of matmul"}
    %0 = dist.reshard %x {reason = "operand 0 of matmul"} : (tensor<4x8xf32, #dist.layout<"[{dp},{}] partial{tp:sum}">>) -> tensor<4x8xf32, #dist.layout<"[{dp},{tp}]">>
    return
  }

  // CHECK-LABEL: @local
  func.func @local(%x: tensor<4x8xf32>, %b: tensor<3xf32>) {
    // CHECK: dist.all_reduce {{.*}} {groups = {{\[\[}}0, 1], [2, 3]], reason = "partial", reduce = "sum"}
    %0:2 = dist.all_reduce %x, %b {groups = [[0, 1], [2, 3]], reduce = "sum", reason = "partial"} : (tensor<4x8xf32>, tensor<3xf32>) -> (tensor<4x8xf32>, tensor<3xf32>)
    // CHECK: dist.all_gather {{.*}} -> 4x16xf32
    %1 = dist.all_gather %x {groups = [[0, 1], [2, 3]], dim = 1} : (tensor<4x8xf32>) -> tensor<4x16xf32>
    // CHECK: dist.reduce_scatter {{.*}} -> 2x8xf32
    %2 = dist.reduce_scatter %x {groups = [[0, 1], [2, 3]], dim = 0, reduce = "sum"} : (tensor<4x8xf32>) -> tensor<2x8xf32>
    // CHECK: dist.all_to_all {{.*}} -> 8x4xf32
    %3 = dist.all_to_all %x {groups = [[0, 1], [2, 3]], split_dim = 1, dim = 0} : (tensor<4x8xf32>) -> tensor<8x4xf32>
    // CHECK: dist.permute
    %4 = dist.permute %x {source = array<i64: 1, 0, 3, 2>} : (tensor<4x8xf32>) -> tensor<4x8xf32>
    // CHECK: dist.dynamic_slice {{.*}} {dist.scalars = [#dist.scalar<0, 2, 0>, #dist.scalar<4, -1, 2>]}
    %5 = dist.dynamic_slice %x {dist.scalars = [#dist.scalar<0, 2, 0>, #dist.scalar<4, -1, 2>]} : (tensor<4x8xf32>) -> tensor<2x8xf32>
    // CHECK: dist.mask_pad
    %6 = dist.mask_pad %x {dims = array<i64: 1>, valid = array<i64: 15>, fill = 0.0} : (tensor<4x8xf32>) -> tensor<4x8xf32>
    // CHECK: dist.accumulate
    %7 = dist.accumulate %x, %6 : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
    return
  }
}

// -----

// expected-error @+1 {{mesh "dp=0": }}
module attributes {dist.mesh = #dist.mesh<"dp=0">} {}

// -----

// expected-error @+1 {{layout "[dp]": dimension 0 is not a list of axes in braces; expected a form like "[{dp},{}] partial{tp:sum}"}}
func.func private @layout(tensor<4xf32, #dist.layout<"[dp]">>)

// -----

// expected-error @+1 {{layout "[{dp}] sum{tp}": "sum{tp}" after the dimensions}}
func.func private @word(tensor<4xf32, #dist.layout<"[{dp}] sum{tp}">>)

// -----

// expected-error @+1 {{layout "[{dp}]" has 1 dimensions, the tensor has 2}}
func.func private @dimensions(tensor<4x4xf32, #dist.layout<"[{dp}]">>)

// -----

func.func @groups(%x: tensor<4xf32>) {
  // expected-error @+1 {{dist.all_gather (1): groups have 2 and 1 members; all need the same number}}
  %0 = dist.all_gather %x {groups = [[0, 1], [2]], dim = 0} : (tensor<4xf32>) -> tensor<8xf32>
  return
}

// -----

func.func @twice(%x: tensor<4xf32>) {
  // expected-error @+1 {{dist.all_gather (1): rank 1 stands twice in the groups or is negative}}
  %0 = dist.all_gather %x {groups = [[0, 1], [1, 2]], dim = 0} : (tensor<4xf32>) -> tensor<8xf32>
  return
}

// -----

func.func @gathered(%x: tensor<4xf32>) {
  // expected-error @+1 {{dist.all_gather (2): result is 'tensor<6xf32>'; expected 'tensor<8xf32>'}}
  %0 = dist.all_gather %x {groups = [[0, 1]], dim = 0} : (tensor<4xf32>) -> tensor<6xf32>
  return
}

// -----

func.func @scattered(%x: tensor<5xf32>) {
  // expected-error @+1 {{dist.reduce_scatter (4): dimension 0 of 'tensor<5xf32>' does not divide by the group size 2}}
  %0 = dist.reduce_scatter %x {groups = [[0, 1]], dim = 0, reduce = "sum"} : (tensor<5xf32>) -> tensor<2xf32>
  return
}

// -----

func.func @reduce(%x: tensor<4xf32>) {
  // expected-error @+1 {{dist.all_reduce (2): reduce is "mean"; it must be "sum", "max" or "min"}}
  %0 = dist.all_reduce %x {groups = [[0, 1]], reduce = "mean"} : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @permute(%x: tensor<4xf32>) {
  // expected-error @+1 {{dist.permute (2): source 2 is not one of 2 ranks}}
  %0 = dist.permute %x {source = array<i64: 1, 2>} : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @accumulate(%x: tensor<4xf32>, %y: tensor<5xf32>) {
  // expected-error @+1 {{dist.accumulate (1): 'tensor<4xf32>' and 'tensor<5xf32>' must have the same shape and element type}}
  %0 = dist.accumulate %x, %y : (tensor<4xf32>, tensor<5xf32>) -> tensor<4xf32>
  return
}
