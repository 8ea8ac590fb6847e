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
  func.func @local(%x: tensor<4x8xf32>, %b: tensor<3xf32>, %p: tensor<2x4xf32>) {
    // CHECK: dist.all_reduce {{.*}} {over = #dist.axes<"{tp}">, reason = "partial", reduce = "sum"}
    %0:2 = dist.all_reduce %x, %b {over = #dist.axes<"{tp}">, reduce = "sum", reason = "partial"} : (tensor<4x8xf32>, tensor<3xf32>) -> (tensor<4x8xf32>, tensor<3xf32>)
    // CHECK: dist.all_gather {{.*}} -> 4x16xf32
    %1 = dist.all_gather %x {over = #dist.axes<"{tp}">, dim = 1} : (tensor<4x8xf32>) -> tensor<4x16xf32>
    // CHECK: dist.reduce_scatter {{.*}} -> 2x8xf32
    %2 = dist.reduce_scatter %x {over = #dist.axes<"{tp}">, dim = 0, reduce = "sum"} : (tensor<4x8xf32>) -> tensor<2x8xf32>
    // CHECK: dist.all_to_all {{.*}} -> 8x4xf32
    %3 = dist.all_to_all %x {over = #dist.axes<"{tp}">, split_dim = 1, dim = 0} : (tensor<4x8xf32>) -> tensor<8x4xf32>
    // CHECK: dist.permute
    %4 = dist.permute %x {from = #dist.layout<"[{dp},{tp}]">, to = #dist.layout<"[{tp},{dp}]">} : (tensor<4x8xf32>) -> tensor<4x8xf32>
    // CHECK: dist.dynamic_slice {{.*}} {dist.scalars = [#dist.scalar<0, 2, 0>, #dist.scalar<4, -1, 2>]}
    %5 = dist.dynamic_slice %x {dist.scalars = [#dist.scalar<0, 2, 0>, #dist.scalar<4, -1, 2>]} : (tensor<4x8xf32>) -> tensor<2x8xf32>
    // CHECK: dist.mask_pad
    %6 = dist.mask_pad %x {dims = array<i64: 1>, valid = array<i64: 15>, fill = 0.0} : (tensor<4x8xf32>) -> tensor<4x8xf32>
    // CHECK: dist.mask_pad {{.*}}run = 2 : i64, run_dim = 1 : i64, stride = 8 : i64
    %8 = dist.mask_pad %x {dims = array<i64: 1>, valid = array<i64: 15>, fill = 0.0, run_dim = 1, run = 2, stride = 8} : (tensor<4x8xf32>) -> tensor<4x8xf32>
    // CHECK: dist.accumulate
    %7 = dist.accumulate %x, %6 : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
    // CHECK: dist.accumulate {{.*}}reduce = "max"
    %9 = dist.accumulate %x, %6 {reduce = "max"} : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
    // CHECK: dist.contract_accumulate {{.*}}spec = "k m, k n -> m n"} : (4x8xf32, 2x4xf32, 2x8xf32) -> 4x8xf32
    %11 = dist.contract_accumulate %x, %p, %2 {spec = "k m, k n -> m n"} : (tensor<4x8xf32>, tensor<2x4xf32>, tensor<2x8xf32>) -> tensor<4x8xf32>
    // CHECK: dist.dynamic_update_slice {{.*}} -> 4x8xf32
    %10 = dist.dynamic_update_slice %x, %2 : (tensor<4x8xf32>, tensor<2x8xf32>) -> tensor<4x8xf32>
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

func.func @axes(%x: tensor<4xf32>) {
  // expected-error @+1 {{axes "dp": expected a list of axes in braces, like "{dp,tp:(1)2}"}}
  %0 = dist.all_gather %x {over = #dist.axes<"dp">, dim = 0} : (tensor<4xf32>) -> tensor<8xf32>
  return
}

// -----

func.func @bucket(%x: tensor<4xf32>, %y: tensor<8xf32>) {
  // expected-error @+1 {{dist.reduce_scatter (4): operands are cut into 2 and 4 parts; a bucket has one group}}
  %0:2 = dist.reduce_scatter %x, %y {over = #dist.axes<"{dp}">, dim = 0, reduce = "sum"} : (4xf32, 8xf32) -> (2xf32, 2xf32)
  return
}

// -----

func.func @gathered(%x: tensor<4xf32>) {
  // expected-error @+1 {{dist.all_gather (2): result is 'tensor<6xf32>', the operand 'tensor<4xf32>'; the members of a group join their parts along dimension 0, all else stays}}
  %0 = dist.all_gather %x {over = #dist.axes<"{dp}">, dim = 0} : (tensor<4xf32>) -> tensor<6xf32>
  return
}

// -----

func.func @scattered(%x: tensor<5xf32>) {
  // expected-error @+1 {{dist.reduce_scatter (4): result is 'tensor<2xf32>', the operand 'tensor<5xf32>'; the members of a group keep each a part of dimension 0, all else stays}}
  %0 = dist.reduce_scatter %x {over = #dist.axes<"{dp}">, dim = 0, reduce = "sum"} : (tensor<5xf32>) -> tensor<2xf32>
  return
}

// -----

func.func @reduce(%x: tensor<4xf32>) {
  // expected-error @+1 {{dist.all_reduce (2): reduce is "mean"; it must be "sum", "max" or "min"}}
  %0 = dist.all_reduce %x {over = #dist.axes<"{dp}">, reduce = "mean"} : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @permute(%x: tensor<4xf32>) {
  // expected-error @+1 {{dist.permute (2): layout "[{dp},{}]" has 2 dimensions, the tensor has 1}}
  %0 = dist.permute %x {from = #dist.layout<"[{dp}]">, to = #dist.layout<"[{dp},{}]">} : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @accumulate(%x: tensor<4xf32>, %y: tensor<5xf32>) {
  // expected-error @+1 {{dist.accumulate (1): 'tensor<4xf32>' and 'tensor<5xf32>' must have the same shape and element type}}
  %0 = dist.accumulate %x, %y : (tensor<4xf32>, tensor<5xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @accumulate(%x: tensor<4xf32>) {
  // expected-error @+1 {{dist.accumulate (2): reduce is "mean"; it must be "sum", "max" or "min"}}
  %0 = dist.accumulate %x, %x {reduce = "mean"} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @contract_accumulate(%x: tensor<4x5xf32>, %a: tensor<3x4xf32>) {
  // expected-error @+1 {{dist.contract_accumulate (1): 'tensor<4x5xf32>' and 'tensor<5x4xf32>' must have the same shape and element type}}
  %0 = dist.contract_accumulate %x, %a, %a {spec = "k m, k n -> m n"} : (tensor<4x5xf32>, tensor<3x4xf32>, tensor<3x4xf32>) -> tensor<5x4xf32>
  return
}

// -----

func.func @contract_accumulate(%x: tensor<4x5xf32>, %a: tensor<3x4xf32>) {
  // expected-error @+1 {{dist.contract_accumulate (2): kernel contract_accumulate: dimension 'n' has size 4 in one tensor and 5 in another}}
  %0 = dist.contract_accumulate %x, %a, %a {spec = "k m, k n -> m n"} : (tensor<4x5xf32>, tensor<3x4xf32>, tensor<3x4xf32>) -> tensor<4x5xf32>
  return
}

// -----

func.func @contract_accumulate(%x: tensor<4x4xf32>, %a: tensor<3x4xf32>, %b: tensor<2x4xf32>) {
  // expected-error @+1 {{dist.contract_accumulate (2): kernel contract_accumulate: dimension 'k' has size 3 in one tensor and 2 in another}}
  %0 = dist.contract_accumulate %x, %a, %b {spec = "k m, k n -> m n"} : (tensor<4x4xf32>, tensor<3x4xf32>, tensor<2x4xf32>) -> tensor<4x4xf32>
  return
}

// -----

func.func @update(%x: tensor<4xf32>, %y: tensor<5xf32>) {
  // expected-error @+1 {{dist.dynamic_update_slice (2): 'tensor<5xf32>' is no part of 'tensor<4xf32>'}}
  %0 = dist.dynamic_update_slice %x, %y : (tensor<4xf32>, tensor<5xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @runs(%x: tensor<4x8xf32>) {
  // expected-error @+1 {{dist.mask_pad (3): runs of 3, 8 apart, in dimension 1 of 'tensor<4x8xf32>'; they must divide one of dims, and not overlap}}
  %0 = dist.mask_pad %x {dims = array<i64: 1>, valid = array<i64: 15>, fill = 0.0, run_dim = 1, run = 3, stride = 8} : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return
}
