// RUN: weft-opt %s -weft-verify-annotated -split-input-file -verify-diagnostics | FileCheck %s

#d_ = #dist.layout<"[{dp},{}]">
#_t = #dist.layout<"[{},{tp}]">
#dt = #dist.layout<"[{dp},{tp}]">
#t_ = #dist.layout<"[{tp},{}]">
#dp = #dist.layout<"[{dp},{}] partial{tp:sum}">
#r = #dist.layout<"[{},{}]">
#s = #dist.layout<"[]">
#sp = #dist.layout<"[] partial{dp:sum}">
// Columns then rows over tp, batch over dp and two micro-batches; a sum partial over tp is reduced, one over dp passes a scaling.
// CHECK-LABEL: func.func @step
module attributes {dist.mesh = #dist.mesh<"dp=2,tp=2">} {
  func.func @step(%x: tensor<4x8xf32, #d_> {nn.kind = "input", nn.name = "x"},
                  %a: tensor<8x6xf32, #_t> {nn.kind = "parameter", nn.name = "a"},
                  %b: tensor<6x8xf32, #t_> {nn.kind = "parameter", nn.name = "b"},
                  %c: tensor<f32, #s> {nn.kind = "state", nn.name = "c"}) {
    %0 = nn.matmul %x, %a {dist.function = "forward"} : (tensor<4x8xf32, #d_>, tensor<8x6xf32, #_t>) -> tensor<4x6xf32, #dt>
    %1 = nn.matmul %0, %b {dist.function = "forward"} : (tensor<4x6xf32, #dt>, tensor<6x8xf32, #t_>) -> tensor<4x8xf32, #dp>
    %2 = dist.reshard %1 {dist.function = "forward"} : (tensor<4x8xf32, #dp>) -> tensor<4x8xf32, #d_>
    %3 = nn.gelu %2 {dist.function = "forward"} : (tensor<4x8xf32, #d_>) -> tensor<4x8xf32, #d_>
    %4 = nn.sum %3 {dims = array<i64: 0, 1>, dist.function = "forward"} : (tensor<4x8xf32, #d_>) -> tensor<f32, #sp>
    %5 = nn.mul %4, %c {dist.function = "forward"} : (tensor<f32, #sp>, tensor<f32, #s>) -> tensor<f32, #sp>
    %6 = dist.reshard %5 {dist.function = "forward"} : (tensor<f32, #sp>) -> tensor<f32, #s>
    return
  }
}

// -----

// expected-error @+1 {{the module has no attribute dist.mesh}}
module {}

// -----

module attributes {dist.mesh = #dist.mesh<"dp=2">} {
  // expected-error @+1 {{every value of the annotated state has a layout, this one is 'tensor<4xf32>'}}
  func.func @step(%x: tensor<4xf32>) {
    return
  }
}

// -----

module attributes {dist.mesh = #dist.mesh<"dp=2">} {
  // expected-error @+1 {{5}}
  func.func @step(%x: tensor<5xf32, #dist.layout<"[{dp}]">>) {
    return
  }
}

// -----

module attributes {dist.mesh = #dist.mesh<"dp=2">} {
  // expected-error @+1 {{xx}}
  func.func @step(%x: tensor<4xf32, #dist.layout<"[{xx}]">>) {
    return
  }
}

// -----

#d = #dist.layout<"[{dp}]">
module attributes {dist.mesh = #dist.mesh<"dp=2">} {
  func.func @step(%x: tensor<4xf32, #d>) {
    // expected-error @+1 {{nn.exp has dist.function ''; it should be init, prologue, forward, backward or update}}
    %0 = nn.exp %x : (tensor<4xf32, #d>) -> tensor<4xf32, #d>
    return
  }
}

// -----

// A reshard left out.
#d_ = #dist.layout<"[{dp},{}]">
#_t = #dist.layout<"[{},{dp}]">
module attributes {dist.mesh = #dist.mesh<"dp=2">} {
  func.func @step(%x: tensor<4x4xf32, #d_>, %y: tensor<4x4xf32, #_t>) {
    // expected-error @+1 {{operand 1 of nn.add splits factor 'd0' over no axis, operand 0 over dp; a reshard is missing}}
    %0 = nn.add %x, %y {dist.function = "forward"} : (tensor<4x4xf32, #d_>, tensor<4x4xf32, #_t>) -> tensor<4x4xf32, #d_>
    return
  }
}

// -----

// The result says otherwise than the operands.
#d = #dist.layout<"[{dp}]">
#r = #dist.layout<"[{}]">
module attributes {dist.mesh = #dist.mesh<"dp=2">} {
  func.func @step(%x: tensor<4xf32, #d>) {
    // expected-error @+1 {{result 0 of nn.exp splits factor 'd0' over no axis, operand 0 over dp; a reshard is missing}}
    %0 = nn.exp %x {dist.function = "forward"} : (tensor<4xf32, #d>) -> tensor<4xf32, #r>
    return
  }
}

// -----

// A whole factor.
#_d = #dist.layout<"[{},{dp}]">
module attributes {dist.mesh = #dist.mesh<"dp=2">} {
  func.func @step(%x: tensor<4x4xf32, #_d>) {
    // expected-error @+1 {{must stay whole in 'd0 d1! -> d0 d1!', but is split 2 ways over dp}}
    %0 = nn.softmax %x {dim = 1 : i64, dist.function = "forward"} : (tensor<4x4xf32, #_d>) -> tensor<4x4xf32, #_d>
    return
  }
}

// -----

// A compound dimension that is split inside its minor factor.
#r = #dist.layout<"[{},{dp}]">
#c = #dist.layout<"[{dp}]">
module attributes {dist.mesh = #dist.mesh<"dp=2">} {
  func.func @step(%x: tensor<3x4xf32, #r>) {
    // expected-error @+1 {{result 0 of nn.reshape lies as [{dp}], but its rule}}
    %0 = nn.reshape %x {dist.function = "forward"} : (tensor<3x4xf32, #r>) -> tensor<12xf32, #c>
    return
  }
}

// -----

// gelu of a partial sum.
#p = #dist.layout<"[{}] partial{dp:sum}">
module attributes {dist.mesh = #dist.mesh<"dp=2">} {
  func.func @step(%x: tensor<4xf32, #p>) {
    // expected-error @+1 {{nn.gelu reads operand 0 while it is partial over partial{dp:sum}, but is not linear in it alone; reduce it first}}
    %0 = nn.gelu %x {dist.function = "forward"} : (tensor<4xf32, #p>) -> tensor<4xf32, #p>
    return
  }
}

// -----

// A partial sum plus a whole value would add the whole value twice.
#p = #dist.layout<"[{}] partial{dp:sum}">
#r = #dist.layout<"[{}]">
module attributes {dist.mesh = #dist.mesh<"dp=2">} {
  func.func @step(%x: tensor<4xf32, #p>, %y: tensor<4xf32, #r>) {
    // expected-error @+1 {{nn.add reads operand 0 while it is partial over partial{dp:sum}, but is not linear in it alone}}
    %0 = nn.add %x, %y {dist.function = "forward"} : (tensor<4xf32, #p>, tensor<4xf32, #r>) -> tensor<4xf32, #p>
    return
  }
}

// -----

#p = #dist.layout<"[{}] partial{dp:sum}">
module attributes {dist.mesh = #dist.mesh<"dp=2">} {
  func.func @step(%x: tensor<4xf32, #p>, %y: tensor<4xf32, #p>) {
    // expected-error @+1 {{nn.mul reads operand 0 while it is partial over partial{dp:sum}, but is not linear in it together with the others}}
    %0 = nn.mul %x, %y {dist.function = "forward"} : (tensor<4xf32, #p>, tensor<4xf32, #p>) -> tensor<4xf32, #p>
    return
  }
}

// -----

#p = #dist.layout<"[{}] partial{dp:sum}">
#q = #dist.layout<"[{}] partial{tp:sum}">
module attributes {dist.mesh = #dist.mesh<"dp=2,tp=2">} {
  func.func @step(%x: tensor<4xf32, #p>, %y: tensor<4xf32, #q>) {
    // expected-error @+1 {{operand 1 of nn.add is partial over partial{tp:sum}, operand 0 over partial{dp:sum}; reduce one of them first}}
    %0 = nn.add %x, %y {dist.function = "forward"} : (tensor<4xf32, #p>, tensor<4xf32, #q>) -> tensor<4xf32, #p>
    return
  }
}

// -----

// A sum that is forgotten: the mutant that gives wrong numbers without any error.
#d_ = #dist.layout<"[{dp},{}]">
#s = #dist.layout<"[]">
module attributes {dist.mesh = #dist.mesh<"dp=2">} {
  func.func @step(%x: tensor<4x4xf32, #d_>) {
    // expected-error @+1 {{result 0 of nn.sum is said to be partial over nothing, but is partial over partial{dp:sum}}}
    %0 = nn.sum %x {dims = array<i64: 0, 1>, dist.function = "forward"} : (tensor<4x4xf32, #d_>) -> tensor<f32, #s>
    return
  }
}

// -----

#r = #dist.layout<"[{}]">
#p = #dist.layout<"[{}] partial{dp:sum}">
module attributes {dist.mesh = #dist.mesh<"dp=2">} {
  func.func @step(%x: tensor<4xf32, #r>) {
    // expected-error @+1 {{a reshard cannot make dp partial: it goes from [{}] to [{}] partial{dp:sum}}}
    %0 = dist.reshard %x {dist.function = "forward"} : (tensor<4xf32, #r>) -> tensor<4xf32, #p>
    return
  }
}

// -----

#r = #dist.layout<"[{}]">
#d = #dist.layout<"[{dp}]">
module attributes {dist.mesh = #dist.mesh<"dp=2">} {
  func.func @step(%x: tensor<4xf32, #r>) {
    // expected-error @+1 {{dist.mask_pad reads [{}] and leaves [{dp}]; both should be the same}}
    %0 = dist.mask_pad %x {dims = array<i64: 0>, valid = array<i64: 3>, fill = 0.0, dist.function = "forward"} : (tensor<4xf32, #r>) -> tensor<4xf32, #d>
    return
  }
}

// -----

#r = #dist.layout<"[{}]">
module attributes {dist.mesh = #dist.mesh<"dp=2">} {
  func.func @step(%x: tensor<4xf32, #r>) {
    // expected-error @+1 {{dist.accumulate has no place in the annotated state}}
    %0 = dist.accumulate %x, %x {dist.function = "forward"} : (tensor<4xf32, #r>, tensor<4xf32, #r>) -> tensor<4xf32, #r>
    return
  }
}

// -----

// Submeshes with meshes of their own: rows cross from two ranks to three.
#d_ = #dist.layout<"[{dp},{}]">
module attributes {dist.mesh = #dist.mesh<"dp=2">, dist.stage_meshes = "dp=2;dp=3", dist.submeshes = array<i64: 0, 1>,
                   dist.schedule = "1f1b", dist.virtual = 1 : i64} {
  func.func @step(%x: tensor<6x8xf32, #d_>) {
    %0 = nn.gelu %x {dist.function = "forward", dist.stage = 0 : i64} : (tensor<6x8xf32, #d_>) -> tensor<6x8xf32, #d_>
    %1 = dist.transfer %0 {dist.function = "forward", dist.stage = 1 : i64} : (tensor<6x8xf32, #d_>) -> tensor<6x8xf32, #d_>
    // expected-error @+1 {{operand 0 of nn.gelu lies on mesh dp=2, the operator on dp=3; a dist.transfer is missing}}
    %2 = nn.gelu %0 {dist.function = "forward", dist.stage = 1 : i64} : (tensor<6x8xf32, #d_>) -> tensor<6x8xf32, #d_>
    return
  }
}

// -----

// Sums are reduced before they cross.
#d_ = #dist.layout<"[{dp},{}]">
#s = #dist.layout<"[]">
#sp = #dist.layout<"[] partial{dp:sum}">
module attributes {dist.mesh = #dist.mesh<"dp=2">, dist.stage_meshes = "dp=2;dp=3", dist.submeshes = array<i64: 0, 1>,
                   dist.schedule = "1f1b", dist.virtual = 1 : i64} {
  func.func @step(%x: tensor<6x8xf32, #d_>) {
    %0 = nn.sum %x {dims = array<i64: 0, 1>, dist.function = "forward", dist.stage = 0 : i64} : (tensor<6x8xf32, #d_>) -> tensor<f32, #sp>
    // expected-error @+1 {{a transfer cannot go from [] partial{dp:sum} on dp=2 to [] on dp=3: no sum may be partial, and micro-batches and pads must be the same}}
    %1 = dist.transfer %0 {dist.function = "forward", dist.stage = 1 : i64} : (tensor<f32, #sp>) -> tensor<f32, #s>
    return
  }
}

// -----

// expected-error @+1 {{dist.stage_meshes has 3 meshes, dist.submeshes is for 2 submeshes}}
module attributes {dist.mesh = #dist.mesh<"dp=2">, dist.stage_meshes = "dp=2;dp=3;dp=1", dist.submeshes = array<i64: 0, 1>} {}

// -----

// expected-error @+1 {{mesh: size 'x' in 'dp=x'}}
module attributes {dist.mesh = #dist.mesh<"dp=2">, dist.stage_meshes = "dp=2;dp=x", dist.submeshes = array<i64: 0, 1>} {}

// -----

// What resumes here must be a whole program, with names and stages that exist.
// expected-error @+1 {{dist.schedule is missing beside dist.submeshes}}
module attributes {dist.mesh = #dist.mesh<"dp=2">, dist.submeshes = array<i64: 0, 1>} {
  func.func @step() {
    return
  }
}

// -----

// expected-error @+1 {{the schedule 1f1b puts its 2 stages on submeshes 0,1, but the program has them on submeshes 1,0}}
module attributes {dist.mesh = #dist.mesh<"dp=2">, dist.submeshes = array<i64: 1, 0>, dist.schedule = "1f1b",
                   dist.virtual = 1 : i64} {
  func.func @step() {
    return
  }
}

// -----

module attributes {dist.mesh = #dist.mesh<"dp=2">} {
  // expected-error @+1 {{argument 0 of @step has kind 'weight'; it should be input, parameter or state}}
  func.func @step(%x: tensor<f32, #dist.layout<"[]">> {nn.kind = "weight", nn.name = "x"}) {
    return
  }
}

// -----

module attributes {dist.mesh = #dist.mesh<"dp=2">} {
  func.func @step(%x: tensor<f32, #dist.layout<"[]">> {nn.kind = "input", nn.name = "x"}) {
    // expected-error @+1 {{dist.stage is 3, but the module has stages 0 to 0}}
    %0 = nn.exp %x {dist.function = "forward", dist.stage = 3 : i64} : (tensor<f32, #dist.layout<"[]">>) -> tensor<f32, #dist.layout<"[]">>
    return
  }
}

// -----

module attributes {dist.mesh = #dist.mesh<"dp=2">} {
  func.func @step(%x: tensor<f32, #dist.layout<"[]">> {nn.kind = "input", nn.name = "x"}) {
    // expected-error @+1 {{nn.exp has dist.recompute and runs in update; the backward pass runs forward operators again, no others}}
    %0 = nn.exp %x {dist.function = "update", dist.recompute} : f32 "[]"
    return
  }
}

// -----

module attributes {dist.mesh = #dist.mesh<"dp=2,micro=2">} {
  func.func @step(%x: tensor<4xf32, #dist.layout<"[{dp}]">> {nn.kind = "input", nn.name = "x"}) {
    %0 = dist.reshard %x {dist.function = "forward"} : (4xf32 "[{dp}]") -> 4xf32 "[{dp,micro}]"
    // expected-error @+1 {{nn.sum has dist.recompute, and its result is a sum over the micro-batches, which is whole only after all of them}}
    %1 = nn.sum %0 {dims = array<i64: 0>, dist.function = "forward", dist.recompute} : (4xf32 "[{dp,micro}]") -> f32 "[] partial{dp:sum,micro:sum}"
    return
  }
}
