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

func.func @heads(%q: tensor<1x2x3x4xf32>, %k: tensor<1x1x3x4xf32>) {
  // expected-error @+2 {{nn.attention (2): q is 1x2x3x4xf32 and k is 1x1x3x4xf32; they may differ only in dimension 2}}
  // expected-error @+1 {{failed to infer returned types}}
  %o, %lse = nn.attention %q, %k, %k {causal = true, scale = 0.5} : (tensor<1x2x3x4xf32>, tensor<1x1x3x4xf32>, tensor<1x1x3x4xf32>) -> (tensor<1x2x3x4xf32>, tensor<1x2x3xf32>)
  return
}

// -----

func.func @rank(%q: tensor<2x3x4xf32>) {
  // expected-error @+2 {{nn.attention (1): q, k, v are 2x3x4xf32, 2x3x4xf32, 2x3x4xf32; each needs four dimensions [B, H, T, D]}}
  // expected-error @+1 {{failed to infer returned types}}
  %o, %lse = nn.attention %q, %q, %q {causal = true, scale = 0.5} : (tensor<2x3x4xf32>, tensor<2x3x4xf32>, tensor<2x3x4xf32>) -> (tensor<2x3x4xf32>, tensor<2x3xf32>)
  return
}
