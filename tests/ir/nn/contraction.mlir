// RUN: weft-opt %s -split-input-file -verify-diagnostics | weft-opt -split-input-file | FileCheck %s

// CHECK-LABEL: @contractions
func.func @contractions(%a: tensor<5x2x3xf32>, %b: tensor<3x4xf32>, %c: tensor<5x4x3xf32>) {
  // CHECK: nn.matmul %{{[^{]*}} : (5x2x3xf32, 3x4xf32) -> 5x2x4xf32
  %0 = nn.matmul %a, %b : (tensor<5x2x3xf32>, tensor<3x4xf32>) -> tensor<5x2x4xf32>
  // CHECK: nn.matmul {{.*}} {transpose_b = true}
  %1 = nn.matmul %a, %c {transpose_b = true} : (tensor<5x2x3xf32>, tensor<5x4x3xf32>) -> tensor<5x2x4xf32>
  // CHECK: nn.contract {{.*}} {spec = "b m k, b n k -> n b m"}
  %2 = nn.contract %a, %c {spec = "b m k, b n k -> n b m"} : (tensor<5x2x3xf32>, tensor<5x4x3xf32>) -> tensor<4x5x2xf32>
  return
}

// -----

func.func @k(%a: tensor<2x3xf32>, %b: tensor<4x5xf32>) {
  // expected-error @+2 {{nn.matmul (3): k is 3 in a (2x3xf32) and 5 in b (4x5xf32 transposed)}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = nn.matmul %a, %b {transpose_b = true} : (tensor<2x3xf32>, tensor<4x5xf32>) -> tensor<2x4xf32>
  return
}

// -----

func.func @ranks(%a: tensor<2x3xf32>, %b: tensor<6x3x5xf32>) {
  // expected-error @+2 {{nn.matmul (2): a is 2x3xf32 and b is 6x3x5xf32; a needs at least 2 dimensions, b 2 or as many as a}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = nn.matmul %a, %b : (tensor<2x3xf32>, tensor<6x3x5xf32>) -> tensor<6x2x5xf32>
  return
}

// -----

func.func @batch(%a: tensor<2x2x3xf32>, %b: tensor<3x3x4xf32>) {
  // expected-error @+2 {{nn.matmul (4): batch dimensions differ: 2x2x3xf32 and 3x3x4xf32}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = nn.matmul %a, %b : (tensor<2x2x3xf32>, tensor<3x3x4xf32>) -> tensor<2x2x4xf32>
  return
}

// -----

func.func @spec(%a: tensor<2x3xf32>, %b: tensor<3x4xf32>) {
  // expected-error @+2 {{nn.contract (2): specification "m k, k n -> m": 'n' stands in one tensor only; sum over it first}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = nn.contract %a, %b {spec = "m k, k n -> m"} : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2xf32>
  return
}

// -----

func.func @letters(%a: tensor<2x3xf32>, %b: tensor<3x4xf32>) {
  // expected-error @+2 {{nn.contract (3): specification "m k j, k n -> m n j" gives 3 letters to 2x3xf32}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = nn.contract %a, %b {spec = "m k j, k n -> m n j"} : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4x1xf32>
  return
}

// -----

func.func @sizes(%a: tensor<2x3xf32>, %b: tensor<4x4xf32>) {
  // expected-error @+2 {{nn.contract (4): letter 'k' is 3 in 2x3xf32 and 4 in 4x4xf32}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = nn.contract %a, %b {spec = "m k, k n -> m n"} : (tensor<2x3xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
  return
}

// -----

func.func @no_spec(%a: tensor<2x3xf32>, %b: tensor<3x4xf32>) {
  // expected-error @+1 {{'nn.contract' op requires attribute 'spec'}}
  %0 = nn.contract %a, %b : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>
  return
}
