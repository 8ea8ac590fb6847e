// The optimizer as operators on state, and the first values of parameters and state. A frozen parameter is left alone;
// without an optimizer none of that is added. A module without a step is refused.
// RUN: weft-opt %s --weft-build-gradients --weft-build-update -split-input-file | FileCheck %s
// RUN: echo "module {}" | not weft-opt --weft-build-update 2>&1 | FileCheck %s --check-prefix=REFUSED

// REFUSED: the module has no function @step

// CHECK-LABEL: func.func @step
// CHECK-SAME: nn.kind = "state", nn.name = "lr"
// CHECK-SAME: nn.kind = "state", nn.name = "step"
// CHECK-SAME: nn.kind = "state", nn.name = "momentum.w"
// CHECK-SAME: nn.arg = 1 : i64, nn.kind = "updated", nn.name = "w"
// CHECK: %[[G:.*]] = nn.constrain {{.*}}nn.gradient_of = "w"
// CHECK-NOT: nn.gradient_of = "frozen"
// CHECK: nn.sgd %{{.*}}, %[[G]], %{{.*}} {{.*}}nn.phase = "update"
// CHECK-LABEL: func.func @init
// CHECK-SAME: nn.name = "w"
// CHECK-SAME: nn.name = "momentum.w"
module attributes {nn.optimizer = {kind = "sgd", lr = 0.1 : f64, momentum = 0.9 : f64}} {
  func.func @step(%x: tensor<8x4xf32> {nn.kind = "input", nn.name = "x"},
                  %w: tensor<4x2xf32> {nn.kind = "parameter", nn.name = "w", nn.init = {distribution = "zeros"}},
                  %v: tensor<2xf32> {nn.kind = "parameter", nn.name = "frozen", nn.frozen,
                                     nn.init = {distribution = "ones"}})
      -> (tensor<f32> {nn.kind = "loss", nn.name = "loss"}) {
    %y = nn.matmul %x, %w : (tensor<8x4xf32>, tensor<4x2xf32>) -> tensor<8x2xf32>
    %z = nn.sum %y {dims = array<i64: 0>, keep_dims = false} : (tensor<8x2xf32>) -> tensor<2xf32>
    %a = nn.mul %z, %v : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
    %loss = nn.sum %a {dims = array<i64: 0>, keep_dims = false} : (tensor<2xf32>) -> tensor<f32>
    return %loss : tensor<f32>
  }
}

// -----

// CHECK-LABEL: func.func @step
// CHECK-NOT: nn.sgd
// CHECK-LABEL: func.func @init
module attributes {nn.optimizer = {kind = "none"}} {
  func.func @step(%w: tensor<4xf32> {nn.kind = "parameter", nn.name = "w", nn.init = {distribution = "zeros"}})
      -> (tensor<f32> {nn.kind = "loss", nn.name = "loss"}) {
    %loss = nn.sum %w {dims = array<i64: 0>, keep_dims = false} : (tensor<4xf32>) -> tensor<f32>
    return %loss : tensor<f32>
  }
}

// -----

// A composed optimizer: directions and sums of squares of all parameters, so that reductions over ranks stand together,
// then the step of each. The second group has its own rate, the third no gradient.
// CHECK-LABEL: func.func @step
// CHECK-SAME: %[[LR:arg3]]: tensor<f32>
// CHECK-SAME: nn.name = "lamb.m.w"
// CHECK-SAME: nn.name = "lamb.v.w"
// CHECK-SAME: nn.name = "lamb.m.b"
// CHECK-NOT: nn.name = "lamb.m.c"
// CHECK: nn.adam_direction
// CHECK: nn.sum_squares {{.*}}nn.name = "sum_squares.w", nn.phase = "update"
// CHECK: %[[HALF:.*]] = nn.mul %[[LR]], {{.*}}nn.phase = "update"
// CHECK: nn.adam_direction
// CHECK: nn.sum_squares {{.*}}nn.name = "sum_squares.b"
// CHECK: nn.descend {{.*}} %[[LR]] {{.*}}nn.name = "update.w", nn.phase = "update"
// CHECK: nn.descend {{.*}} %[[HALF]] {{.*}}nn.name = "update.b"
// CHECK-NOT: nn.descend
module attributes {nn.optimizer = {kind = "lamb", groups = [["w", {}], ["b", {lr_factor = 0.5}], ["c", {frozen = true}]]}} {
  func.func @step(%w: tensor<4xf32> {nn.kind = "parameter", nn.name = "w", nn.init = {distribution = "ones"}},
                  %b: tensor<4xf32> {nn.kind = "parameter", nn.name = "b", nn.init = {distribution = "ones"}},
                  %c: tensor<4xf32> {nn.kind = "parameter", nn.name = "c", nn.init = {distribution = "ones"}})
      -> (tensor<f32> {nn.kind = "loss", nn.name = "loss"}) {
    %0 = nn.mul %w, %b : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %1 = nn.mul %0, %c : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %loss = nn.sum %1 {dims = array<i64: 0>, keep_dims = false} : (tensor<4xf32>) -> tensor<f32>
    return %loss : tensor<f32>
  }
}

// -----

// A program that updates its parameters itself: one by an optimizer of its own, whose rate is the program's; one whose
// rate is twice that; one by arithmetic, which runs in the update. Values that others read, too, pass through an
// operator of the update.
// CHECK-LABEL: func.func @step
// CHECK-SAME: %[[LR:arg[0-9]+]]: tensor<f32> {nn.init = {a = 5.000000e-01 : f64
// CHECK: nn.mul %arg3, %{{.*}} {{.*}}nn.phase = "update"
// CHECK: %[[NEXT:.*]] = nn.mul %arg4, %arg4 {{.*}} : 2xf32
// CHECK: %[[TWICE:.*]] = nn.mul %[[LR]]
// CHECK: nn.sgd %arg2, %{{.*}}, %{{.*}}, %[[TWICE]]
// CHECK: nn.constrain %[[NEXT]] {{.*}}nn.phase = "update"
module attributes {nn.optimizer = {kind = "own"}} {
  func.func @step(%x: tensor<2xf32> {nn.kind = "input", nn.name = "x"},
                  %a: tensor<2xf32> {nn.kind = "parameter", nn.name = "a", nn.init = {distribution = "zeros"}},
                  %b: tensor<2xf32> {nn.kind = "parameter", nn.name = "b", nn.init = {distribution = "zeros"}},
                  %c: tensor<2xf32> {nn.kind = "parameter", nn.name = "c", nn.init = {distribution = "zeros"}},
                  %s: tensor<2xf32> {nn.kind = "state", nn.name = "s", nn.init = {distribution = "zeros"}})
      -> (tensor<f32> {nn.kind = "loss", nn.name = "loss"},
          tensor<2xf32> {nn.kind = "gradient", nn.name = "grad.a", nn.optimizer = {kind = "sgd", lr = 0.5 : f64}},
          tensor<2xf32> {nn.kind = "gradient", nn.name = "grad.b", nn.optimizer = {kind = "sgd", lr = 1.0 : f64}},
          tensor<2xf32> {nn.arg = 3 : i64, nn.kind = "updated", nn.name = "c"},
          tensor<2xf32> {nn.arg = 4 : i64, nn.kind = "updated", nn.name = "s"}) {
    %0 = nn.mul %c, %x : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
    %1 = nn.mul %s, %s : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
    %2 = nn.sum %1 {dims = array<i64: 0>} : (tensor<2xf32>) -> tensor<f32>
    return %2, %x, %x, %0, %1 : tensor<f32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>
  }
}
