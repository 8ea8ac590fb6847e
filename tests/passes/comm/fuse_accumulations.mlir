// RUN: weft-opt %s -weft-fuse-accumulations -split-input-file | FileCheck %s

module attributes {dist.mesh = #dist.mesh<"dp=2,micro=4">, nn.options = {machine = "fused_accumulation = 1"}} {
  // CHECK-LABEL: func.func @backward
  // CHECK-NEXT: %0 = dist.contract_accumulate %arg0, %arg1, %arg2 {dist.scalars = [#dist.scalar<0, -1, 1>], nn.name = "w.grad", spec = "b k, b n -> k n"} : (4x6xf32, 3x4xf32, 3x6xf32) -> 4x6xf32
  // CHECK-NEXT: return %0
  func.func @backward(%acc: tensor<4x6xf32>, %x: tensor<3x4xf32>, %dy: tensor<3x6xf32>) -> tensor<4x6xf32> {
    %0 = nn.contract %x, %dy {nn.name = "w.grad", spec = "b k, b n -> k n"} : (tensor<3x4xf32>, tensor<3x6xf32>) -> tensor<4x6xf32>
    %1 = dist.accumulate %acc, %0 {nn.name = "w.grad", dist.scalars = [#dist.scalar<0, -1, 1>]} : (tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<4x6xf32>
    return %1 : tensor<4x6xf32>
  }

  // Something else reads the gradient of the micro-batch.
  // CHECK-LABEL: func.func @alsoReturned
  // CHECK: nn.contract
  // CHECK: dist.accumulate
  func.func @alsoReturned(%acc: tensor<4x6xf32>, %x: tensor<3x4xf32>, %dy: tensor<3x6xf32>) -> (tensor<4x6xf32>, tensor<4x6xf32>) {
    %0 = nn.contract %x, %dy {spec = "b k, b n -> k n"} : (tensor<3x4xf32>, tensor<3x6xf32>) -> tensor<4x6xf32>
    %1 = dist.accumulate %acc, %0 {dist.scalars = [#dist.scalar<0, -1, 1>]} : (tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<4x6xf32>
    return %0, %1 : tensor<4x6xf32>, tensor<4x6xf32>
  }

  // ZeRO-2: what is added up is the reduced gradient.
  // CHECK-LABEL: func.func @scattered
  // CHECK: dist.accumulate
  func.func @scattered(%acc: tensor<2x6xf32>, %x: tensor<3x4xf32>, %dy: tensor<3x6xf32>) -> tensor<2x6xf32> {
    %0 = nn.contract %x, %dy {spec = "b k, b n -> k n"} : (tensor<3x4xf32>, tensor<3x6xf32>) -> tensor<4x6xf32>
    %1 = dist.reduce_scatter %0 {over = #dist.axes<"{dp}">, dim = 0, reduce = "sum"} : (tensor<4x6xf32>) -> tensor<2x6xf32>
    %2 = dist.accumulate %acc, %1 {dist.scalars = [#dist.scalar<0, -1, 1>]} : (tensor<2x6xf32>, tensor<2x6xf32>) -> tensor<2x6xf32>
    return %2 : tensor<2x6xf32>
  }

  // The greatest of all micro-batches is no sum.
  // CHECK-LABEL: func.func @greatest
  // CHECK: dist.accumulate
  func.func @greatest(%acc: tensor<4x6xf32>, %x: tensor<3x4xf32>, %dy: tensor<3x6xf32>) -> tensor<4x6xf32> {
    %0 = nn.contract %x, %dy {spec = "b k, b n -> k n"} : (tensor<3x4xf32>, tensor<3x6xf32>) -> tensor<4x6xf32>
    %1 = dist.accumulate %acc, %0 {reduce = "max", dist.scalars = [#dist.scalar<0, -1, 1>]} : (tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<4x6xf32>
    return %1 : tensor<4x6xf32>
  }

  // The product is made row by row of two dimensions that lie apart in the result: by way of a packed copy.
  // CHECK-LABEL: func.func @packed
  // CHECK: nn.contract
  // CHECK: dist.accumulate
  func.func @packed(%acc: tensor<4x6x2xf32>, %x: tensor<3x4x2xf32>, %dy: tensor<3x6xf32>) -> tensor<4x6x2xf32> {
    %0 = nn.contract %x, %dy {spec = "b k j, b n -> k n j"} : (tensor<3x4x2xf32>, tensor<3x6xf32>) -> tensor<4x6x2xf32>
    %1 = dist.accumulate %acc, %0 {dist.scalars = [#dist.scalar<0, -1, 1>]} : (tensor<4x6x2xf32>, tensor<4x6x2xf32>) -> tensor<4x6x2xf32>
    return %1 : tensor<4x6x2xf32>
  }
}

// -----

// The default's products are not added where they are made.
module attributes {dist.mesh = #dist.mesh<"dp=2,micro=4">} {
  // CHECK-LABEL: func.func @elsewhere
  // CHECK: nn.contract
  // CHECK: dist.accumulate
  func.func @elsewhere(%acc: tensor<4x6xf32>, %x: tensor<3x4xf32>, %dy: tensor<3x6xf32>) -> tensor<4x6xf32> {
    %0 = nn.contract %x, %dy {spec = "b k, b n -> k n"} : (tensor<3x4xf32>, tensor<3x6xf32>) -> tensor<4x6xf32>
    %1 = dist.accumulate %acc, %0 {dist.scalars = [#dist.scalar<0, -1, 1>]} : (tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<4x6xf32>
    return %1 : tensor<4x6xf32>
  }
}
