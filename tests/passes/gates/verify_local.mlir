// RUN: weft-opt %s -weft-verify-local -split-input-file -verify-diagnostics | FileCheck %s

// CHECK-LABEL: func.func @forward
module attributes {dist.mesh = #dist.mesh<"dp=2">, dist.rank_table = dense<[[0], [2]]> : tensor<2x1xi64>,
    dist.tensors = [{name = "x", kind = "input", value = "x", type = "f32", shape = array<i64: 4>, file_shape = array<i64: 4>,
                     offsets = [array<i64: 0>, array<i64: 2>], valid = [array<i64: 2>, array<i64: 2>]}]} {
  func.func @forward(%x: tensor<2xf32> {dist.value = "x", dist.memory = #dist.memory<input>}, %s: tensor<2xf32> {dist.value = "s", dist.memory = #dist.memory<accumulator>})
      -> (tensor<2xf32> {dist.value = "s", dist.memory = #dist.memory<accumulator>}) attributes {dist.kind = "forward"} {
    %0 = nn.iota {dim = 0 : i64, dist.scalars = [#dist.scalar<0, 0, 0>]} : () -> tensor<2xf32>
    %1 = dist.all_reduce %0 {over = #dist.axes<"{dp}">, reduce = "sum"} : (tensor<2xf32>) -> tensor<2xf32>
    %2 = dist.accumulate %s, %1 {dist.scalars = [#dist.scalar<0, -1, 1>]} : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
    return %2 : tensor<2xf32>
  }
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

func.func @forward(%x: tensor<4xf32> {dist.value = "x", dist.memory = #dist.memory<input>}) -> (tensor<4xf32> {dist.value = "y", dist.memory = #dist.memory<transient>})
    attributes {dist.kind = "forward"} {
  // expected-error @+1 {{result 0 of @forward ('y') has dist.memory 'transient'; it should be parameter, state}}
  %0 = nn.exp %x : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// expected-error @+1 {{a layout has no place in the local state: 'tensor<4xf32, #dist.layout<"[{dp}]">>'}}
func.func @forward(%x: tensor<4xf32, #dist.layout<"[{dp}]">> {dist.value = "x", dist.memory = #dist.memory<input>}) attributes {dist.kind = "forward"} {
  return
}

// -----

func.func @forward(%x: tensor<4xf32> {dist.value = "x", dist.memory = #dist.memory<input>}) attributes {dist.kind = "forward"} {
  // expected-error @+1 {{a layout has no place in the local state: 'tensor<4xf32, #dist.layout<"[{dp}]">>'}}
  %0 = nn.exp %x : (tensor<4xf32>) -> tensor<4xf32, #dist.layout<"[{dp}]">>
  return
}

// -----

func.func @forward(%x: tensor<4xf32> {dist.value = "x", dist.memory = #dist.memory<input>}) attributes {dist.kind = "forward"} {
  // expected-error @+1 {{a reshard has no place in the local state; it should have become collectives}}
  %0 = dist.reshard %x : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @forward(%x: tensor<4xf32> {dist.value = "x", dist.memory = #dist.memory<input>}) attributes {dist.kind = "forward"} {
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

// -----

// expected-error @+1 {{dist.rank_table is 'tensor<3x1xi64>'; mesh dp=2 asks for 2 rows of i64}}
module attributes {dist.mesh = #dist.mesh<"dp=2">, dist.rank_table = dense<0> : tensor<3x1xi64>} {}

// -----

module attributes {dist.mesh = #dist.mesh<"dp=2">} {
  func.func @forward() -> (tensor<2xf32> {dist.value = "a", dist.memory = #dist.memory<activation>}) attributes {dist.kind = "forward"} {
    %0 = nn.fill {value = 0.0} : () -> tensor<2xf32>
    return %0 : tensor<2xf32>
  }
  // expected-error @+1 {{'a' is 'tensor<4xf32>' in memory 'activation' here, and 'tensor<2xf32>' in memory 'activation' in a function before}}
  func.func @backward(%a: tensor<4xf32> {dist.value = "a", dist.memory = #dist.memory<activation>}) attributes {dist.kind = "backward"} {
    return
  }
}

// -----

module attributes {dist.mesh = #dist.mesh<"dp=2">} {
  // expected-error @+1 {{@backward reads activation 'a', but neither it nor a function before returns it}}
  func.func @backward(%a: tensor<4xf32> {dist.value = "a", dist.memory = #dist.memory<activation>}) attributes {dist.kind = "backward"} {
    return
  }
}

// -----

module attributes {dist.mesh = #dist.mesh<"dp=2">} {
  // expected-error @+1 {{@forward returns 'a' twice}}
  func.func @forward() -> (tensor<2xf32> {dist.value = "a", dist.memory = #dist.memory<output>}, tensor<2xf32> {dist.value = "a", dist.memory = #dist.memory<output>}) attributes {dist.kind = "forward"} {
    %0 = nn.fill {value = 0.0} : () -> tensor<2xf32>
    return %0, %0 : tensor<2xf32>, tensor<2xf32>
  }
}

// -----

module attributes {dist.mesh = #dist.mesh<"dp=2,tp=2">} {
  func.func @forward(%x: tensor<2xf32> {dist.value = "x", dist.memory = #dist.memory<input>}) attributes {dist.kind = "forward"} {
    // expected-error @+1 {{groups over {dp,tp} of mesh dp=2,tp=2 have 4 members, the shapes ask for 2}}
    %1 = dist.all_gather %x {over = #dist.axes<"{dp,tp}">, dim = 0} : (2xf32) -> 4xf32
    return
  }
}

// -----

module attributes {dist.mesh = #dist.mesh<"dp=2">} {
  func.func @forward(%x: tensor<2xf32> {dist.value = "x", dist.memory = #dist.memory<input>}) attributes {dist.kind = "forward"} {
    // expected-error @+1 {{over {tp}: }}
    %1 = dist.all_reduce %x {over = #dist.axes<"{tp}">, reduce = "sum"} : 2xf32
    return
  }
}

// -----

module attributes {dist.mesh = #dist.mesh<"dp=2,micro=2">} {
  func.func @forward(%x: tensor<2xf32> {dist.value = "x", dist.memory = #dist.memory<input>}) attributes {dist.kind = "forward"} {
    // expected-error @+1 {{over {micro}: micro is a time axis of mesh dp=2,micro=2; ranks differ in space axes}}
    %1 = dist.all_reduce %x {over = #dist.axes<"{micro}">, reduce = "sum"} : 2xf32
    return
  }
}

// -----

module attributes {dist.mesh = #dist.mesh<"dp=4">} {
  func.func @forward(%x: tensor<2xf32> {dist.value = "x", dist.memory = #dist.memory<input>}) attributes {dist.kind = "forward"} {
    // expected-error @+1 {{over {dp,dp:(2)2}: layout '[{dp,dp:(2)2}]', position 12: axis dp:(2)2 is used twice}}
    %1 = dist.all_reduce %x {over = #dist.axes<"{dp,dp:(2)2}">, reduce = "sum"} : 2xf32
    return
  }
}

// -----

module attributes {dist.mesh = #dist.mesh<"dp=2">} {
  func.func @forward(%x: tensor<2xf32> {dist.value = "x", dist.memory = #dist.memory<input>}) attributes {dist.kind = "forward"} {
    // expected-error @+1 {{no permutation of the ranks of mesh dp=2 brings a tensor from [{dp}] to [{}]}}
    %1 = dist.permute %x {from = #dist.layout<"[{dp}]">, to = #dist.layout<"[{}]">} : 2xf32
    return
  }
}

// -----

module attributes {dist.mesh = #dist.mesh<"dp=2">} {
  func.func @forward() attributes {dist.kind = "forward"} {
    // expected-error @+1 {{nn.iota has 0 scalars (dist.scalars); its kernel takes 1}}
    %0 = nn.iota {dim = 0 : i64} : () -> tensor<2xf32>
    return
  }
}

// -----

module attributes {dist.mesh = #dist.mesh<"dp=2">} {
  func.func @forward() attributes {dist.kind = "forward"} {
    // expected-error @+1 {{reads a column the rank table does not have; it has 0}}
    %0 = nn.iota {dim = 0 : i64, dist.scalars = [#dist.scalar<0, 0, 0>]} : () -> tensor<2xf32>
    return
  }
}

// -----

// expected-error @+1 {{kind 'weight' should be input, parameter, state or output}}
module attributes {dist.mesh = #dist.mesh<"dp=2">,
    dist.tensors = [{name = "x", kind = "weight", value = "x", type = "f32", shape = array<i64: 4>, file_shape = array<i64: 4>}]} {}

// -----

// expected-error @+1 {{'x' needs in 'valid' 1 numbers for each of 2 ranks}}
module attributes {dist.mesh = #dist.mesh<"dp=2">,
    dist.tensors = [{name = "x", kind = "input", value = "x", type = "f32", shape = array<i64: 4>, file_shape = array<i64: 4>,
                     offsets = [array<i64: 0>, array<i64: 2>], valid = [array<i64: 2>]}]} {}

// -----

func.func @forward(%x: tensor<2xf32> {dist.value = "x", dist.memory = #dist.memory<input>}) attributes {dist.kind = "forward"} {
  // expected-error @+1 {{a copy has no place before storages are assigned}}
  %0 = dist.copy %x : (tensor<2xf32>) -> tensor<2xf32>
  return
}
