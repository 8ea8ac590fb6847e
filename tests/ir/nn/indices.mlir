// RUN: weft-opt %s -split-input-file -verify-diagnostics | weft-opt -split-input-file | FileCheck %s

// CHECK-LABEL: @indices
func.func @indices(%table: tensor<10x4xf32>, %ids: tensor<2x3xi32>, %x: tensor<2x3x10xf32>) {
  // CHECK: nn.embedding {{.*}} {rows = 10 : i64}
  %0 = nn.embedding %table, %ids {rows = 10} : (tensor<10x4xf32>, tensor<2x3xi32>) -> tensor<2x3x4xf32>
  // CHECK: nn.embedding_grad
  %1 = nn.embedding_grad %ids, %0 {rows = 10} : (tensor<2x3xi32>, tensor<2x3x4xf32>) -> tensor<10x4xf32>
  // CHECK: nn.softmax_cross_entropy {{.*}} {ignore_index = -100 : i64, rows = 10 : i64}
  %l, %lse = nn.softmax_cross_entropy %x, %ids {rows = 10, ignore_index = -100} : (tensor<2x3x10xf32>, tensor<2x3xi32>) -> (tensor<2x3xf32>, tensor<2x3xf32>)
  // CHECK: nn.softmax_cross_entropy_grad
  %2 = nn.softmax_cross_entropy_grad %x, %ids, %lse, %l {ignore_index = -100} : (tensor<2x3x10xf32>, tensor<2x3xi32>, tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3x10xf32>
  // CHECK: nn.pick
  %3 = nn.pick %x, %ids : (tensor<2x3x10xf32>, tensor<2x3xi32>) -> tensor<2x3xf32>
  // CHECK: nn.pick_grad
  %4 = nn.pick_grad %ids, %3 : (tensor<2x3xi32>, tensor<2x3xf32>) -> tensor<2x3x10xf32>
  return
}

// Local state: a rank holds 5 of 10 rows.
// CHECK-LABEL: @local
func.func @local(%table: tensor<5x4xf32>, %ids: tensor<2x3xi32>) {
  // CHECK: nn.embedding
  %0 = nn.embedding %table, %ids {rows = 10} : (tensor<5x4xf32>, tensor<2x3xi32>) -> tensor<2x3x4xf32>
  return
}

// -----

func.func @table(%table: tensor<10xf32>, %ids: tensor<2xi32>) {
  // expected-error @+2 {{nn.embedding (1): the table is 10xf32; it must have two dimensions, rows and columns}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = nn.embedding %table, %ids {rows = 10} : (tensor<10xf32>, tensor<2xi32>) -> tensor<2xf32>
  return
}

// -----

func.func @labels(%x: tensor<2x3x10xf32>, %ids: tensor<3xi32>) {
  // expected-error @+2 {{nn.softmax_cross_entropy (1): labels is 3xi32; it must have the leading dimensions of 2x3x10xf32}}
  // expected-error @+1 {{failed to infer returned types}}
  %l, %lse = nn.softmax_cross_entropy %x, %ids {rows = 10, ignore_index = -100} : (tensor<2x3x10xf32>, tensor<3xi32>) -> (tensor<3xf32>, tensor<3xf32>)
  return
}

// -----

func.func @embedding_grad(%ids: tensor<2xi32>, %dy: tensor<2x4xf32>) {
  // expected-error @+1 {{nn.embedding_grad (2): dy is 2x4xf32; it must have the dimensions of ids 2xi32, then the columns of the result 10x5xf32}}
  %0 = nn.embedding_grad %ids, %dy {rows = 10} : (tensor<2xi32>, tensor<2x4xf32>) -> tensor<10x5xf32>
  return
}
