// RUN: weft-opt %s -split-input-file -verify-diagnostics | weft-opt -split-input-file | FileCheck %s

// CHECK-LABEL: @images
func.func @images(%x: tensor<2x3x5x6xf32>, %w: tensor<4x3x3x2xf32>) {
  // CHECK: nn.conv2d {{.*}} {paddings = array<i64: 1, 0>, strides = array<i64: 2, 1>}
  %0 = nn.conv2d %x, %w {strides = array<i64: 2, 1>, paddings = array<i64: 1, 0>} : (tensor<2x3x5x6xf32>, tensor<4x3x3x2xf32>) -> tensor<2x4x3x5xf32>
  // CHECK: nn.conv2d_input_grad
  %1 = nn.conv2d_input_grad %0, %w {strides = array<i64: 2, 1>, paddings = array<i64: 1, 0>} : (tensor<2x4x3x5xf32>, tensor<4x3x3x2xf32>) -> tensor<2x3x5x6xf32>
  // CHECK: nn.conv2d_weight_grad
  %2 = nn.conv2d_weight_grad %x, %0 {strides = array<i64: 2, 1>, paddings = array<i64: 1, 0>} : (tensor<2x3x5x6xf32>, tensor<2x4x3x5xf32>) -> tensor<4x3x3x2xf32>
  // CHECK: nn.max_pool2d {{.*}} {paddings = array<i64: 0, 0>, strides = array<i64: 2, 2>, window = array<i64: 2, 2>}
  %3 = nn.max_pool2d %x {window = array<i64: 2, 2>, strides = array<i64: 2, 2>, paddings = array<i64: 0, 0>} : (tensor<2x3x5x6xf32>) -> tensor<2x3x2x3xf32>
  // CHECK: nn.max_pool2d_grad
  %4 = nn.max_pool2d_grad %x, %3 {window = array<i64: 2, 2>, strides = array<i64: 2, 2>, paddings = array<i64: 0, 0>} : (tensor<2x3x5x6xf32>, tensor<2x3x2x3xf32>) -> tensor<2x3x5x6xf32>
  // CHECK: nn.avg_pool2d
  %5 = nn.avg_pool2d %x {window = array<i64: 2, 2>, strides = array<i64: 2, 2>, paddings = array<i64: 0, 0>} : (tensor<2x3x5x6xf32>) -> tensor<2x3x2x3xf32>
  // CHECK: nn.avg_pool2d_grad
  %6 = nn.avg_pool2d_grad %5 {window = array<i64: 2, 2>, strides = array<i64: 2, 2>, paddings = array<i64: 0, 0>} : (tensor<2x3x2x3xf32>) -> tensor<2x3x5x6xf32>
  return
}

// -----

func.func @elements(%x: tensor<2x3x5x6xf32>, %w: tensor<4x3x3x3xf64>) {
  // expected-error @+2 {{nn.conv2d (1): element types differ: 2x3x5x6xf32 and 4x3x3x3xf64; cast one of them}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = nn.conv2d %x, %w {strides = array<i64: 1, 1>, paddings = array<i64: 0, 0>} : (tensor<2x3x5x6xf32>, tensor<4x3x3x3xf64>) -> tensor<2x4x3x4xf32>
  return
}

// -----

func.func @dimensions(%x: tensor<3x5x6xf32>, %w: tensor<4x3x3x3xf32>) {
  // expected-error @+2 {{nn.conv2d (2): the image is 3x5x6xf32; it must have four dimensions or more}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = nn.conv2d %x, %w {strides = array<i64: 1, 1>, paddings = array<i64: 0, 0>} : (tensor<3x5x6xf32>, tensor<4x3x3x3xf32>) -> tensor<4x3x4xf32>
  return
}

// -----

func.func @channels(%x: tensor<2x3x5x6xf32>, %w: tensor<4x2x3x3xf32>) {
  // expected-error @+2 {{nn.conv2d (3): the image 2x3x5x6xf32 has 3 channels, the weight 4x2x3x3xf32 takes 2}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = nn.conv2d %x, %w {strides = array<i64: 1, 1>, paddings = array<i64: 0, 0>} : (tensor<2x3x5x6xf32>, tensor<4x2x3x3xf32>) -> tensor<2x4x3x4xf32>
  return
}

// -----

func.func @strides(%x: tensor<2x3x5x6xf32>, %w: tensor<4x3x3x3xf32>) {
  // expected-error @+2 {{nn.conv2d (4): strides are [0, 1]; they must be two numbers [vertical, horizontal], each at least 1}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = nn.conv2d %x, %w {strides = array<i64: 0, 1>, paddings = array<i64: 0, 0>} : (tensor<2x3x5x6xf32>, tensor<4x3x3x3xf32>) -> tensor<2x4x3x4xf32>
  return
}

// -----

func.func @paddings(%x: tensor<2x3x5x6xf32>, %w: tensor<4x3x3x3xf32>) {
  // expected-error @+2 {{nn.conv2d (5): paddings are [1]; they must be two numbers [vertical, horizontal], each at least 0}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = nn.conv2d %x, %w {strides = array<i64: 1, 1>, paddings = array<i64: 1>} : (tensor<2x3x5x6xf32>, tensor<4x3x3x3xf32>) -> tensor<2x4x3x4xf32>
  return
}

// -----

func.func @large(%x: tensor<2x3x5x6xf32>, %w: tensor<4x3x7x3xf32>) {
  // expected-error @+2 {{nn.conv2d (6): a window of [7, 3] is larger than the image 2x3x5x6xf32 with paddings [0, 0]; use a smaller window or more padding}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = nn.conv2d %x, %w {strides = array<i64: 1, 1>, paddings = array<i64: 0, 0>} : (tensor<2x3x5x6xf32>, tensor<4x3x7x3xf32>) -> tensor<2x4x3x4xf32>
  return
}

// -----

func.func @gradient(%dy: tensor<2x4x3x4xf32>, %w: tensor<4x3x3x3xf32>) {
  // expected-error @+1 {{nn.conv2d_input_grad (7): dy is 2x4x3x4xf32; an image 2x3x6x6xf32 and a weight 4x3x3x3xf32 give another size}}
  %0 = nn.conv2d_input_grad %dy, %w {strides = array<i64: 1, 1>, paddings = array<i64: 0, 0>} : (tensor<2x4x3x4xf32>, tensor<4x3x3x3xf32>) -> tensor<2x3x6x6xf32>
  return
}

// -----

func.func @window(%x: tensor<2x3x5x6xf32>) {
  // expected-error @+2 {{nn.max_pool2d (3): window sizes are [2]; they must be two numbers [vertical, horizontal], each at least 1}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = nn.max_pool2d %x {window = array<i64: 2>, strides = array<i64: 2, 2>, paddings = array<i64: 0, 0>} : (tensor<2x3x5x6xf32>) -> tensor<2x3x2x3xf32>
  return
}

// -----

func.func @outside(%x: tensor<2x3x5x6xf32>) {
  // expected-error @+2 {{nn.avg_pool2d (7): paddings [2, 0] are not smaller than the window [2, 2]: a window could lie outside the image}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = nn.avg_pool2d %x {window = array<i64: 2, 2>, strides = array<i64: 2, 2>, paddings = array<i64: 2, 0>} : (tensor<2x3x5x6xf32>) -> tensor<2x3x4x3xf32>
  return
}

// -----

func.func @pooled(%dy: tensor<2x3x2x2xf32>) {
  // expected-error @+1 {{nn.avg_pool2d_grad (8): dy is 2x3x2x2xf32; an image 2x3x5x6xf32 and a window [2, 2] give another size}}
  %0 = nn.avg_pool2d_grad %dy {window = array<i64: 2, 2>, strides = array<i64: 2, 2>, paddings = array<i64: 0, 0>} : (tensor<2x3x2x2xf32>) -> tensor<2x3x5x6xf32>
  return
}
