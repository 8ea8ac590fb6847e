// RUN: weft-opt %s -weft-form-reduce-scatter -split-input-file | FileCheck %s

// Ranks 0, 2 and 1, 3 reduce together; column 0 holds where each rank's part starts, column 1 where quarters do.
module attributes {dist.mesh = #dist.mesh<"dp=2,tp=2">, dist.rank_table = dense<[[0, 0], [0, 1], [2, 2], [2, 3]]> : tensor<4x2xi64>} {
  // CHECK-LABEL: func.func @update
  // CHECK-NEXT: dist.reduce_scatter %arg0 {bytes_received = 64 : i64, {{.*}}dim = 1 : i64, {{.*}}nn.name = "g", over = #dist.axes<"{dp}">, reason = "why", reduce = "sum"} : (8x4xf32) -> 8x2xf32
  // CHECK-NEXT: return
  func.func @update(%a: tensor<8x4xf32>) -> tensor<8x2xf32> {
    %0 = dist.all_reduce %a {over = #dist.axes<"{dp}">, reduce = "sum", reason = "why", bytes_received = 128 : i64, nn.name = "g"} : (tensor<8x4xf32>) -> tensor<8x4xf32>
    %1 = dist.dynamic_slice %0 {dist.scalars = [#dist.scalar<0, -1, 0>, #dist.scalar<0, 0, 0>]} : (tensor<8x4xf32>) -> tensor<8x2xf32>
    return %1 : tensor<8x2xf32>
  }

  // The whole is read too.
  // CHECK-LABEL: func.func @whole
  // CHECK: dist.all_reduce
  func.func @whole(%a: tensor<8x4xf32>) -> (tensor<8x4xf32>, tensor<8x2xf32>) {
    %0 = dist.all_reduce %a {over = #dist.axes<"{dp}">, reduce = "sum"} : (tensor<8x4xf32>) -> tensor<8x4xf32>
    %1 = dist.dynamic_slice %0 {dist.scalars = [#dist.scalar<0, -1, 0>, #dist.scalar<0, 0, 0>]} : (tensor<8x4xf32>) -> tensor<8x2xf32>
    return %0, %1 : tensor<8x4xf32>, tensor<8x2xf32>
  }

  // The groups of another axis: the parts are those of other groups.
  // CHECK-LABEL: func.func @otherGroups
  // CHECK: dist.all_reduce
  func.func @otherGroups(%a: tensor<8x4xf32>) -> tensor<8x2xf32> {
    %0 = dist.all_reduce %a {over = #dist.axes<"{tp}">, reduce = "sum"} : (tensor<8x4xf32>) -> tensor<8x4xf32>
    %1 = dist.dynamic_slice %0 {dist.scalars = [#dist.scalar<0, -1, 0>, #dist.scalar<0, 0, 0>]} : (tensor<8x4xf32>) -> tensor<8x2xf32>
    return %1 : tensor<8x2xf32>
  }

  // Members in the other order would get each other's part.
  // CHECK-LABEL: func.func @otherOrder
  // CHECK: dist.all_reduce
  func.func @otherOrder(%a: tensor<8x4xf32>) -> tensor<8x1xf32> {
    %0 = dist.all_reduce %a {over = #dist.axes<"{tp,dp}">, reduce = "sum"} : (tensor<8x4xf32>) -> tensor<8x4xf32>
    %1 = dist.dynamic_slice %0 {dist.scalars = [#dist.scalar<0, -1, 0>, #dist.scalar<0, 1, 0>]} : (tensor<8x4xf32>) -> tensor<8x1xf32>
    return %1 : tensor<8x1xf32>
  }

  // A part of each micro of the step.
  // CHECK-LABEL: func.func @micro
  // CHECK: dist.all_reduce
  func.func @micro(%a: tensor<8x4xf32>) -> tensor<8x2xf32> {
    %0 = dist.all_reduce %a {over = #dist.axes<"{dp}">, reduce = "sum"} : (tensor<8x4xf32>) -> tensor<8x4xf32>
    %1 = dist.dynamic_slice %0 {dist.scalars = [#dist.scalar<0, -1, 0>, #dist.scalar<0, 0, 2>]} : (tensor<8x4xf32>) -> tensor<8x2xf32>
    return %1 : tensor<8x2xf32>
  }
}
