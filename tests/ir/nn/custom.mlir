// RUN: weft-opt %s -split-input-file -verify-diagnostics | weft-opt -split-input-file | FileCheck %s

// CHECK-LABEL: @custom
func.func @custom(%x: tensor<2x3xf32>, %s: tensor<3xf32>) {
  // CHECK: nn.custom %arg0, %arg1 {factors = "r c, c -> r c", kind = "prelu", linear = [array<i64: 0>, array<i64: 0, 1>], power = 3 : i64, work = 2.000000e+00 : f64} : (2x3xf32, 3xf32) -> 2x3xf32
  %y = nn.custom %x, %s {kind = "prelu", factors = "r c, c -> r c", linear = [array<i64: 0>, array<i64: 0, 1>], work = 2.0 : f64, power = 3 : i64} : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<2x3xf32>
  return
}

// CHECK-LABEL: @facts
func.func @facts(%x: tensor<2x3xf32>) {
  // CHECK: nn.custom %arg0 {factors = "r c+ -> r", kind = "own", linear = [], origins = array<i64: 0, 0, 1, 1, 0, 0>, pad_fill = [unit], reduce = ["max"], work = 1.000000e+00 : f64} : (2x3xf32) -> 2xf32
  %y = nn.custom %x {kind = "own", factors = "r c+ -> r", linear = [], work = 1.0 : f64, origins = array<i64: 0, 0, 1, 1, 0, 0>, pad_fill = [unit], reduce = ["max"]} : (tensor<2x3xf32>) -> tensor<2xf32>
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
  // expected-error @+1 {{nn.custom (3): work is -1.000000; it is from 0 to 2^40}}
  %y = nn.custom %x {kind = "own", factors = "r c -> r c", linear = [], work = -1.0 : f64} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @origins(%x: tensor<2x3xf32>) {
  // expected-error @+1 {{nn.custom (4): origins holds three numbers for each: 0 for an operand or 1 for a result, which one, and a dimension that it has}}
  %y = nn.custom %x {kind = "own", factors = "r c -> r c", linear = [], work = 1.0 : f64, origins = array<i64: 0, 0, 2>} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @origins_of_two(%x: tensor<2x3xf32>) {
  // expected-error @+1 {{nn.custom (4): origins holds three numbers}}
  %y = nn.custom %x {kind = "own", factors = "r c -> r c", linear = [], work = 1.0 : f64, origins = array<i64: 0, 0>} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @pads(%x: tensor<2x3xf32>) {
  // expected-error @+1 {{nn.custom (5): pad_fill holds a number, or unit, for each of at most 1 operands}}
  %y = nn.custom %x {kind = "own", factors = "r c -> r c", linear = [], work = 1.0 : f64, pad_fill = [0.0, unit]} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @reductions(%x: tensor<2x3xf32>) {
  // expected-error @+1 {{nn.custom (6): reduce holds "sum", "max" or "min" for each of at most 1 results}}
  %y = nn.custom %x {kind = "own", factors = "r c -> r c", linear = [], work = 1.0 : f64, reduce = ["product"]} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @gradient(%x: tensor<2x3xf32>) {
  // expected-error @+1 {{nn.custom (7): gradient names a function, gradient_of the operands whose gradients it returns, from 0 to 1 less one}}
  %y = nn.custom %x {kind = "own", factors = "r c -> r c", linear = [], work = 1.0 : f64, gradient = @g} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @gradient_of(%x: tensor<2x3xf32>) {
  // expected-error @+1 {{nn.custom (7): gradient names a function}}
  %y = nn.custom %x {kind = "own", factors = "r c -> r c", linear = [], work = 1.0 : f64, gradient = @g, gradient_of = array<i64: 1>} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @linear_in_nothing(%x: tensor<2x3xf32>) {
  // expected-error @+1 {{nn.custom (2): linear holds lists of operands, from 0 to 1 less one; no list is empty}}
  %y = nn.custom %x {kind = "own", factors = "r c -> r c", linear = [array<i64>], work = 1.0 : f64} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  return
}
