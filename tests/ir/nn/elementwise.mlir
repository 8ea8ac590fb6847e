// RUN: weft-opt %s | weft-opt | FileCheck %s

// CHECK-LABEL: @unary
func.func @unary(%x: tensor<2x3xf32>) -> tensor<2x3xf64> {
  // CHECK: nn.neg %{{.*}} : 2x3xf32
  %0 = nn.neg %x : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %1 = nn.exp %0 : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %2 = nn.log %1 : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %3 = nn.sqrt %2 : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %4 = nn.rsqrt %3 : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %5 = nn.tanh %4 : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %6 = nn.relu %5 : (tensor<2x3xf32>) -> tensor<2x3xf32>
  // The default approximation is not printed.
  // CHECK: nn.gelu %{{[0-9]+}} : 2x3xf32
  %7 = nn.gelu %6 {approximate = "tanh"} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  // CHECK: nn.gelu %{{[0-9]+}} {approximate = "none"}
  %8 = nn.gelu %7 {approximate = "none"} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  // CHECK: nn.constrain %{{[0-9]+}} {layout = "[{dp},{}]"}
  %9 = nn.constrain %8 {layout = "[{dp},{}]"} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %10 = nn.stop_gradient %9 : (tensor<2x3xf32>) -> tensor<2x3xf32>
  // CHECK: nn.cast %{{[0-9]+}} : (2x3xf32) -> 2x3xf64
  %11 = nn.cast %10 : (tensor<2x3xf32>) -> tensor<2x3xf64>
  return %11 : tensor<2x3xf64>
}

// CHECK-LABEL: @gradients
func.func @gradients(%x: tensor<4xf64>, %dy: tensor<4xf64>) -> (tensor<4xf64>, tensor<4xf64>, tensor<4xf64>) {
  // CHECK: nn.relu_grad
  %0 = nn.relu_grad %x, %dy : (tensor<4xf64>, tensor<4xf64>) -> tensor<4xf64>
  // CHECK: nn.gelu_grad %{{.*}}, %{{.*}} {approximate = "none"}
  %1 = nn.gelu_grad %x, %dy {approximate = "none"} : (tensor<4xf64>, tensor<4xf64>) -> tensor<4xf64>
  // CHECK: nn.tanh_grad
  %2 = nn.tanh_grad %x, %dy : (tensor<4xf64>, tensor<4xf64>) -> tensor<4xf64>
  return %0, %1, %2 : tensor<4xf64>, tensor<4xf64>, tensor<4xf64>
}

// CHECK-LABEL: @functions
func.func @functions(%x: tensor<4xf64>, %dy: tensor<4xf64>, %i: tensor<4xi32>) {
  %0 = nn.abs %i : (tensor<4xi32>) -> tensor<4xi32>
  // CHECK: nn.sign %{{.*}} : 4xi32
  %1 = nn.sign %0 : (tensor<4xi32>) -> tensor<4xi32>
  %2 = nn.floor %x : (tensor<4xf64>) -> tensor<4xf64>
  %3 = nn.ceil %2 : (tensor<4xf64>) -> tensor<4xf64>
  %4 = nn.erf %3 : (tensor<4xf64>) -> tensor<4xf64>
  %5 = nn.sin %4 : (tensor<4xf64>) -> tensor<4xf64>
  %6 = nn.cos %5 : (tensor<4xf64>) -> tensor<4xf64>
  // CHECK: nn.sigmoid
  %7 = nn.sigmoid %6 : (tensor<4xf64>) -> tensor<4xf64>
  %8 = nn.silu %7 : (tensor<4xf64>) -> tensor<4xf64>
  %9 = nn.softplus %8 : (tensor<4xf64>) -> tensor<4xf64>
  %10 = nn.hard_swish %9 : (tensor<4xf64>) -> tensor<4xf64>
  // CHECK: nn.leaky_relu %{{.*}} {slope = 1.000000e-01 : f64}
  %11 = nn.leaky_relu %10 {slope = 0.1} : (tensor<4xf64>) -> tensor<4xf64>
  // CHECK: nn.elu %{{.*}} {alpha = 1.000000e+00 : f64}
  %12 = nn.elu %11 {alpha = 1.0} : (tensor<4xf64>) -> tensor<4xf64>
  // CHECK: nn.pow
  %13 = nn.pow %12, %x : (tensor<4xf64>, tensor<4xf64>) -> tensor<4xf64>
  %14 = nn.sigmoid_grad %x, %dy : (tensor<4xf64>, tensor<4xf64>) -> tensor<4xf64>
  %15 = nn.silu_grad %x, %dy : (tensor<4xf64>, tensor<4xf64>) -> tensor<4xf64>
  %16 = nn.softplus_grad %x, %dy : (tensor<4xf64>, tensor<4xf64>) -> tensor<4xf64>
  %17 = nn.hard_swish_grad %x, %dy : (tensor<4xf64>, tensor<4xf64>) -> tensor<4xf64>
  // CHECK: nn.leaky_relu_grad %{{.*}}, %{{.*}} {slope = 1.000000e-01 : f64}
  %18 = nn.leaky_relu_grad %x, %dy {slope = 0.1} : (tensor<4xf64>, tensor<4xf64>) -> tensor<4xf64>
  // CHECK: nn.elu_grad
  %19 = nn.elu_grad %x, %dy {alpha = 1.0} : (tensor<4xf64>, tensor<4xf64>) -> tensor<4xf64>
  return
}

// CHECK-LABEL: @broadcasting
func.func @broadcasting(%a: tensor<4x1xf32>, %b: tensor<8xf32>, %s: tensor<f32>, %i: tensor<3xi64>, %t: tensor<3xi1>) -> tensor<4x8xf32> {
  // CHECK: nn.add {{.*}} -> 4x8xf32
  %0 = nn.add %a, %b : (tensor<4x1xf32>, tensor<8xf32>) -> tensor<4x8xf32>
  %1 = nn.sub %0, %s : (tensor<4x8xf32>, tensor<f32>) -> tensor<4x8xf32>
  %2 = nn.mul %s, %1 : (tensor<f32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %3 = nn.div %2, %b : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<4x8xf32>
  %4 = nn.maximum %3, %b : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<4x8xf32>
  %5 = nn.minimum %t, %t : (tensor<3xi1>, tensor<3xi1>) -> tensor<3xi1>
  %6 = nn.add %i, %i : (tensor<3xi64>, tensor<3xi64>) -> tensor<3xi64>
  // CHECK: nn.compare {{.*}} {predicate = "le"} {{.*}} -> 4x8xi1
  %7 = nn.compare %a, %b {predicate = "le"} : (tensor<4x1xf32>, tensor<8xf32>) -> tensor<4x8xi1>
  // CHECK: nn.select
  %8 = nn.select %7, %4, %s : (tensor<4x8xi1>, tensor<4x8xf32>, tensor<f32>) -> tensor<4x8xf32>
  return %8 : tensor<4x8xf32>
}

// A layout in the type changes nothing for the operator.
// CHECK-LABEL: @annotated
func.func @annotated(%a: tensor<4x8xf32, #dist.layout<"[{dp},{}]">>, %b: tensor<8xf32, #dist.layout<"[{}]">>) -> tensor<4x8xf32, #dist.layout<"[{dp},{}]">> {
  // CHECK: nn.add {{.*}} -> 4x8xf32 "[{dp},{}]"
  %0 = nn.add %a, %b : (tensor<4x8xf32, #dist.layout<"[{dp},{}]">>, tensor<8xf32, #dist.layout<"[{}]">>) -> tensor<4x8xf32, #dist.layout<"[{dp},{}]">>
  return %0 : tensor<4x8xf32, #dist.layout<"[{dp},{}]">>
}
