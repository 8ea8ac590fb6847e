// RUN: weft-opt %s -weft-form-buckets -split-input-file | FileCheck %s
// RUN: weft-opt %s -weft-form-buckets -split-input-file -mlir-print-debuginfo | FileCheck %s --check-prefix=PLACE
// RUN: weft-opt %s -weft-form-buckets=bucket-bytes=96 -split-input-file | FileCheck %s --check-prefix=SMALL

// The gradients of a data-parallel model, and the sum of the loss: one all_reduce before the first reader.
// CHECK-LABEL: func.func @update
// CHECK-NOT: dist.all_reduce
// CHECK: %[[R:.*]]:4 = dist.all_reduce %arg0, %arg1, %arg2, %arg3
// CHECK-SAME: bytes_received = 300 : i64
// CHECK-SAME: dist.members = ["fc1.grad", "fc1.bias.grad", "fc2.grad", "loss"]
// CHECK-SAME: nn.name = "bucket of 4"
// CHECK-SAME: reason = "bucket of 4: why1; why2; and 2 more"
// CHECK-NEXT: nn.mul %[[R]]#0, %arg4
// CHECK: nn.mul %[[R]]#1
// CHECK: nn.mul %[[R]]#2
// CHECK-NOT: dist.all_reduce
// CHECK: return {{.*}} %[[R]]#3
// PLACE: dist.all_reduce {{.*}} loc(#[[F:loc[0-9]+]])
// PLACE: #[[A:loc[0-9]+]] = loc("model.cc":3:0)
// PLACE: #[[B:loc[0-9]+]] = loc("model.cc":4:0)
// PLACE: #[[F]] = loc(fused[#[[A]], #[[B]]])
// 96 bytes: 64 + 16 + 4 together, the other 64 alone.
// SMALL-LABEL: func.func @update
// SMALL: dist.all_reduce %arg0, %arg1, %arg3
// SMALL: dist.all_reduce %arg2 {{.*}}nn.name = "fc2.grad"
module attributes {dist.mesh = #dist.mesh<"dp=2">} {
func.func @update(%a: tensor<16xf32>, %b: tensor<4xf32>, %c: tensor<16xf32>, %l: tensor<f32>, %lr: tensor<f32>)
    -> (tensor<16xf32>, tensor<4xf32>, tensor<16xf32>, tensor<f32>) {
  %0 = dist.all_reduce %a {over = #dist.axes<"{dp}">, reduce = "sum", reason = "why1", bytes_received = 64 : i64, nn.name = "fc1.grad"} : (tensor<16xf32>) -> tensor<16xf32> loc("model.cc":3:0)
  %1 = nn.mul %0, %lr : (tensor<16xf32>, tensor<f32>) -> tensor<16xf32>
  %2 = dist.all_reduce %b {over = #dist.axes<"{dp}">, reduce = "sum", reason = "why2", bytes_received = 32 : i64, nn.name = "fc1.bias.grad"} : (tensor<4xf32>) -> tensor<4xf32> loc("model.cc":4:0)
  %3 = nn.mul %2, %lr : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %4 = dist.all_reduce %c {over = #dist.axes<"{dp}">, reduce = "sum", reason = "why3", bytes_received = 200 : i64, nn.name = "fc2.grad"} : (tensor<16xf32>) -> tensor<16xf32> loc("model.cc":4:0)
  %5 = nn.mul %4, %lr : (tensor<16xf32>, tensor<f32>) -> tensor<16xf32>
  %6 = dist.all_reduce %l {over = #dist.axes<"{dp}">, reduce = "sum", reason = "why4", bytes_received = 4 : i64, nn.name = "loss"} : (tensor<f32>) -> tensor<f32> loc("model.cc":4:0)
  return %1, %3, %5, %6 : tensor<16xf32>, tensor<4xf32>, tensor<16xf32>, tensor<f32>
}
}

// -----

// Gathers of what leaves the function join where the last operand is made, whose room is free then. What the function
// alone reads is gathered where it is read: it would take its room longer. Along another dimension nothing joins.
// CHECK-LABEL: func.func @gathers
// CHECK: dist.all_gather %arg2
// CHECK: nn.exp
// CHECK: nn.neg
// CHECK: %[[G:.*]]:2 = dist.all_gather %arg0, %{{[0-9]+}}
// CHECK-SAME: bytes_received = 48 : i64
// CHECK-SAME: nn.name = "bucket of 2"
// CHECK: dist.all_gather %arg0 {{.*}}dim = 1
// CHECK: return %[[G]]#0, %[[G]]#1
module attributes {dist.mesh = #dist.mesh<"dp=2">} {
func.func @gathers(%a: tensor<4x4xf32>, %b: tensor<2x2xf32>, %c: tensor<2x2xf32>)
    -> (tensor<8x4xf32>, tensor<4x2xf32>, tensor<4x8xf32>, tensor<4x2xf32>) {
  %0 = dist.all_gather %a {over = #dist.axes<"{dp}">, dim = 0, bytes_received = 32 : i64, nn.name = "w"} : (tensor<4x4xf32>) -> tensor<8x4xf32>
  %1 = dist.all_gather %c {over = #dist.axes<"{dp}">, dim = 0} : (tensor<2x2xf32>) -> tensor<4x2xf32>
  %2 = nn.exp %1 : (tensor<4x2xf32>) -> tensor<4x2xf32>
  %3 = nn.neg %b : (tensor<2x2xf32>) -> tensor<2x2xf32>
  %4 = dist.all_gather %3 {over = #dist.axes<"{dp}">, dim = 0, bytes_received = 16 : i64, nn.name = "v"} : (tensor<2x2xf32>) -> tensor<4x2xf32>
  %5 = dist.all_gather %a {over = #dist.axes<"{dp}">, dim = 1} : (tensor<4x4xf32>) -> tensor<4x8xf32>
  return %0, %4, %5, %2 : tensor<8x4xf32>, tensor<4x2xf32>, tensor<4x8xf32>, tensor<4x2xf32>
}
}

// -----

// Computed operands: a bucket stands after the last of them. Another group, reduction or element type does not join.
// CHECK-LABEL: func.func @keys
// CHECK: nn.exp
// CHECK: nn.neg
// CHECK: dist.all_reduce %{{[0-9]+}}, %{{[0-9]+}} {{.*}}over = #dist.axes<"{tp}">{{.*}}reduce = "sum"
// CHECK: nn.tanh
// CHECK: dist.all_reduce %arg0 {{.*}}reduce = "max"
// CHECK: dist.all_reduce %arg0 {{.*}}over = #dist.axes<"{dp}">
// CHECK: dist.all_reduce %arg1 {{.*}}4xf64
module attributes {dist.mesh = #dist.mesh<"dp=2,tp=2">} {
func.func @keys(%a: tensor<4xf32>, %b: tensor<4xf64>)
    -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf64>) {
  %0 = nn.exp %a : (tensor<4xf32>) -> tensor<4xf32>
  %1 = dist.all_reduce %0 {over = #dist.axes<"{tp}">, reduce = "sum"} : (tensor<4xf32>) -> tensor<4xf32>
  %2 = nn.neg %a : (tensor<4xf32>) -> tensor<4xf32>
  %3 = dist.all_reduce %2 {over = #dist.axes<"{tp}">, reduce = "sum"} : (tensor<4xf32>) -> tensor<4xf32>
  %4 = nn.tanh %3 : (tensor<4xf32>) -> tensor<4xf32>
  %5 = dist.all_reduce %a {over = #dist.axes<"{tp}">, reduce = "max"} : (tensor<4xf32>) -> tensor<4xf32>
  %6 = dist.all_reduce %a {over = #dist.axes<"{dp}">, reduce = "sum"} : (tensor<4xf32>) -> tensor<4xf32>
  %7 = dist.all_reduce %b {over = #dist.axes<"{tp}">, reduce = "sum"} : (tensor<4xf64>) -> tensor<4xf64>
  return %1, %4, %5, %6, %7 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf64>
}
}

// -----

// What depends on a member, directly or not, cannot join it.
// CHECK-LABEL: func.func @chain
// CHECK: dist.all_reduce %arg0 {{.*}} : 4xf32
// CHECK: nn.exp
// CHECK: dist.all_reduce %{{[0-9]+}} {{.*}} : 4xf32
// CHECK: dist.all_reduce %{{[0-9]+}} {{.*}} : 4xf32
module attributes {dist.mesh = #dist.mesh<"dp=2">} {
func.func @chain(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = dist.all_reduce %a {over = #dist.axes<"{dp}">, reduce = "sum"} : (tensor<4xf32>) -> tensor<4xf32>
  %1 = nn.exp %0 : (tensor<4xf32>) -> tensor<4xf32>
  %2 = dist.all_reduce %1 {over = #dist.axes<"{dp}">, reduce = "sum"} : (tensor<4xf32>) -> tensor<4xf32>
  %3 = dist.all_reduce %2 {over = #dist.axes<"{dp}">, reduce = "sum"} : (tensor<4xf32>) -> tensor<4xf32>
  return %3 : tensor<4xf32>
}
}

// -----

// Two intervals that do not meet: %0 is read before %2's operand exists.
// CHECK-LABEL: func.func @apart
// CHECK: dist.all_reduce %arg0
// CHECK: nn.exp
// CHECK: nn.neg
// CHECK: dist.all_reduce %{{[0-9]+}} {
module attributes {dist.mesh = #dist.mesh<"dp=2">} {
func.func @apart(%a: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %0 = dist.all_reduce %a {over = #dist.axes<"{dp}">, reduce = "sum"} : (tensor<4xf32>) -> tensor<4xf32>
  %1 = nn.exp %0 : (tensor<4xf32>) -> tensor<4xf32>
  %2 = nn.neg %a : (tensor<4xf32>) -> tensor<4xf32>
  %3 = dist.all_reduce %2 {over = #dist.axes<"{dp}">, reduce = "sum"} : (tensor<4xf32>) -> tensor<4xf32>
  return %1, %3 : tensor<4xf32>, tensor<4xf32>
}
}

// -----

// A bucket over one axis feeds a bucket over another (a norm over both axes of a mesh).
// CHECK-LABEL: func.func @twoAxes
// CHECK: %[[D:.*]]:2 = dist.all_reduce %arg0, %arg1 {{.*}}over = #dist.axes<"{tp}">
// CHECK: %[[T:.*]]:2 = dist.all_reduce %[[D]]#0, %[[D]]#1 {{.*}}over = #dist.axes<"{dp}">
// CHECK-NOT: dist.all_reduce
module attributes {dist.mesh = #dist.mesh<"dp=2,tp=2">} {
func.func @twoAxes(%a: tensor<f32>, %b: tensor<f32>) -> (tensor<f32>, tensor<f32>) {
  %0 = dist.all_reduce %a {over = #dist.axes<"{tp}">, reduce = "sum"} : (tensor<f32>) -> tensor<f32>
  %1 = dist.all_reduce %0 {over = #dist.axes<"{dp}">, reduce = "sum"} : (tensor<f32>) -> tensor<f32>
  %2 = dist.all_reduce %b {over = #dist.axes<"{tp}">, reduce = "sum"} : (tensor<f32>) -> tensor<f32>
  %3 = dist.all_reduce %2 {over = #dist.axes<"{dp}">, reduce = "sum"} : (tensor<f32>) -> tensor<f32>
  return %1, %3 : tensor<f32>, tensor<f32>
}
}

// -----

// ZeRO-2 of one micro-batch: what is made here and only returned is scattered soon, in buckets of a quarter of all.
// CHECK-LABEL: func.func @scatterSoon
// CHECK: dist.reduce_scatter %{{[0-9]+}} {dim = 0
// CHECK: dist.reduce_scatter %{{[0-9]+}} {dim = 0
module attributes {dist.mesh = #dist.mesh<"dp=2">} {
func.func @scatterSoon(%a: tensor<4xf32>, %b: tensor<4xf32>) -> (tensor<2xf32>, tensor<2xf32>) {
  %0 = nn.neg %a : (tensor<4xf32>) -> tensor<4xf32>
  %1 = dist.reduce_scatter %0 {over = #dist.axes<"{dp}">, dim = 0 : i64, reduce = "sum"} : (tensor<4xf32>) -> tensor<2xf32>
  %2 = nn.neg %b : (tensor<4xf32>) -> tensor<4xf32>
  %3 = dist.reduce_scatter %2 {over = #dist.axes<"{dp}">, dim = 0 : i64, reduce = "sum"} : (tensor<4xf32>) -> tensor<2xf32>
  return %1, %3 : tensor<2xf32>, tensor<2xf32>
}
}

// -----

// ZeRO: reduce_scatters along the same dimension.
// CHECK-LABEL: func.func @scatter
// CHECK: dist.reduce_scatter %arg1 {dim = 1 : i64
// CHECK: dist.reduce_scatter %arg0, %arg1 {{.*}}dim = 0 : i64{{.*}}: (4xf32, 8x2xf32) -> (2xf32, 4x2xf32)
module attributes {dist.mesh = #dist.mesh<"dp=2">} {
func.func @scatter(%a: tensor<4xf32>, %b: tensor<8x2xf32>) -> (tensor<2xf32>, tensor<4x2xf32>, tensor<8x1xf32>) {
  %0 = dist.reduce_scatter %a {over = #dist.axes<"{dp}">, dim = 0 : i64, reduce = "sum"} : (tensor<4xf32>) -> tensor<2xf32>
  %1 = dist.reduce_scatter %b {over = #dist.axes<"{dp}">, dim = 0 : i64, reduce = "sum"} : (tensor<8x2xf32>) -> tensor<4x2xf32>
  %2 = dist.reduce_scatter %b {over = #dist.axes<"{dp}">, dim = 1 : i64, reduce = "sum"} : (tensor<8x2xf32>) -> tensor<8x1xf32>
  return %0, %1, %2 : tensor<2xf32>, tensor<4x2xf32>, tensor<8x1xf32>
}
}
