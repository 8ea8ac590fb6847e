// RUN: weft-opt %s -split-input-file -verify-diagnostics | weft-opt -split-input-file | FileCheck %s

// CHECK-LABEL: @attention
func.func @attention(%q: tensor<1x2x3x4xf32>, %k: tensor<1x2x5x4xf32>) {
  // CHECK: nn.attention {{.*}} {causal = false, scale = 5.000000e-01 : f64}
  %o, %lse = nn.attention %q, %k, %k {causal = false, scale = 0.5} : (tensor<1x2x3x4xf32>, tensor<1x2x5x4xf32>, tensor<1x2x5x4xf32>) -> (tensor<1x2x3x4xf32>, tensor<1x2x3xf32>)
  // CHECK: nn.attention_grad
  %dq, %dk, %dv = nn.attention_grad %q, %k, %k, %o, %lse, %o {causal = false, scale = 0.5} : (tensor<1x2x3x4xf32>, tensor<1x2x5x4xf32>, tensor<1x2x5x4xf32>, tensor<1x2x3x4xf32>, tensor<1x2x3xf32>, tensor<1x2x3x4xf32>) -> (tensor<1x2x3x4xf32>, tensor<1x2x5x4xf32>, tensor<1x2x5x4xf32>)
  return
}

// -----

func.func @heads(%q: tensor<1x2x3x4xf32>, %k: tensor<1x3x3x4xf32>) {
  // expected-error @+2 {{nn.attention (2): q is 1x2x3x4xf32 and k is 1x3x3x4xf32; they may differ only in dimension 2, and in dimension 1 where the heads of k divide those of q}}
  // expected-error @+1 {{failed to infer returned types}}
  %o, %lse = nn.attention %q, %k, %k {causal = true, scale = 0.5} : (tensor<1x2x3x4xf32>, tensor<1x3x3x4xf32>, tensor<1x3x3x4xf32>) -> (tensor<1x2x3x4xf32>, tensor<1x2x3xf32>)
  return
}

// -----

func.func @rank(%q: tensor<2x3x4xf32>) {
  // expected-error @+2 {{nn.attention (1): q, k, v are 2x3x4xf32, 2x3x4xf32, 2x3x4xf32; each needs four dimensions [B, H, T, D]}}
  // expected-error @+1 {{failed to infer returned types}}
  %o, %lse = nn.attention %q, %q, %q {causal = true, scale = 0.5} : (tensor<2x3x4xf32>, tensor<2x3x4xf32>, tensor<2x3x4xf32>) -> (tensor<2x3x4xf32>, tensor<2x3xf32>)
  return
}

// -----

// CHECK-LABEL: @shared
func.func @shared(%q: tensor<1x4x3x4xf32>, %k: tensor<1x2x5x4xf32>, %b: tensor<1x4x1x5xf32>) {
  // CHECK: nn.attention %arg0, %arg1, %arg1, %arg2 {{.*}} -> (1x4x3x4xf32, 1x4x3xf32)
  %o, %lse = nn.attention %q, %k, %k, %b {causal = false, scale = 0.5} : (tensor<1x4x3x4xf32>, tensor<1x2x5x4xf32>, tensor<1x2x5x4xf32>, tensor<1x4x1x5xf32>) -> (tensor<1x4x3x4xf32>, tensor<1x4x3xf32>)
  // CHECK: nn.attention_grad {{.*}}bias_gradient = true{{.*}} -> (1x4x3x4xf32, 1x2x5x4xf32, 1x2x5x4xf32, 1x4x1x5xf32)
  %dq, %dk, %dv, %db = nn.attention_grad %q, %k, %k, %o, %lse, %o, %b {bias_gradient = true, causal = false, scale = 0.5} : (tensor<1x4x3x4xf32>, tensor<1x2x5x4xf32>, tensor<1x2x5x4xf32>, tensor<1x4x3x4xf32>, tensor<1x4x3xf32>, tensor<1x4x3x4xf32>, tensor<1x4x1x5xf32>) -> (tensor<1x4x3x4xf32>, tensor<1x2x5x4xf32>, tensor<1x2x5x4xf32>, tensor<1x4x1x5xf32>)
  return
}

// -----

func.func @bias(%q: tensor<1x2x3x4xf32>, %b: tensor<1x2x3x1xf32>) {
  // expected-error @+2 {{nn.attention (5): bias is 1x2x3x1xf32; it must have q's element type and broadcast against the scores [1, 2, 3, 3], with a size for each key}}
  // expected-error @+1 {{failed to infer returned types}}
  %o, %lse = nn.attention %q, %q, %q, %b {causal = true, scale = 0.5} : (tensor<1x2x3x4xf32>, tensor<1x2x3x4xf32>, tensor<1x2x3x4xf32>, tensor<1x2x3x1xf32>) -> (tensor<1x2x3x4xf32>, tensor<1x2x3xf32>)
  return
}

// -----

func.func @no_bias(%q: tensor<1x2x3x4xf32>, %l: tensor<1x2x3xf32>) {
  // expected-error @+2 {{nn.attention_grad (6): bias_gradient is true, but there is no bias}}
  // expected-error @+1 {{failed to infer returned types}}
  %dq, %dk, %dv = nn.attention_grad %q, %q, %q, %q, %l, %q {bias_gradient = true, causal = false, scale = 0.5} : (tensor<1x2x3x4xf32>, tensor<1x2x3x4xf32>, tensor<1x2x3x4xf32>, tensor<1x2x3x4xf32>, tensor<1x2x3xf32>, tensor<1x2x3x4xf32>) -> (tensor<1x2x3x4xf32>, tensor<1x2x3x4xf32>, tensor<1x2x3x4xf32>)
  return
}

// -----

// CHECK-LABEL: @rotary
func.func @rotary(%x: tensor<2x3x4xf32>, %t: tensor<3x2xf32>) {
  // CHECK: nn.rotary {{.*}} {interleaved = true} {{.*}} -> 2x3x4xf32
  %0 = nn.rotary %x, %t, %t {interleaved = true} : (tensor<2x3x4xf32>, tensor<3x2xf32>, tensor<3x2xf32>) -> tensor<2x3x4xf32>
  return
}

// -----

func.func @odd(%x: tensor<2x3xf32>, %t: tensor<2x1xf32>) {
  // expected-error @+2 {{nn.rotary (1): x is 2x3xf32; it needs rows of pairs, [..., T, D] with an even D}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = nn.rotary %x, %t, %t : (tensor<2x3xf32>, tensor<2x1xf32>, tensor<2x1xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @table(%x: tensor<2x3x4xf32>, %t: tensor<2x2xf32>) {
  // expected-error @+2 {{nn.rotary (2): cos is 2x2xf32; beside x, which is 2x3x4xf32, it must be [3, 2] of the same element type}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = nn.rotary %x, %t, %t : (tensor<2x3x4xf32>, tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x3x4xf32>
  return
}
