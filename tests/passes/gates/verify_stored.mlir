// RUN: weft-opt %s -weft-verify-stored -split-input-file -verify-diagnostics | FileCheck %s

// CHECK: dist.copy
module attributes {dist.mesh = #dist.mesh<"dp=1">, dist.actions = #dist.actions<init = [], step = [@forward 0, @update 0]>,
    dist.storages = [#dist.storage<memory = input, bytes = 16, label = "x">,
      #dist.storage<memory = transient, bytes = 16, label = "exp">,
      #dist.storage<memory = output, bytes = 16, label = "y">,
      #dist.storage<memory = constant, bytes = 16, label = "c">]} {
  func.func @forward(%x: tensor<4xf32> {dist.value = "x", dist.memory = #dist.memory<input>, dist.storage = 0 : i64}) -> (tensor<2x2xf32> {dist.value = "y", dist.memory = #dist.memory<output>})
      attributes {dist.kind = "forward"} {
    %0 = nn.constant {value = dense<1.0> : tensor<4xf32>, dist.storage = array<i64: 3>} : () -> tensor<4xf32>
    %1 = nn.add %x, %0 {dist.storage = array<i64: 1>} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %2 = nn.reshape %1 {dist.view, dist.storage = array<i64: 1>} : (tensor<4xf32>) -> tensor<2x2xf32>
    %3 = dist.copy %2 {dist.storage = array<i64: 2>} : (tensor<2x2xf32>) -> tensor<2x2xf32>
    return %3 : tensor<2x2xf32>
  }
  func.func @update(%y: tensor<2x2xf32> {dist.value = "y", dist.memory = #dist.memory<output>, dist.storage = 2 : i64}) attributes {dist.kind = "update"} {
    return
  }
}

// -----

module attributes {dist.mesh = #dist.mesh<"dp=1">, dist.actions = #dist.actions<init = [], step = [@forward 0, @update 0]>,
    dist.storages = []} {
  // expected-error @+1 {{a value of @forward lies in storage 0 (dist.storage); there are 0}}
  func.func @forward(%x: tensor<4xf32> {dist.value = "x", dist.memory = #dist.memory<input>, dist.storage = 0 : i64}) -> (tensor<2x2xf32> {dist.value = "y", dist.memory = #dist.memory<output>})
      attributes {dist.kind = "forward"} {
    %0 = nn.constant {value = dense<1.0> : tensor<4xf32>, dist.storage = array<i64: 3>} : () -> tensor<4xf32>
    %1 = nn.add %x, %0 {dist.storage = array<i64: 1>} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %2 = nn.reshape %1 {dist.view, dist.storage = array<i64: 1>} : (tensor<4xf32>) -> tensor<2x2xf32>
    %3 = dist.copy %2 {dist.storage = array<i64: 2>} : (tensor<2x2xf32>) -> tensor<2x2xf32>
    return %3 : tensor<2x2xf32>
  }
  func.func @update(%y: tensor<2x2xf32> {dist.value = "y", dist.memory = #dist.memory<output>, dist.storage = 2 : i64}) attributes {dist.kind = "update"} {
    return
  }
}

// -----

// expected-error @+1 {{the submesh has no dist.storages; --weft-assign-storage writes it}}
module attributes {dist.mesh = #dist.mesh<"dp=1">, dist.actions = #dist.actions<init = [], step = [@forward 0, @update 0]>} {
  func.func @forward(%x: tensor<4xf32> {dist.value = "x", dist.memory = #dist.memory<input>, dist.storage = 0 : i64}) -> (tensor<2x2xf32> {dist.value = "y", dist.memory = #dist.memory<output>})
      attributes {dist.kind = "forward"} {
    %0 = nn.constant {value = dense<1.0> : tensor<4xf32>, dist.storage = array<i64: 3>} : () -> tensor<4xf32>
    %1 = nn.add %x, %0 {dist.storage = array<i64: 1>} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %2 = nn.reshape %1 {dist.view, dist.storage = array<i64: 1>} : (tensor<4xf32>) -> tensor<2x2xf32>
    %3 = dist.copy %2 {dist.storage = array<i64: 2>} : (tensor<2x2xf32>) -> tensor<2x2xf32>
    return %3 : tensor<2x2xf32>
  }
  func.func @update(%y: tensor<2x2xf32> {dist.value = "y", dist.memory = #dist.memory<output>, dist.storage = 2 : i64}) attributes {dist.kind = "update"} {
    return
  }
}

// -----

module attributes {dist.mesh = #dist.mesh<"dp=1">, dist.actions = #dist.actions<init = [], step = [@forward 0, @update 0]>,
    dist.storages = [#dist.storage<memory = input, bytes = 16, label = "x">,
      #dist.storage<memory = transient, bytes = 16, label = "exp">,
      #dist.storage<memory = output, bytes = 16, label = "y">,
      #dist.storage<memory = constant, bytes = 16, label = "c">]} {
  func.func @forward(%x: tensor<4xf32> {dist.value = "x", dist.memory = #dist.memory<input>, dist.storage = 0 : i64}) -> (tensor<2x2xf32> {dist.value = "y", dist.memory = #dist.memory<output>})
      attributes {dist.kind = "forward"} {
    %0 = nn.constant {value = dense<1.0> : tensor<4xf32>, dist.storage = array<i64: 3>} : () -> tensor<4xf32>
    // expected-error @+1 {{a value of @forward lies in storage -1 (dist.storage); there are 4}}
    %1 = nn.add %x, %0 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %2 = nn.reshape %1 {dist.view, dist.storage = array<i64: 1>} : (tensor<4xf32>) -> tensor<2x2xf32>
    %3 = dist.copy %2 {dist.storage = array<i64: 2>} : (tensor<2x2xf32>) -> tensor<2x2xf32>
    return %3 : tensor<2x2xf32>
  }
  func.func @update(%y: tensor<2x2xf32> {dist.value = "y", dist.memory = #dist.memory<output>, dist.storage = 2 : i64}) attributes {dist.kind = "update"} {
    return
  }
}

// -----

module attributes {dist.mesh = #dist.mesh<"dp=1">, dist.actions = #dist.actions<init = [], step = [@forward 0, @update 0]>,
    dist.storages = [#dist.storage<memory = input, bytes = 16, label = "x">,
      #dist.storage<memory = transient, bytes = 16, label = "exp">,
      #dist.storage<memory = output, bytes = 16, label = "y">,
      #dist.storage<memory = constant, bytes = 16, label = "c">]} {
  func.func @forward(%x: tensor<4xf32> {dist.value = "x", dist.memory = #dist.memory<input>, dist.storage = 0 : i64}) -> (tensor<2x2xf32> {dist.value = "y", dist.memory = #dist.memory<output>})
      attributes {dist.kind = "forward"} {
    %0 = nn.constant {value = dense<1.0> : tensor<4xf32>, dist.storage = array<i64: 3>} : () -> tensor<4xf32>
    // expected-error @+1 {{a value of @forward lies in storage -1 (dist.storage); there are 4}}
    %1 = nn.add %x, %0 {dist.storage = array<i64>} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %2 = nn.reshape %1 {dist.view, dist.storage = array<i64: 1>} : (tensor<4xf32>) -> tensor<2x2xf32>
    %3 = dist.copy %2 {dist.storage = array<i64: 2>} : (tensor<2x2xf32>) -> tensor<2x2xf32>
    return %3 : tensor<2x2xf32>
  }
  func.func @update(%y: tensor<2x2xf32> {dist.value = "y", dist.memory = #dist.memory<output>, dist.storage = 2 : i64}) attributes {dist.kind = "update"} {
    return
  }
}

// -----

module attributes {dist.mesh = #dist.mesh<"dp=1">, dist.actions = #dist.actions<init = [], step = [@forward 0, @update 0]>,
    dist.storages = [#dist.storage<memory = input, bytes = 16, label = "x">,
      #dist.storage<memory = transient, bytes = 16, label = "exp">,
      #dist.storage<memory = output, bytes = 16, label = "y">,
      #dist.storage<memory = constant, bytes = 16, label = "c">]} {
  func.func @forward(%x: tensor<4xf32> {dist.value = "x", dist.memory = #dist.memory<input>, dist.storage = 0 : i64}) -> (tensor<2x2xf32> {dist.value = "y", dist.memory = #dist.memory<output>})
      attributes {dist.kind = "forward"} {
    %0 = nn.constant {value = dense<1.0> : tensor<4xf32>, dist.storage = array<i64: 3>} : () -> tensor<4xf32>
    // expected-error @+1 {{a value of @forward lies in storage 4 (dist.storage); there are 4}}
    %1 = nn.add %x, %0 {dist.storage = array<i64: 4>} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %2 = nn.reshape %1 {dist.view, dist.storage = array<i64: 1>} : (tensor<4xf32>) -> tensor<2x2xf32>
    %3 = dist.copy %2 {dist.storage = array<i64: 2>} : (tensor<2x2xf32>) -> tensor<2x2xf32>
    return %3 : tensor<2x2xf32>
  }
  func.func @update(%y: tensor<2x2xf32> {dist.value = "y", dist.memory = #dist.memory<output>, dist.storage = 2 : i64}) attributes {dist.kind = "update"} {
    return
  }
}

// -----

module attributes {dist.mesh = #dist.mesh<"dp=1">, dist.actions = #dist.actions<init = [], step = [@forward 0, @update 0]>,
    dist.storages = [#dist.storage<memory = input, bytes = 16, label = "x">,
      #dist.storage<memory = workspace, bytes = 16, label = "exp">,
      #dist.storage<memory = output, bytes = 16, label = "y">,
      #dist.storage<memory = constant, bytes = 16, label = "c">]} {
  func.func @forward(%x: tensor<4xf32> {dist.value = "x", dist.memory = #dist.memory<input>, dist.storage = 0 : i64}) -> (tensor<2x2xf32> {dist.value = "y", dist.memory = #dist.memory<output>})
      attributes {dist.kind = "forward"} {
    %0 = nn.constant {value = dense<1.0> : tensor<4xf32>, dist.storage = array<i64: 3>} : () -> tensor<4xf32>
    // expected-error @+1 {{a value of @forward lies in storage 1, which is mailbox or workspace}}
    %1 = nn.add %x, %0 {dist.storage = array<i64: 1>} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %2 = nn.reshape %1 {dist.view, dist.storage = array<i64: 1>} : (tensor<4xf32>) -> tensor<2x2xf32>
    %3 = dist.copy %2 {dist.storage = array<i64: 2>} : (tensor<2x2xf32>) -> tensor<2x2xf32>
    return %3 : tensor<2x2xf32>
  }
  func.func @update(%y: tensor<2x2xf32> {dist.value = "y", dist.memory = #dist.memory<output>, dist.storage = 2 : i64}) attributes {dist.kind = "update"} {
    return
  }
}

// -----

module attributes {dist.mesh = #dist.mesh<"dp=1">, dist.actions = #dist.actions<init = [], step = [@forward 0, @update 0]>,
    dist.storages = [#dist.storage<memory = input, bytes = 16, label = "x">,
      #dist.storage<memory = transient, bytes = 12, label = "exp">,
      #dist.storage<memory = output, bytes = 16, label = "y">,
      #dist.storage<memory = constant, bytes = 16, label = "c">]} {
  func.func @forward(%x: tensor<4xf32> {dist.value = "x", dist.memory = #dist.memory<input>, dist.storage = 0 : i64}) -> (tensor<2x2xf32> {dist.value = "y", dist.memory = #dist.memory<output>})
      attributes {dist.kind = "forward"} {
    %0 = nn.constant {value = dense<1.0> : tensor<4xf32>, dist.storage = array<i64: 3>} : () -> tensor<4xf32>
    // expected-error @+1 {{a value of @forward has 16 bytes, its storage 1 has 12}}
    %1 = nn.add %x, %0 {dist.storage = array<i64: 1>} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %2 = nn.reshape %1 {dist.view, dist.storage = array<i64: 1>} : (tensor<4xf32>) -> tensor<2x2xf32>
    %3 = dist.copy %2 {dist.storage = array<i64: 2>} : (tensor<2x2xf32>) -> tensor<2x2xf32>
    return %3 : tensor<2x2xf32>
  }
  func.func @update(%y: tensor<2x2xf32> {dist.value = "y", dist.memory = #dist.memory<output>, dist.storage = 2 : i64}) attributes {dist.kind = "update"} {
    return
  }
}

// -----

module attributes {dist.mesh = #dist.mesh<"dp=1">, dist.actions = #dist.actions<init = [], step = [@forward 0, @update 0]>,
    dist.storages = [#dist.storage<memory = input, bytes = 16, label = "x">,
      #dist.storage<memory = transient, bytes = 16, label = "exp">,
      #dist.storage<memory = output, bytes = 16, label = "y">,
      #dist.storage<memory = constant, bytes = 16, label = "c">]} {
  func.func @forward(%x: tensor<4xf32> {dist.value = "x", dist.memory = #dist.memory<input>, dist.storage = 0 : i64}) -> (tensor<2x2xf32> {dist.value = "y", dist.memory = #dist.memory<output>})
      attributes {dist.kind = "forward"} {
    %0 = nn.constant {value = dense<1.0> : tensor<4xf32>, dist.storage = array<i64: 3>} : () -> tensor<4xf32>
    %1 = nn.add %x, %0 {dist.storage = array<i64: 1>} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %2 = nn.reshape %1 {dist.view, dist.storage = array<i64: 1>} : (tensor<4xf32>) -> tensor<2x2xf32>
    %3 = dist.copy %2 {dist.storage = array<i64: 2>} : (tensor<2x2xf32>) -> tensor<2x2xf32>
    return %3 : tensor<2x2xf32>
  }
  // expected-error @+1 {{storage 1 is transient; @forward and @update cannot both use it}}
  func.func @update(%y: tensor<2x2xf32> {dist.value = "y", dist.memory = #dist.memory<output>, dist.storage = 1 : i64}) attributes {dist.kind = "update"} {
    return
  }
}

// -----

module attributes {dist.mesh = #dist.mesh<"dp=1">, dist.actions = #dist.actions<init = [], step = [@forward 0, @update 0]>,
    dist.storages = [#dist.storage<memory = input, bytes = 16, label = "x">,
      #dist.storage<memory = transient, bytes = 16, label = "exp">,
      #dist.storage<memory = output, bytes = 16, label = "y">,
      #dist.storage<memory = constant, bytes = 16, label = "c">]} {
  func.func @forward(%x: tensor<4xf32> {dist.value = "x", dist.memory = #dist.memory<input>, dist.storage = 0 : i64}) -> (tensor<2x2xf32> {dist.value = "y", dist.memory = #dist.memory<output>})
      attributes {dist.kind = "forward"} {
    %0 = nn.constant {value = dense<1.0> : tensor<4xf32>, dist.storage = array<i64: 3>} : () -> tensor<4xf32>
    %1 = nn.add %x, %0 {dist.storage = array<i64: 1>} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    // expected-error @+1 {{the view lies in storage 2, what it is a view of in 1}}
    %2 = nn.reshape %1 {dist.view, dist.storage = array<i64: 2>} : (tensor<4xf32>) -> tensor<2x2xf32>
    %3 = dist.copy %2 {dist.storage = array<i64: 2>} : (tensor<2x2xf32>) -> tensor<2x2xf32>
    return %3 : tensor<2x2xf32>
  }
  func.func @update(%y: tensor<2x2xf32> {dist.value = "y", dist.memory = #dist.memory<output>, dist.storage = 2 : i64}) attributes {dist.kind = "update"} {
    return
  }
}

// -----

module attributes {dist.mesh = #dist.mesh<"dp=1">, dist.actions = #dist.actions<init = [], step = [@forward 0, @update 0]>,
    dist.storages = [#dist.storage<memory = input, bytes = 16, label = "x">,
      #dist.storage<memory = transient, bytes = 16, label = "exp">,
      #dist.storage<memory = output, bytes = 16, label = "y">,
      #dist.storage<memory = constant, bytes = 16, label = "c">]} {
  func.func @forward(%x: tensor<4xf32> {dist.value = "x", dist.memory = #dist.memory<input>, dist.storage = 0 : i64}) -> (tensor<2x2xf32> {dist.value = "y", dist.memory = #dist.memory<output>})
      attributes {dist.kind = "forward"} {
    %0 = nn.constant {value = dense<1.0> : tensor<4xf32>, dist.storage = array<i64: 3>} : () -> tensor<4xf32>
    // expected-error @+1 {{nn.add cannot be a view (dist.view); it makes bytes of its own}}
    %1 = nn.add %x, %0 {dist.view, dist.storage = array<i64: 0>} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %2 = nn.reshape %1 {dist.view, dist.storage = array<i64: 1>} : (tensor<4xf32>) -> tensor<2x2xf32>
    %3 = dist.copy %2 {dist.storage = array<i64: 2>} : (tensor<2x2xf32>) -> tensor<2x2xf32>
    return %3 : tensor<2x2xf32>
  }
  func.func @update(%y: tensor<2x2xf32> {dist.value = "y", dist.memory = #dist.memory<output>, dist.storage = 2 : i64}) attributes {dist.kind = "update"} {
    return
  }
}

// -----

module attributes {dist.mesh = #dist.mesh<"dp=1">, dist.actions = #dist.actions<init = [], step = [@forward 0, @update 0]>,
    dist.storages = [#dist.storage<memory = input, bytes = 16, label = "x">,
      #dist.storage<memory = transient, bytes = 16, label = "exp">,
      #dist.storage<memory = output, bytes = 16, label = "y">,
      #dist.storage<memory = constant, bytes = 16, label = "c">]} {
  func.func @forward(%x: tensor<4xf32> {dist.value = "x", dist.memory = #dist.memory<input>, dist.storage = 0 : i64}) -> (tensor<2x2xf32> {dist.value = "y", dist.memory = #dist.memory<output>})
      attributes {dist.kind = "forward"} {
    %0 = nn.constant {value = dense<1.0> : tensor<4xf32>, dist.storage = array<i64: 3>} : () -> tensor<4xf32>
    // expected-error @+1 {{nn.add writes constant memory}}
    %1 = nn.add %x, %0 {dist.storage = array<i64: 3>} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %2 = nn.reshape %1 {dist.view, dist.storage = array<i64: 1>} : (tensor<4xf32>) -> tensor<2x2xf32>
    %3 = dist.copy %2 {dist.storage = array<i64: 2>} : (tensor<2x2xf32>) -> tensor<2x2xf32>
    return %3 : tensor<2x2xf32>
  }
  func.func @update(%y: tensor<2x2xf32> {dist.value = "y", dist.memory = #dist.memory<output>, dist.storage = 2 : i64}) attributes {dist.kind = "update"} {
    return
  }
}

// -----

module attributes {dist.mesh = #dist.mesh<"dp=1">, dist.actions = #dist.actions<init = [], step = [@forward 0, @update 0]>,
    dist.storages = [#dist.storage<memory = input, bytes = 16, label = "x">,
      #dist.storage<memory = transient, bytes = 16, label = "exp">,
      #dist.storage<memory = output, bytes = 16, label = "y">,
      #dist.storage<memory = constant, bytes = 16, label = "c">]} {
  func.func @forward(%x: tensor<4xf32> {dist.value = "x", dist.memory = #dist.memory<input>, dist.storage = 0 : i64}) -> (tensor<2x2xf32> {dist.value = "y", dist.memory = #dist.memory<output>})
      attributes {dist.kind = "forward"} {
    // expected-error @+1 {{nn.constant does not lie in constant memory}}
    %0 = nn.constant {value = dense<1.0> : tensor<4xf32>, dist.storage = array<i64: 1>} : () -> tensor<4xf32>
    %1 = nn.add %x, %0 {dist.storage = array<i64: 1>} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %2 = nn.reshape %1 {dist.view, dist.storage = array<i64: 1>} : (tensor<4xf32>) -> tensor<2x2xf32>
    %3 = dist.copy %2 {dist.storage = array<i64: 2>} : (tensor<2x2xf32>) -> tensor<2x2xf32>
    return %3 : tensor<2x2xf32>
  }
  func.func @update(%y: tensor<2x2xf32> {dist.value = "y", dist.memory = #dist.memory<output>, dist.storage = 2 : i64}) attributes {dist.kind = "update"} {
    return
  }
}

// -----

module attributes {dist.mesh = #dist.mesh<"dp=1">, dist.actions = #dist.actions<init = [], step = [@forward 0, @update 0]>,
    dist.storages = [#dist.storage<memory = input, bytes = 16, label = "x">,
      #dist.storage<memory = transient, bytes = 16, label = "exp">,
      #dist.storage<memory = output, bytes = 16, label = "y">,
      #dist.storage<memory = constant, bytes = 16, label = "c">]} {
  func.func @forward(%x: tensor<4xf32> {dist.value = "x", dist.memory = #dist.memory<input>, dist.storage = 0 : i64}) -> (tensor<2x2xf32> {dist.value = "y", dist.memory = #dist.memory<output>})
      attributes {dist.kind = "forward"} {
    %0 = nn.constant {value = dense<1.0> : tensor<4xf32>, dist.storage = array<i64: 3>} : () -> tensor<4xf32>
    %1 = nn.add %x, %0 {dist.storage = array<i64: 1>} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %2 = nn.reshape %1 {dist.view, dist.storage = array<i64: 1>} : (tensor<4xf32>) -> tensor<2x2xf32>
    %3 = dist.copy %2 {dist.storage = array<i64: 2>} : (tensor<2x2xf32>) -> tensor<2x2xf32>
    // expected-error @+1 {{nn.exp stands behind a copy; copies are the end of a function}}
    %4 = nn.exp %2 {dist.storage = array<i64: 1>} : (tensor<2x2xf32>) -> tensor<2x2xf32>
    return %3 : tensor<2x2xf32>
  }
  func.func @update(%y: tensor<2x2xf32> {dist.value = "y", dist.memory = #dist.memory<output>, dist.storage = 2 : i64}) attributes {dist.kind = "update"} {
    return
  }
}

// -----

module attributes {dist.mesh = #dist.mesh<"dp=1">, dist.actions = #dist.actions<init = [], step = [@forward 0, @update 0]>,
    dist.storages = [#dist.storage<memory = input, bytes = 16, label = "x">,
      #dist.storage<memory = transient, bytes = 16, label = "exp">,
      #dist.storage<memory = output, bytes = 16, label = "y">,
      #dist.storage<memory = constant, bytes = 16, label = "c">]} {
  func.func @forward(%x: tensor<4xf32> {dist.value = "x", dist.memory = #dist.memory<input>, dist.storage = 0 : i64}) -> (tensor<2x2xf32> {dist.value = "y", dist.memory = #dist.memory<output>})
      attributes {dist.kind = "forward"} {
    %0 = nn.constant {value = dense<1.0> : tensor<4xf32>, dist.storage = array<i64: 3>} : () -> tensor<4xf32>
    %1 = nn.add %x, %0 {dist.storage = array<i64: 1>} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    // expected-error @+1 {{'y' lies in storage 1, which is transient: it would be lost}}
    %2 = nn.reshape %1 {dist.view, dist.storage = array<i64: 1>} : (tensor<4xf32>) -> tensor<2x2xf32>
    %3 = dist.copy %2 {dist.storage = array<i64: 2>} : (tensor<2x2xf32>) -> tensor<2x2xf32>
    return %2 : tensor<2x2xf32>
  }
  func.func @update(%y: tensor<2x2xf32> {dist.value = "y", dist.memory = #dist.memory<output>, dist.storage = 2 : i64}) attributes {dist.kind = "update"} {
    return
  }
}

// -----

module attributes {dist.mesh = #dist.mesh<"dp=1">, dist.actions = #dist.actions<init = [], step = [@forward 0, @update 0]>,
    dist.storages = [#dist.storage<memory = input, bytes = 16, label = "x">,
      #dist.storage<memory = transient, bytes = 16, label = "exp">,
      #dist.storage<memory = output, bytes = 16, label = "y">,
      #dist.storage<memory = constant, bytes = 16, label = "c">]} {
  func.func @forward(%x: tensor<4xf32> {dist.value = "x", dist.memory = #dist.memory<input>, dist.storage = 0 : i64}) -> (tensor<2x2xf32> {dist.value = "y", dist.memory = #dist.memory<output>})
      attributes {dist.kind = "forward"} {
    %0 = nn.constant {value = dense<1.0> : tensor<4xf32>, dist.storage = array<i64: 3>} : () -> tensor<4xf32>
    %1 = nn.add %x, %0 {dist.storage = array<i64: 1>} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %2 = nn.reshape %1 {dist.view, dist.storage = array<i64: 1>} : (tensor<4xf32>) -> tensor<2x2xf32>
    %3 = dist.copy %2 {dist.storage = array<i64: 2>} : (tensor<2x2xf32>) -> tensor<2x2xf32>
    return %3 : tensor<2x2xf32>
  }
  // expected-error @+1 {{'y' lies in storage 0 here, and in 2 before}}
  func.func @update(%y: tensor<2x2xf32> {dist.value = "y", dist.memory = #dist.memory<output>, dist.storage = 0 : i64}) attributes {dist.kind = "update"} {
    return
  }
}
