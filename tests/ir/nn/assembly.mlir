// RUN: weft-opt %s -split-input-file -verify-diagnostics | FileCheck %s
// The text of operators (ir/dist/assembly.h): types once where they are equal, defaults left out; MLIR's form is read too.

// CHECK-LABEL: func.func @forms
func.func @forms(%a: tensor<8x4xf32, #dist.layout<"[{dp},{}]">>, %b: tensor<4x2xf32>, %c: tensor<f32>) {
  // CHECK: nn.tanh %arg0 : 8x4xf32 "[{dp},{}]"
  %0 = nn.tanh %a : (tensor<8x4xf32, #dist.layout<"[{dp},{}]">>) -> tensor<8x4xf32, #dist.layout<"[{dp},{}]">>
  // CHECK: nn.tanh %0 : 8x4xf32 "[{dp},{}]"
  %1 = nn.tanh %0 : 8x4xf32 "[{dp},{}]"
  // CHECK: nn.add %0, %1 : 8x4xf32 "[{dp},{}]"
  %2 = nn.add %0, %1 : 8x4xf32 "[{dp},{}]"
  // CHECK: nn.matmul %0, %arg1 : (8x4xf32 "[{dp},{}]", 4x2xf32) -> 8x2xf32 "[{dp},{}]"
  %3 = nn.matmul %0, %b {transpose_a = false} : (8x4xf32 "[{dp},{}]", tensor<4x2xf32>) -> 8x2xf32 "[{dp},{}]"
  // CHECK: nn.neg %arg2 : f32
  %4 = nn.neg %c : (f32) -> f32
  // CHECK: nn.fill {value = 1.000000e+00 : f64} : f32
  %5 = nn.fill {value = 1.0 : f64} : () -> tensor<f32>
  // CHECK: nn.mul %4, %5 : f32
  %6 = nn.mul %4, %5 : (f32, f32) -> (f32)
  // CHECK: dist.send %6 {channel = 0 : i64, submesh = 1 : i64} : (f32) -> ()
  dist.send %6 {channel = 0 : i64, submesh = 1 : i64} : (f32) -> ()
  return
}

// -----

func.func @count(%a: tensor<4xf32>) {
  // expected-error @below {{operands present, but expected}}
  %0 = nn.tanh %a : () -> 4xf32
  return
}

// -----

func.func @unknown_element(%a: tensor<4xf32>) {
  // expected-error @below {{expected non-function type}}
  %0 = nn.tanh %a : 4x
  return
}

// -----

func.func @layout(%a: tensor<4xf32>) {
  // expected-error @below {{layout}}
  %0 = nn.tanh %a : 4xf32 "[{dp"
  return
}

// -----

func.func @dimensions(%a: tensor<4xf32>) {
  // expected-error @below {{dimensions}}
  %0 = nn.tanh %a : 4xf32 "[{dp},{}]"
  return
}

// -----

func.func @attribute(%a: tensor<4x4xf32>) {
  // expected-error @below {{transpose_a}}
  %0 = nn.matmul %a, %a {transpose_a = 3 : i64} : 4x4xf32
  return
}
