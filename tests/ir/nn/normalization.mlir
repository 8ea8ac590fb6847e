// RUN: weft-opt %s -split-input-file -verify-diagnostics | weft-opt -split-input-file | FileCheck %s

// CHECK-LABEL: @normalization
func.func @normalization(%x: tensor<2x3x4xf32>, %g: tensor<4xf32>) {
  // CHECK: nn.softmax
  %0 = nn.softmax %x : (tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
  // CHECK: nn.softmax_grad
  %1 = nn.softmax_grad %0, %x : (tensor<2x3x4xf32>, tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
  // CHECK: nn.layer_norm {{.*}} {epsilon = 2.500000e-01 : f64}
  %y, %m, %r = nn.layer_norm %x, %g, %g {epsilon = 0.25} : (tensor<2x3x4xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<2x3x4xf32>, tensor<2x3xf32>, tensor<2x3xf32>)
  // CHECK: nn.layer_norm_grad
  %dx, %dg, %db = nn.layer_norm_grad %x, %g, %m, %r, %y : (tensor<2x3x4xf32>, tensor<4xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3x4xf32>) -> (tensor<2x3x4xf32>, tensor<4xf32>, tensor<4xf32>)
  return
}

// CHECK-LABEL: @batch_norm
func.func @batch_norm(%x: tensor<6x4x5xf32>, %g: tensor<4xf32>, %s: tensor<3x4xf32>) {
  // CHECK: nn.batch_norm {{.*}} {momentum = 2.500000e-01 : f64}
  %y:6 = nn.batch_norm %x, %g, %g, %g, %g {momentum = 0.25} : (tensor<6x4x5xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<6x4x5xf32>, tensor<1x4xf32>, tensor<1x4xf32>, tensor<1x4xf32>, tensor<4xf32>, tensor<4xf32>)
  // CHECK: nn.batch_norm_grad
  %dx, %dg, %db = nn.batch_norm_grad %x, %g, %y#1, %y#2, %y#3, %x : (tensor<6x4x5xf32>, tensor<4xf32>, tensor<1x4xf32>, tensor<1x4xf32>, tensor<1x4xf32>, tensor<6x4x5xf32>) -> (tensor<6x4x5xf32>, tensor<4xf32>, tensor<4xf32>)
  // CHECK: nn.channel_sum
  %0 = nn.channel_sum %x : (tensor<6x4x5xf32>) -> tensor<3x4xf32>
  // CHECK: nn.channel_dot
  %1 = nn.channel_dot %x, %x, %s : (tensor<6x4x5xf32>, tensor<6x4x5xf32>, tensor<3x4xf32>) -> tensor<3x4xf32>
  // CHECK: nn.channel_affine
  %2 = nn.channel_affine %x, %s, %x, %0, %1 : (tensor<6x4x5xf32>, tensor<3x4xf32>, tensor<6x4x5xf32>, tensor<3x4xf32>, tensor<3x4xf32>) -> tensor<6x4x5xf32>
  return
}

// -----

func.func @statistics(%x: tensor<6x4xf32>, %g: tensor<4xf32>) {
  // expected-error @+2 {{nn.batch_norm (3): 4 operands; x, gamma, beta, or these and the running mean and variance}}
  // expected-error @+1 {{failed to infer returned types}}
  %y:4 = nn.batch_norm %x, %g, %g, %g : (tensor<6x4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<6x4xf32>, tensor<1x4xf32>, tensor<1x4xf32>, tensor<1x4xf32>)
  return
}

// -----

func.func @channels(%x: tensor<6x4xf32>, %g: tensor<6xf32>) {
  // expected-error @+2 {{nn.batch_norm (2): x is 6x4xf32, a value for each channel is 6xf32; it must be [4] of the same type}}
  // expected-error @+1 {{failed to infer returned types}}
  %y:4 = nn.batch_norm %x, %g, %g : (tensor<6x4xf32>, tensor<6xf32>, tensor<6xf32>) -> (tensor<6x4xf32>, tensor<1x4xf32>, tensor<1x4xf32>, tensor<1x4xf32>)
  return
}

// -----

func.func @sum(%x: tensor<6x4xf32>) {
  // expected-error @+1 {{nn.channel_sum (2): operand 6x4xf32, result 3x6xf32; they must be [n, c, ...] and [micro-batches, c]}}
  %y = nn.channel_sum %x : (tensor<6x4xf32>) -> tensor<3x6xf32>
  return
}

// -----

func.func @terms(%x: tensor<6x4xf32>, %s: tensor<3x4xf32>, %t: tensor<3x5xf32>) {
  // expected-error @+2 {{nn.channel_affine (3): x is 6x4xf32, a statistic is 3x5xf32; it must be [micro-batches, 4] of the same type}}
  // expected-error @+1 {{failed to infer returned types}}
  %y = nn.channel_affine %x, %s, %t : (tensor<6x4xf32>, tensor<3x4xf32>, tensor<3x5xf32>) -> tensor<6x4xf32>
  return
}

// -----

func.func @scalar(%x: tensor<f32>) {
  // expected-error @+2 {{nn.softmax (1): f32 has no last dimension}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = nn.softmax %x : (tensor<f32>) -> tensor<f32>
  return
}

// -----

func.func @gamma(%x: tensor<2x4xf32>, %g: tensor<4xf32>, %b: tensor<2xf32>) {
  // expected-error @+2 {{nn.layer_norm (2): beta is 2xf32; it must have the last dimension of 2x4xf32}}
  // expected-error @+1 {{failed to infer returned types}}
  %y, %m, %r = nn.layer_norm %x, %g, %b : (tensor<2x4xf32>, tensor<4xf32>, tensor<2xf32>) -> (tensor<2x4xf32>, tensor<2xf32>, tensor<2xf32>)
  return
}

// -----

func.func @mean(%x: tensor<2x4xf32>, %g: tensor<4xf32>, %m: tensor<4xf32>) {
  // expected-error @+2 {{nn.layer_norm_grad (4): mean is 4xf32; it must have the leading dimensions of 2x4xf32}}
  // expected-error @+1 {{failed to infer returned types}}
  %dx, %dg, %db = nn.layer_norm_grad %x, %g, %m, %m, %x : (tensor<2x4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<2x4xf32>) -> (tensor<2x4xf32>, tensor<4xf32>, tensor<4xf32>)
  return
}

// -----

// CHECK-LABEL: @rms
func.func @rms(%x: tensor<2x3x4xf32>, %g: tensor<4xf32>) {
  // CHECK: nn.rms_norm {{.*}} {epsilon = 2.500000e-01 : f64} {{.*}} -> (2x3x4xf32, 2x3xf32)
  %y, %r = nn.rms_norm %x, %g {epsilon = 0.25} : (tensor<2x3x4xf32>, tensor<4xf32>) -> (tensor<2x3x4xf32>, tensor<2x3xf32>)
  // CHECK: nn.rms_norm_grad
  %dx, %dg = nn.rms_norm_grad %x, %g, %r, %y : (tensor<2x3x4xf32>, tensor<4xf32>, tensor<2x3xf32>, tensor<2x3x4xf32>) -> (tensor<2x3x4xf32>, tensor<4xf32>)
  return
}

// -----

func.func @rms_gamma(%x: tensor<2x4xf32>, %g: tensor<2xf32>) {
  // expected-error @+2 {{nn.rms_norm (2): gamma is 2xf32; it must have the last dimension of 2x4xf32}}
  // expected-error @+1 {{failed to infer returned types}}
  %y, %r = nn.rms_norm %x, %g : (tensor<2x4xf32>, tensor<2xf32>) -> (tensor<2x4xf32>, tensor<2xf32>)
  return
}

// -----

func.func @rms_rstd(%x: tensor<2x4xf32>, %g: tensor<4xf32>) {
  // expected-error @+2 {{nn.rms_norm_grad (4): rstd is 4xf32; it must have the leading dimensions of 2x4xf32}}
  // expected-error @+1 {{failed to infer returned types}}
  %dx, %dg = nn.rms_norm_grad %x, %g, %g, %x : (tensor<2x4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<2x4xf32>) -> (tensor<2x4xf32>, tensor<4xf32>)
  return
}
