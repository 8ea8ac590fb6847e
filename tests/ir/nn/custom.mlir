// RUN: weft-opt %s -split-input-file -verify-diagnostics | weft-opt -split-input-file | FileCheck %s

// CHECK-LABEL: @custom
func.func @custom(%x: tensor<2x3xf32>, %s: tensor<3xf32>) {
  // CHECK: nn.custom %arg0, %arg1 {factors = "r c, c -> r c", kind = "prelu", linear = [array<i64: 0>, array<i64: 0, 1>], power = 3 : i64, work = 2.000000e+00 : f64} : (2x3xf32, 3xf32) -> 2x3xf32
  %y = nn.custom %x, %s {kind = "prelu", factors = "r c, c -> r c", linear = [array<i64: 0>, array<i64: 0, 1>], work = 2.0 : f64, power = 3 : i64} : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @kind(%x: tensor<2x3xf32>) {
  // expected-error @+1 {{nn.custom (1): kind is "" and factors "r c -> r c"; neither may be empty}}
  %y = nn.custom %x {kind = "", factors = "r c -> r c", linear = [], work = 1.0 : f64} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @linear(%x: tensor<2x3xf32>) {
  // expected-error @+1 {{nn.custom (2): linear holds lists of operands, from 0 to 1 less one}}
  %y = nn.custom %x {kind = "own", factors = "r c -> r c", linear = [array<i64: 1>], work = 1.0 : f64} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @work(%x: tensor<2x3xf32>) {
  // expected-error @+1 {{nn.custom (3): work is negative}}
  %y = nn.custom %x {kind = "own", factors = "r c -> r c", linear = [], work = -1.0 : f64} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  return
}
