// RUN: weft-opt %s -weft-verify-local -split-input-file -verify-diagnostics | FileCheck %s

// CHECK-LABEL: func.func @forward
func.func @forward(%x: tensor<4xf32> {dist.value = "x", dist.memory = "input"}) -> (tensor<4xf32> {dist.value = "y", dist.memory = "output"})
    attributes {dist.kind = "forward"} {
  %0 = nn.exp %x : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// expected-error @+1 {{@step is no function of the local state (no dist.kind)}}
func.func @step() {
  return
}

// -----

// expected-error @+1 {{@forward has dist.kind 'backward'; the local state has @init, @prologue, @forward, @backward (or @input_grad and @weight_grad) and @update}}
func.func @forward() attributes {dist.kind = "backward"} {
  return
}

// -----

// expected-error @+1 {{argument 0 of @forward has no dist.value}}
func.func @forward(%x: tensor<4xf32>) attributes {dist.kind = "forward"} {
  return
}

// -----

func.func @forward(%x: tensor<4xf32> {dist.value = "x", dist.memory = "input"}) -> (tensor<4xf32> {dist.value = "y", dist.memory = "heap"})
    attributes {dist.kind = "forward"} {
  // expected-error @+1 {{result 0 of @forward ('y') has dist.memory 'heap'; it should be parameter, state}}
  %0 = nn.exp %x : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// expected-error @+1 {{a layout has no place in the local state: 'tensor<4xf32, #dist.layout<"[{dp}]">>'}}
func.func @forward(%x: tensor<4xf32, #dist.layout<"[{dp}]">> {dist.value = "x", dist.memory = "input"}) attributes {dist.kind = "forward"} {
  return
}

// -----

func.func @forward(%x: tensor<4xf32> {dist.value = "x", dist.memory = "input"}) attributes {dist.kind = "forward"} {
  // expected-error @+1 {{a layout has no place in the local state: 'tensor<4xf32, #dist.layout<"[{dp}]">>'}}
  %0 = nn.exp %x : (tensor<4xf32>) -> tensor<4xf32, #dist.layout<"[{dp}]">>
  return
}

// -----

func.func @forward(%x: tensor<4xf32> {dist.value = "x", dist.memory = "input"}) attributes {dist.kind = "forward"} {
  // expected-error @+1 {{a reshard has no place in the local state; it should have become collectives}}
  %0 = dist.reshard %x : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @forward(%x: tensor<4xf32> {dist.value = "x", dist.memory = "input"}) attributes {dist.kind = "forward"} {
  // expected-error @+1 {{nn.constrain has no place in the local state; it is a word to the compiler only}}
  %0 = nn.constrain %x {layout = "[{}]"} : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

module attributes {dist.mesh = #dist.mesh<"dp=2">} {
  // expected-error @+1 {{@forward.1 should be named @forward by its kind and stage}}
  func.func @forward.1() attributes {dist.kind = "forward"} {
    return
  }
}

// -----

module attributes {dist.mesh = #dist.mesh<"dp=2">} {
  func.func @forward() attributes {dist.kind = "forward"} {
    // expected-error @+1 {{dist.receive of submesh 0 names submesh 1, channel 0; there are 1 submeshes, and a channel joins two of them}}
    %0 = dist.receive {channel = 0 : i64, submesh = 1 : i64} : () -> tensor<4xf32>
    return
  }
}

// -----

// expected-error @+1 {{the schedule has 2 submeshes, the module holds 0 modules of submeshes}}
module attributes {dist.mesh = #dist.mesh<"dp=2">, dist.submeshes = array<i64: 0, 1>, dist.schedule = "1f1b",
                   dist.virtual = 1 : i64} {
}
