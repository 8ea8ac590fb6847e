// RUN: weft-opt %s -weft-verify-scheduled -split-input-file -verify-diagnostics | FileCheck %s

// CHECK: module @submesh0
module attributes {dist.mesh = #dist.mesh<"dp=1,micro=2">, dist.submeshes = array<i64: 0, 1>, dist.schedule = "gpipe", dist.virtual = 1 : i64} {
  module @submesh0 attributes {dist.mesh = #dist.mesh<"dp=1,micro=2">, dist.actions = #dist.actions<init = [], step = [@forward 0, @forward 1]>,
      dist.storages = [#dist.storage<memory = input, bytes = 16, label = "x", offset = 0>,
        #dist.storage<memory = input, bytes = 16, label = "y", offset = 64>,
        #dist.storage<memory = activation, bytes = 16, label = "a", offset = 0, ring = 1>,
        #dist.storage<memory = transient, bytes = 80, label = "t", offset = 0>,
        #dist.storage<memory = transient, bytes = 16, label = "u", offset = 128>],
      dist.regions = [#dist.region<memory = input, bytes = 128, max_live = 128, lower_bound = 128>,
        #dist.region<memory = activation, bytes = 0, max_live = 0, lower_bound = 0>,
        #dist.region<memory = activation, bytes = 64, max_live = 64, lower_bound = 64, ring = 1, slots = 2>,
        #dist.region<memory = transient, bytes = 192, max_live = 192, lower_bound = 192>,
        #dist.region<memory = workspace, bytes = 2097152, max_live = 0, lower_bound = 0>,
        #dist.region<memory = mailbox, bytes = 192, max_live = 192, lower_bound = 192>]} {
    func.func @forward(%x: tensor<2x2xf32> {dist.value = "x", dist.memory = #dist.memory<input>, dist.storage = 0 : i64}, %y: tensor<2x2xf32> {dist.value = "y", dist.memory = #dist.memory<input>, dist.storage = 1 : i64})
        -> (tensor<2x2xf32> {dist.value = "a", dist.memory = #dist.memory<activation>}) attributes {dist.kind = "forward"} {
      %0 = dist.receive {channel = 0 : i64, submesh = 1 : i64, capacity = 2 : i64, mailbox = 0 : i64, dist.storage = array<i64: 3>} : () -> tensor<2x2xf32>
      %1 = dist.receive {channel = 1 : i64, submesh = 1 : i64, capacity = 2 : i64, mailbox = 64 : i64, dist.storage = array<i64: 4>} : () -> tensor<2x2xf32>
      %2 = nn.matmul %0, %1 {dist.storage = array<i64: 2>} : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
      return %2 : tensor<2x2xf32>
    }
  }
  module @submesh1 attributes {dist.mesh = #dist.mesh<"dp=1,micro=2">, dist.actions = #dist.actions<init = [], step = []>, dist.storages = [], dist.regions = []} {}
}

// -----

module attributes {dist.mesh = #dist.mesh<"dp=1,micro=2">, dist.submeshes = array<i64: 0, 1>, dist.schedule = "gpipe", dist.virtual = 1 : i64} {
  // expected-error @+1 {{the submesh has no dist.regions; --weft-plan-memory writes it}}
  module @submesh0 attributes {dist.mesh = #dist.mesh<"dp=1,micro=2">, dist.actions = #dist.actions<init = [], step = [@forward 0, @forward 1]>,
      dist.storages = [#dist.storage<memory = input, bytes = 16, label = "x", offset = 0>,
        #dist.storage<memory = input, bytes = 16, label = "y", offset = 64>,
        #dist.storage<memory = activation, bytes = 16, label = "a", offset = 0, ring = 1>,
        #dist.storage<memory = transient, bytes = 80, label = "t", offset = 0>,
        #dist.storage<memory = transient, bytes = 16, label = "u", offset = 128>]} {
    func.func @forward(%x: tensor<2x2xf32> {dist.value = "x", dist.memory = #dist.memory<input>, dist.storage = 0 : i64}, %y: tensor<2x2xf32> {dist.value = "y", dist.memory = #dist.memory<input>, dist.storage = 1 : i64})
        -> (tensor<2x2xf32> {dist.value = "a", dist.memory = #dist.memory<activation>}) attributes {dist.kind = "forward"} {
      %0 = dist.receive {channel = 0 : i64, submesh = 1 : i64, capacity = 2 : i64, mailbox = 0 : i64, dist.storage = array<i64: 3>} : () -> tensor<2x2xf32>
      %1 = dist.receive {channel = 1 : i64, submesh = 1 : i64, capacity = 2 : i64, mailbox = 64 : i64, dist.storage = array<i64: 4>} : () -> tensor<2x2xf32>
      %2 = nn.matmul %0, %1 {dist.storage = array<i64: 2>} : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
      return %2 : tensor<2x2xf32>
    }
  }
  module @submesh1 attributes {dist.mesh = #dist.mesh<"dp=1,micro=2">, dist.actions = #dist.actions<init = [], step = []>, dist.storages = [], dist.regions = []} {}
}

// -----

module attributes {dist.mesh = #dist.mesh<"dp=1,micro=2">, dist.submeshes = array<i64: 0, 1>, dist.schedule = "gpipe", dist.virtual = 1 : i64} {
  // expected-error @+1 {{the region of activation, ring 0 stands twice, or not in the order of memory and rings, in dist.regions}}
  module @submesh0 attributes {dist.mesh = #dist.mesh<"dp=1,micro=2">, dist.actions = #dist.actions<init = [], step = [@forward 0, @forward 1]>,
      dist.storages = [#dist.storage<memory = input, bytes = 16, label = "x", offset = 0>,
        #dist.storage<memory = input, bytes = 16, label = "y", offset = 64>,
        #dist.storage<memory = activation, bytes = 16, label = "a", offset = 0, ring = 1>,
        #dist.storage<memory = transient, bytes = 80, label = "t", offset = 0>,
        #dist.storage<memory = transient, bytes = 16, label = "u", offset = 128>],
      dist.regions = [#dist.region<memory = input, bytes = 128, max_live = 128, lower_bound = 128>,
        #dist.region<memory = activation, bytes = 0, max_live = 0, lower_bound = 0>,
        #dist.region<memory = activation, bytes = 64, max_live = 64, lower_bound = 64, slots = 2>,
        #dist.region<memory = transient, bytes = 192, max_live = 192, lower_bound = 192>,
        #dist.region<memory = workspace, bytes = 2097152, max_live = 0, lower_bound = 0>,
        #dist.region<memory = mailbox, bytes = 192, max_live = 192, lower_bound = 192>]} {
    func.func @forward(%x: tensor<2x2xf32> {dist.value = "x", dist.memory = #dist.memory<input>, dist.storage = 0 : i64}, %y: tensor<2x2xf32> {dist.value = "y", dist.memory = #dist.memory<input>, dist.storage = 1 : i64})
        -> (tensor<2x2xf32> {dist.value = "a", dist.memory = #dist.memory<activation>}) attributes {dist.kind = "forward"} {
      %0 = dist.receive {channel = 0 : i64, submesh = 1 : i64, capacity = 2 : i64, mailbox = 0 : i64, dist.storage = array<i64: 3>} : () -> tensor<2x2xf32>
      %1 = dist.receive {channel = 1 : i64, submesh = 1 : i64, capacity = 2 : i64, mailbox = 64 : i64, dist.storage = array<i64: 4>} : () -> tensor<2x2xf32>
      %2 = nn.matmul %0, %1 {dist.storage = array<i64: 2>} : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
      return %2 : tensor<2x2xf32>
    }
  }
  module @submesh1 attributes {dist.mesh = #dist.mesh<"dp=1,micro=2">, dist.actions = #dist.actions<init = [], step = []>, dist.storages = [], dist.regions = []} {}
}

// -----

module attributes {dist.mesh = #dist.mesh<"dp=1,micro=2">, dist.submeshes = array<i64: 0, 1>, dist.schedule = "gpipe", dist.virtual = 1 : i64} {
  // expected-error @+1 {{the region of transient stands twice, or not in the order}}
  module @submesh0 attributes {dist.mesh = #dist.mesh<"dp=1,micro=2">, dist.actions = #dist.actions<init = [], step = [@forward 0, @forward 1]>,
      dist.storages = [#dist.storage<memory = input, bytes = 16, label = "x", offset = 0>,
        #dist.storage<memory = input, bytes = 16, label = "y", offset = 64>,
        #dist.storage<memory = activation, bytes = 16, label = "a", offset = 0, ring = 1>,
        #dist.storage<memory = transient, bytes = 80, label = "t", offset = 0>,
        #dist.storage<memory = transient, bytes = 16, label = "u", offset = 128>],
      dist.regions = [#dist.region<memory = input, bytes = 128, max_live = 128, lower_bound = 128>,
        #dist.region<memory = activation, bytes = 0, max_live = 0, lower_bound = 0>,
        #dist.region<memory = activation, bytes = 64, max_live = 64, lower_bound = 64, ring = 1, slots = 2>,
        #dist.region<memory = transient, bytes = 192, max_live = 192, lower_bound = 192, ring = 1>,
        #dist.region<memory = workspace, bytes = 2097152, max_live = 0, lower_bound = 0>,
        #dist.region<memory = mailbox, bytes = 192, max_live = 192, lower_bound = 192>]} {
    func.func @forward(%x: tensor<2x2xf32> {dist.value = "x", dist.memory = #dist.memory<input>, dist.storage = 0 : i64}, %y: tensor<2x2xf32> {dist.value = "y", dist.memory = #dist.memory<input>, dist.storage = 1 : i64})
        -> (tensor<2x2xf32> {dist.value = "a", dist.memory = #dist.memory<activation>}) attributes {dist.kind = "forward"} {
      %0 = dist.receive {channel = 0 : i64, submesh = 1 : i64, capacity = 2 : i64, mailbox = 0 : i64, dist.storage = array<i64: 3>} : () -> tensor<2x2xf32>
      %1 = dist.receive {channel = 1 : i64, submesh = 1 : i64, capacity = 2 : i64, mailbox = 64 : i64, dist.storage = array<i64: 4>} : () -> tensor<2x2xf32>
      %2 = nn.matmul %0, %1 {dist.storage = array<i64: 2>} : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
      return %2 : tensor<2x2xf32>
    }
  }
  module @submesh1 attributes {dist.mesh = #dist.mesh<"dp=1,micro=2">, dist.actions = #dist.actions<init = [], step = []>, dist.storages = [], dist.regions = []} {}
}

// -----

module attributes {dist.mesh = #dist.mesh<"dp=1,micro=2">, dist.submeshes = array<i64: 0, 1>, dist.schedule = "gpipe", dist.virtual = 1 : i64} {
  // expected-error @+1 {{the region of activation, ring 1 has 3 slots; it may have 2}}
  module @submesh0 attributes {dist.mesh = #dist.mesh<"dp=1,micro=2">, dist.actions = #dist.actions<init = [], step = [@forward 0, @forward 1]>,
      dist.storages = [#dist.storage<memory = input, bytes = 16, label = "x", offset = 0>,
        #dist.storage<memory = input, bytes = 16, label = "y", offset = 64>,
        #dist.storage<memory = activation, bytes = 16, label = "a", offset = 0, ring = 1>,
        #dist.storage<memory = transient, bytes = 80, label = "t", offset = 0>,
        #dist.storage<memory = transient, bytes = 16, label = "u", offset = 128>],
      dist.regions = [#dist.region<memory = input, bytes = 128, max_live = 128, lower_bound = 128>,
        #dist.region<memory = activation, bytes = 0, max_live = 0, lower_bound = 0>,
        #dist.region<memory = activation, bytes = 64, max_live = 64, lower_bound = 64, ring = 1, slots = 3>,
        #dist.region<memory = transient, bytes = 192, max_live = 192, lower_bound = 192>,
        #dist.region<memory = workspace, bytes = 2097152, max_live = 0, lower_bound = 0>,
        #dist.region<memory = mailbox, bytes = 192, max_live = 192, lower_bound = 192>]} {
    func.func @forward(%x: tensor<2x2xf32> {dist.value = "x", dist.memory = #dist.memory<input>, dist.storage = 0 : i64}, %y: tensor<2x2xf32> {dist.value = "y", dist.memory = #dist.memory<input>, dist.storage = 1 : i64})
        -> (tensor<2x2xf32> {dist.value = "a", dist.memory = #dist.memory<activation>}) attributes {dist.kind = "forward"} {
      %0 = dist.receive {channel = 0 : i64, submesh = 1 : i64, capacity = 2 : i64, mailbox = 0 : i64, dist.storage = array<i64: 3>} : () -> tensor<2x2xf32>
      %1 = dist.receive {channel = 1 : i64, submesh = 1 : i64, capacity = 2 : i64, mailbox = 64 : i64, dist.storage = array<i64: 4>} : () -> tensor<2x2xf32>
      %2 = nn.matmul %0, %1 {dist.storage = array<i64: 2>} : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
      return %2 : tensor<2x2xf32>
    }
  }
  module @submesh1 attributes {dist.mesh = #dist.mesh<"dp=1,micro=2">, dist.actions = #dist.actions<init = [], step = []>, dist.storages = [], dist.regions = []} {}
}

// -----

module attributes {dist.mesh = #dist.mesh<"dp=1,micro=2">, dist.submeshes = array<i64: 0, 1>, dist.schedule = "gpipe", dist.virtual = 1 : i64} {
  // expected-error @+1 {{the region of input has 2 slots; it may have 1}}
  module @submesh0 attributes {dist.mesh = #dist.mesh<"dp=1,micro=2">, dist.actions = #dist.actions<init = [], step = [@forward 0, @forward 1]>,
      dist.storages = [#dist.storage<memory = input, bytes = 16, label = "x", offset = 0>,
        #dist.storage<memory = input, bytes = 16, label = "y", offset = 64>,
        #dist.storage<memory = activation, bytes = 16, label = "a", offset = 0, ring = 1>,
        #dist.storage<memory = transient, bytes = 80, label = "t", offset = 0>,
        #dist.storage<memory = transient, bytes = 16, label = "u", offset = 128>],
      dist.regions = [#dist.region<memory = input, bytes = 128, max_live = 128, lower_bound = 128, slots = 2>,
        #dist.region<memory = activation, bytes = 0, max_live = 0, lower_bound = 0>,
        #dist.region<memory = activation, bytes = 64, max_live = 64, lower_bound = 64, ring = 1, slots = 2>,
        #dist.region<memory = transient, bytes = 192, max_live = 192, lower_bound = 192>,
        #dist.region<memory = workspace, bytes = 2097152, max_live = 0, lower_bound = 0>,
        #dist.region<memory = mailbox, bytes = 192, max_live = 192, lower_bound = 192>]} {
    func.func @forward(%x: tensor<2x2xf32> {dist.value = "x", dist.memory = #dist.memory<input>, dist.storage = 0 : i64}, %y: tensor<2x2xf32> {dist.value = "y", dist.memory = #dist.memory<input>, dist.storage = 1 : i64})
        -> (tensor<2x2xf32> {dist.value = "a", dist.memory = #dist.memory<activation>}) attributes {dist.kind = "forward"} {
      %0 = dist.receive {channel = 0 : i64, submesh = 1 : i64, capacity = 2 : i64, mailbox = 0 : i64, dist.storage = array<i64: 3>} : () -> tensor<2x2xf32>
      %1 = dist.receive {channel = 1 : i64, submesh = 1 : i64, capacity = 2 : i64, mailbox = 64 : i64, dist.storage = array<i64: 4>} : () -> tensor<2x2xf32>
      %2 = nn.matmul %0, %1 {dist.storage = array<i64: 2>} : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
      return %2 : tensor<2x2xf32>
    }
  }
  module @submesh1 attributes {dist.mesh = #dist.mesh<"dp=1,micro=2">, dist.actions = #dist.actions<init = [], step = []>, dist.storages = [], dist.regions = []} {}
}

// -----

module attributes {dist.mesh = #dist.mesh<"dp=1,micro=2">, dist.submeshes = array<i64: 0, 1>, dist.schedule = "gpipe", dist.virtual = 1 : i64} {
  // expected-error @+1 {{the region of input has 128 bytes, and says that 129 are in use at once and that it cannot be below 128}}
  module @submesh0 attributes {dist.mesh = #dist.mesh<"dp=1,micro=2">, dist.actions = #dist.actions<init = [], step = [@forward 0, @forward 1]>,
      dist.storages = [#dist.storage<memory = input, bytes = 16, label = "x", offset = 0>,
        #dist.storage<memory = input, bytes = 16, label = "y", offset = 64>,
        #dist.storage<memory = activation, bytes = 16, label = "a", offset = 0, ring = 1>,
        #dist.storage<memory = transient, bytes = 80, label = "t", offset = 0>,
        #dist.storage<memory = transient, bytes = 16, label = "u", offset = 128>],
      dist.regions = [#dist.region<memory = input, bytes = 128, max_live = 129, lower_bound = 128>,
        #dist.region<memory = activation, bytes = 0, max_live = 0, lower_bound = 0>,
        #dist.region<memory = activation, bytes = 64, max_live = 64, lower_bound = 64, ring = 1, slots = 2>,
        #dist.region<memory = transient, bytes = 192, max_live = 192, lower_bound = 192>,
        #dist.region<memory = workspace, bytes = 2097152, max_live = 0, lower_bound = 0>,
        #dist.region<memory = mailbox, bytes = 192, max_live = 192, lower_bound = 192>]} {
    func.func @forward(%x: tensor<2x2xf32> {dist.value = "x", dist.memory = #dist.memory<input>, dist.storage = 0 : i64}, %y: tensor<2x2xf32> {dist.value = "y", dist.memory = #dist.memory<input>, dist.storage = 1 : i64})
        -> (tensor<2x2xf32> {dist.value = "a", dist.memory = #dist.memory<activation>}) attributes {dist.kind = "forward"} {
      %0 = dist.receive {channel = 0 : i64, submesh = 1 : i64, capacity = 2 : i64, mailbox = 0 : i64, dist.storage = array<i64: 3>} : () -> tensor<2x2xf32>
      %1 = dist.receive {channel = 1 : i64, submesh = 1 : i64, capacity = 2 : i64, mailbox = 64 : i64, dist.storage = array<i64: 4>} : () -> tensor<2x2xf32>
      %2 = nn.matmul %0, %1 {dist.storage = array<i64: 2>} : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
      return %2 : tensor<2x2xf32>
    }
  }
  module @submesh1 attributes {dist.mesh = #dist.mesh<"dp=1,micro=2">, dist.actions = #dist.actions<init = [], step = []>, dist.storages = [], dist.regions = []} {}
}

// -----

module attributes {dist.mesh = #dist.mesh<"dp=1,micro=2">, dist.submeshes = array<i64: 0, 1>, dist.schedule = "gpipe", dist.virtual = 1 : i64} {
  // expected-error @+1 {{storage 2 ('a') lies with 16 bytes at -1; it should be inside of the 64 bytes of activation, ring 1, at a multiple of 64}}
  module @submesh0 attributes {dist.mesh = #dist.mesh<"dp=1,micro=2">, dist.actions = #dist.actions<init = [], step = [@forward 0, @forward 1]>,
      dist.storages = [#dist.storage<memory = input, bytes = 16, label = "x", offset = 0>,
        #dist.storage<memory = input, bytes = 16, label = "y", offset = 64>,
        #dist.storage<memory = activation, bytes = 16, label = "a", ring = 1>,
        #dist.storage<memory = transient, bytes = 80, label = "t", offset = 0>,
        #dist.storage<memory = transient, bytes = 16, label = "u", offset = 128>],
      dist.regions = [#dist.region<memory = input, bytes = 128, max_live = 128, lower_bound = 128>,
        #dist.region<memory = activation, bytes = 0, max_live = 0, lower_bound = 0>,
        #dist.region<memory = activation, bytes = 64, max_live = 64, lower_bound = 64, ring = 1, slots = 2>,
        #dist.region<memory = transient, bytes = 192, max_live = 192, lower_bound = 192>,
        #dist.region<memory = workspace, bytes = 2097152, max_live = 0, lower_bound = 0>,
        #dist.region<memory = mailbox, bytes = 192, max_live = 192, lower_bound = 192>]} {
    func.func @forward(%x: tensor<2x2xf32> {dist.value = "x", dist.memory = #dist.memory<input>, dist.storage = 0 : i64}, %y: tensor<2x2xf32> {dist.value = "y", dist.memory = #dist.memory<input>, dist.storage = 1 : i64})
        -> (tensor<2x2xf32> {dist.value = "a", dist.memory = #dist.memory<activation>}) attributes {dist.kind = "forward"} {
      %0 = dist.receive {channel = 0 : i64, submesh = 1 : i64, capacity = 2 : i64, mailbox = 0 : i64, dist.storage = array<i64: 3>} : () -> tensor<2x2xf32>
      %1 = dist.receive {channel = 1 : i64, submesh = 1 : i64, capacity = 2 : i64, mailbox = 64 : i64, dist.storage = array<i64: 4>} : () -> tensor<2x2xf32>
      %2 = nn.matmul %0, %1 {dist.storage = array<i64: 2>} : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
      return %2 : tensor<2x2xf32>
    }
  }
  module @submesh1 attributes {dist.mesh = #dist.mesh<"dp=1,micro=2">, dist.actions = #dist.actions<init = [], step = []>, dist.storages = [], dist.regions = []} {}
}

// -----

module attributes {dist.mesh = #dist.mesh<"dp=1,micro=2">, dist.submeshes = array<i64: 0, 1>, dist.schedule = "gpipe", dist.virtual = 1 : i64} {
  // expected-error @+1 {{storage 1 ('y') lies with 16 bytes at 32; it should be inside of the 128 bytes of input, at a multiple of 64}}
  module @submesh0 attributes {dist.mesh = #dist.mesh<"dp=1,micro=2">, dist.actions = #dist.actions<init = [], step = [@forward 0, @forward 1]>,
      dist.storages = [#dist.storage<memory = input, bytes = 16, label = "x", offset = 0>,
        #dist.storage<memory = input, bytes = 16, label = "y", offset = 32>,
        #dist.storage<memory = activation, bytes = 16, label = "a", offset = 0, ring = 1>,
        #dist.storage<memory = transient, bytes = 80, label = "t", offset = 0>,
        #dist.storage<memory = transient, bytes = 16, label = "u", offset = 128>],
      dist.regions = [#dist.region<memory = input, bytes = 128, max_live = 128, lower_bound = 128>,
        #dist.region<memory = activation, bytes = 0, max_live = 0, lower_bound = 0>,
        #dist.region<memory = activation, bytes = 64, max_live = 64, lower_bound = 64, ring = 1, slots = 2>,
        #dist.region<memory = transient, bytes = 192, max_live = 192, lower_bound = 192>,
        #dist.region<memory = workspace, bytes = 2097152, max_live = 0, lower_bound = 0>,
        #dist.region<memory = mailbox, bytes = 192, max_live = 192, lower_bound = 192>]} {
    func.func @forward(%x: tensor<2x2xf32> {dist.value = "x", dist.memory = #dist.memory<input>, dist.storage = 0 : i64}, %y: tensor<2x2xf32> {dist.value = "y", dist.memory = #dist.memory<input>, dist.storage = 1 : i64})
        -> (tensor<2x2xf32> {dist.value = "a", dist.memory = #dist.memory<activation>}) attributes {dist.kind = "forward"} {
      %0 = dist.receive {channel = 0 : i64, submesh = 1 : i64, capacity = 2 : i64, mailbox = 0 : i64, dist.storage = array<i64: 3>} : () -> tensor<2x2xf32>
      %1 = dist.receive {channel = 1 : i64, submesh = 1 : i64, capacity = 2 : i64, mailbox = 64 : i64, dist.storage = array<i64: 4>} : () -> tensor<2x2xf32>
      %2 = nn.matmul %0, %1 {dist.storage = array<i64: 2>} : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
      return %2 : tensor<2x2xf32>
    }
  }
  module @submesh1 attributes {dist.mesh = #dist.mesh<"dp=1,micro=2">, dist.actions = #dist.actions<init = [], step = []>, dist.storages = [], dist.regions = []} {}
}

// -----

module attributes {dist.mesh = #dist.mesh<"dp=1,micro=2">, dist.submeshes = array<i64: 0, 1>, dist.schedule = "gpipe", dist.virtual = 1 : i64} {
  // expected-error @+1 {{storage 1 ('y') lies with 16 bytes at 128; it should be inside of the 128 bytes of input}}
  module @submesh0 attributes {dist.mesh = #dist.mesh<"dp=1,micro=2">, dist.actions = #dist.actions<init = [], step = [@forward 0, @forward 1]>,
      dist.storages = [#dist.storage<memory = input, bytes = 16, label = "x", offset = 0>,
        #dist.storage<memory = input, bytes = 16, label = "y", offset = 128>,
        #dist.storage<memory = activation, bytes = 16, label = "a", offset = 0, ring = 1>,
        #dist.storage<memory = transient, bytes = 80, label = "t", offset = 0>,
        #dist.storage<memory = transient, bytes = 16, label = "u", offset = 128>],
      dist.regions = [#dist.region<memory = input, bytes = 128, max_live = 128, lower_bound = 128>,
        #dist.region<memory = activation, bytes = 0, max_live = 0, lower_bound = 0>,
        #dist.region<memory = activation, bytes = 64, max_live = 64, lower_bound = 64, ring = 1, slots = 2>,
        #dist.region<memory = transient, bytes = 192, max_live = 192, lower_bound = 192>,
        #dist.region<memory = workspace, bytes = 2097152, max_live = 0, lower_bound = 0>,
        #dist.region<memory = mailbox, bytes = 192, max_live = 192, lower_bound = 192>]} {
    func.func @forward(%x: tensor<2x2xf32> {dist.value = "x", dist.memory = #dist.memory<input>, dist.storage = 0 : i64}, %y: tensor<2x2xf32> {dist.value = "y", dist.memory = #dist.memory<input>, dist.storage = 1 : i64})
        -> (tensor<2x2xf32> {dist.value = "a", dist.memory = #dist.memory<activation>}) attributes {dist.kind = "forward"} {
      %0 = dist.receive {channel = 0 : i64, submesh = 1 : i64, capacity = 2 : i64, mailbox = 0 : i64, dist.storage = array<i64: 3>} : () -> tensor<2x2xf32>
      %1 = dist.receive {channel = 1 : i64, submesh = 1 : i64, capacity = 2 : i64, mailbox = 64 : i64, dist.storage = array<i64: 4>} : () -> tensor<2x2xf32>
      %2 = nn.matmul %0, %1 {dist.storage = array<i64: 2>} : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
      return %2 : tensor<2x2xf32>
    }
  }
  module @submesh1 attributes {dist.mesh = #dist.mesh<"dp=1,micro=2">, dist.actions = #dist.actions<init = [], step = []>, dist.storages = [], dist.regions = []} {}
}

// -----

module attributes {dist.mesh = #dist.mesh<"dp=1,micro=2">, dist.submeshes = array<i64: 0, 1>, dist.schedule = "gpipe", dist.virtual = 1 : i64} {
  // expected-error @+1 {{storage 1 ('y') lies with 16 bytes at 281474976710656; it should be inside}}
  module @submesh0 attributes {dist.mesh = #dist.mesh<"dp=1,micro=2">, dist.actions = #dist.actions<init = [], step = [@forward 0, @forward 1]>,
      dist.storages = [#dist.storage<memory = input, bytes = 16, label = "x", offset = 0>,
        #dist.storage<memory = input, bytes = 16, label = "y", offset = 281474976710656>,
        #dist.storage<memory = activation, bytes = 16, label = "a", offset = 0, ring = 1>,
        #dist.storage<memory = transient, bytes = 80, label = "t", offset = 0>,
        #dist.storage<memory = transient, bytes = 16, label = "u", offset = 128>],
      dist.regions = [#dist.region<memory = input, bytes = 128, max_live = 128, lower_bound = 128>,
        #dist.region<memory = activation, bytes = 0, max_live = 0, lower_bound = 0>,
        #dist.region<memory = activation, bytes = 64, max_live = 64, lower_bound = 64, ring = 1, slots = 2>,
        #dist.region<memory = transient, bytes = 192, max_live = 192, lower_bound = 192>,
        #dist.region<memory = workspace, bytes = 2097152, max_live = 0, lower_bound = 0>,
        #dist.region<memory = mailbox, bytes = 192, max_live = 192, lower_bound = 192>]} {
    func.func @forward(%x: tensor<2x2xf32> {dist.value = "x", dist.memory = #dist.memory<input>, dist.storage = 0 : i64}, %y: tensor<2x2xf32> {dist.value = "y", dist.memory = #dist.memory<input>, dist.storage = 1 : i64})
        -> (tensor<2x2xf32> {dist.value = "a", dist.memory = #dist.memory<activation>}) attributes {dist.kind = "forward"} {
      %0 = dist.receive {channel = 0 : i64, submesh = 1 : i64, capacity = 2 : i64, mailbox = 0 : i64, dist.storage = array<i64: 3>} : () -> tensor<2x2xf32>
      %1 = dist.receive {channel = 1 : i64, submesh = 1 : i64, capacity = 2 : i64, mailbox = 64 : i64, dist.storage = array<i64: 4>} : () -> tensor<2x2xf32>
      %2 = nn.matmul %0, %1 {dist.storage = array<i64: 2>} : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
      return %2 : tensor<2x2xf32>
    }
  }
  module @submesh1 attributes {dist.mesh = #dist.mesh<"dp=1,micro=2">, dist.actions = #dist.actions<init = [], step = []>, dist.storages = [], dist.regions = []} {}
}

// -----

module attributes {dist.mesh = #dist.mesh<"dp=1,micro=2">, dist.submeshes = array<i64: 0, 1>, dist.schedule = "gpipe", dist.virtual = 1 : i64} {
  // expected-error @+1 {{storage 2 ('a') lies in a region that is not there, that of activation, ring 2}}
  module @submesh0 attributes {dist.mesh = #dist.mesh<"dp=1,micro=2">, dist.actions = #dist.actions<init = [], step = [@forward 0, @forward 1]>,
      dist.storages = [#dist.storage<memory = input, bytes = 16, label = "x", offset = 0>,
        #dist.storage<memory = input, bytes = 16, label = "y", offset = 64>,
        #dist.storage<memory = activation, bytes = 16, label = "a", offset = 0, ring = 2>,
        #dist.storage<memory = transient, bytes = 80, label = "t", offset = 0>,
        #dist.storage<memory = transient, bytes = 16, label = "u", offset = 128>],
      dist.regions = [#dist.region<memory = input, bytes = 128, max_live = 128, lower_bound = 128>,
        #dist.region<memory = activation, bytes = 0, max_live = 0, lower_bound = 0>,
        #dist.region<memory = activation, bytes = 64, max_live = 64, lower_bound = 64, ring = 1, slots = 2>,
        #dist.region<memory = transient, bytes = 192, max_live = 192, lower_bound = 192>,
        #dist.region<memory = workspace, bytes = 2097152, max_live = 0, lower_bound = 0>,
        #dist.region<memory = mailbox, bytes = 192, max_live = 192, lower_bound = 192>]} {
    func.func @forward(%x: tensor<2x2xf32> {dist.value = "x", dist.memory = #dist.memory<input>, dist.storage = 0 : i64}, %y: tensor<2x2xf32> {dist.value = "y", dist.memory = #dist.memory<input>, dist.storage = 1 : i64})
        -> (tensor<2x2xf32> {dist.value = "a", dist.memory = #dist.memory<activation>}) attributes {dist.kind = "forward"} {
      %0 = dist.receive {channel = 0 : i64, submesh = 1 : i64, capacity = 2 : i64, mailbox = 0 : i64, dist.storage = array<i64: 3>} : () -> tensor<2x2xf32>
      %1 = dist.receive {channel = 1 : i64, submesh = 1 : i64, capacity = 2 : i64, mailbox = 64 : i64, dist.storage = array<i64: 4>} : () -> tensor<2x2xf32>
      %2 = nn.matmul %0, %1 {dist.storage = array<i64: 2>} : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
      return %2 : tensor<2x2xf32>
    }
  }
  module @submesh1 attributes {dist.mesh = #dist.mesh<"dp=1,micro=2">, dist.actions = #dist.actions<init = [], step = []>, dist.storages = [], dist.regions = []} {}
}

// -----

module attributes {dist.mesh = #dist.mesh<"dp=1,micro=2">, dist.submeshes = array<i64: 0, 1>, dist.schedule = "gpipe", dist.virtual = 1 : i64} {
  // expected-error @+1 {{the region of workspace has 64 bytes; a kernel needs }}
  module @submesh0 attributes {dist.mesh = #dist.mesh<"dp=1,micro=2">, dist.actions = #dist.actions<init = [], step = [@forward 0, @forward 1]>,
      dist.storages = [#dist.storage<memory = input, bytes = 16, label = "x", offset = 0>,
        #dist.storage<memory = input, bytes = 16, label = "y", offset = 64>,
        #dist.storage<memory = activation, bytes = 16, label = "a", offset = 0, ring = 1>,
        #dist.storage<memory = transient, bytes = 80, label = "t", offset = 0>,
        #dist.storage<memory = transient, bytes = 16, label = "u", offset = 128>],
      dist.regions = [#dist.region<memory = input, bytes = 128, max_live = 128, lower_bound = 128>,
        #dist.region<memory = activation, bytes = 0, max_live = 0, lower_bound = 0>,
        #dist.region<memory = activation, bytes = 64, max_live = 64, lower_bound = 64, ring = 1, slots = 2>,
        #dist.region<memory = transient, bytes = 192, max_live = 192, lower_bound = 192>,
        #dist.region<memory = workspace, bytes = 64, max_live = 0, lower_bound = 0>,
        #dist.region<memory = mailbox, bytes = 192, max_live = 192, lower_bound = 192>]} {
    func.func @forward(%x: tensor<2x2xf32> {dist.value = "x", dist.memory = #dist.memory<input>, dist.storage = 0 : i64}, %y: tensor<2x2xf32> {dist.value = "y", dist.memory = #dist.memory<input>, dist.storage = 1 : i64})
        -> (tensor<2x2xf32> {dist.value = "a", dist.memory = #dist.memory<activation>}) attributes {dist.kind = "forward"} {
      %0 = dist.receive {channel = 0 : i64, submesh = 1 : i64, capacity = 2 : i64, mailbox = 0 : i64, dist.storage = array<i64: 3>} : () -> tensor<2x2xf32>
      %1 = dist.receive {channel = 1 : i64, submesh = 1 : i64, capacity = 2 : i64, mailbox = 64 : i64, dist.storage = array<i64: 4>} : () -> tensor<2x2xf32>
      %2 = nn.matmul %0, %1 {dist.storage = array<i64: 2>} : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
      return %2 : tensor<2x2xf32>
    }
  }
  module @submesh1 attributes {dist.mesh = #dist.mesh<"dp=1,micro=2">, dist.actions = #dist.actions<init = [], step = []>, dist.storages = [], dist.regions = []} {}
}

// -----

module attributes {dist.mesh = #dist.mesh<"dp=1,micro=2">, dist.submeshes = array<i64: 0, 1>, dist.schedule = "gpipe", dist.virtual = 1 : i64} {
  // expected-error @+1 {{storages 0 ('x') and 1 ('y') share bytes while both are in use}}
  module @submesh0 attributes {dist.mesh = #dist.mesh<"dp=1,micro=2">, dist.actions = #dist.actions<init = [], step = [@forward 0, @forward 1]>,
      dist.storages = [#dist.storage<memory = input, bytes = 16, label = "x", offset = 0>,
        #dist.storage<memory = input, bytes = 16, label = "y", offset = 0>,
        #dist.storage<memory = activation, bytes = 16, label = "a", offset = 0, ring = 1>,
        #dist.storage<memory = transient, bytes = 80, label = "t", offset = 0>,
        #dist.storage<memory = transient, bytes = 16, label = "u", offset = 128>],
      dist.regions = [#dist.region<memory = input, bytes = 128, max_live = 128, lower_bound = 128>,
        #dist.region<memory = activation, bytes = 0, max_live = 0, lower_bound = 0>,
        #dist.region<memory = activation, bytes = 64, max_live = 64, lower_bound = 64, ring = 1, slots = 2>,
        #dist.region<memory = transient, bytes = 192, max_live = 192, lower_bound = 192>,
        #dist.region<memory = workspace, bytes = 2097152, max_live = 0, lower_bound = 0>,
        #dist.region<memory = mailbox, bytes = 192, max_live = 192, lower_bound = 192>]} {
    func.func @forward(%x: tensor<2x2xf32> {dist.value = "x", dist.memory = #dist.memory<input>, dist.storage = 0 : i64}, %y: tensor<2x2xf32> {dist.value = "y", dist.memory = #dist.memory<input>, dist.storage = 1 : i64})
        -> (tensor<2x2xf32> {dist.value = "a", dist.memory = #dist.memory<activation>}) attributes {dist.kind = "forward"} {
      %0 = dist.receive {channel = 0 : i64, submesh = 1 : i64, capacity = 2 : i64, mailbox = 0 : i64, dist.storage = array<i64: 3>} : () -> tensor<2x2xf32>
      %1 = dist.receive {channel = 1 : i64, submesh = 1 : i64, capacity = 2 : i64, mailbox = 64 : i64, dist.storage = array<i64: 4>} : () -> tensor<2x2xf32>
      %2 = nn.matmul %0, %1 {dist.storage = array<i64: 2>} : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
      return %2 : tensor<2x2xf32>
    }
  }
  module @submesh1 attributes {dist.mesh = #dist.mesh<"dp=1,micro=2">, dist.actions = #dist.actions<init = [], step = []>, dist.storages = [], dist.regions = []} {}
}

// -----

module attributes {dist.mesh = #dist.mesh<"dp=1,micro=2">, dist.submeshes = array<i64: 0, 1>, dist.schedule = "gpipe", dist.virtual = 1 : i64} {
  // expected-error @+1 {{storages 3 ('t') and 4 ('u') share bytes while both are in use}}
  module @submesh0 attributes {dist.mesh = #dist.mesh<"dp=1,micro=2">, dist.actions = #dist.actions<init = [], step = [@forward 0, @forward 1]>,
      dist.storages = [#dist.storage<memory = input, bytes = 16, label = "x", offset = 0>,
        #dist.storage<memory = input, bytes = 16, label = "y", offset = 64>,
        #dist.storage<memory = activation, bytes = 16, label = "a", offset = 0, ring = 1>,
        #dist.storage<memory = transient, bytes = 80, label = "t", offset = 0>,
        #dist.storage<memory = transient, bytes = 16, label = "u", offset = 64>],
      dist.regions = [#dist.region<memory = input, bytes = 128, max_live = 128, lower_bound = 128>,
        #dist.region<memory = activation, bytes = 0, max_live = 0, lower_bound = 0>,
        #dist.region<memory = activation, bytes = 64, max_live = 64, lower_bound = 64, ring = 1, slots = 2>,
        #dist.region<memory = transient, bytes = 192, max_live = 192, lower_bound = 192>,
        #dist.region<memory = workspace, bytes = 2097152, max_live = 0, lower_bound = 0>,
        #dist.region<memory = mailbox, bytes = 192, max_live = 192, lower_bound = 192>]} {
    func.func @forward(%x: tensor<2x2xf32> {dist.value = "x", dist.memory = #dist.memory<input>, dist.storage = 0 : i64}, %y: tensor<2x2xf32> {dist.value = "y", dist.memory = #dist.memory<input>, dist.storage = 1 : i64})
        -> (tensor<2x2xf32> {dist.value = "a", dist.memory = #dist.memory<activation>}) attributes {dist.kind = "forward"} {
      %0 = dist.receive {channel = 0 : i64, submesh = 1 : i64, capacity = 2 : i64, mailbox = 0 : i64, dist.storage = array<i64: 3>} : () -> tensor<2x2xf32>
      %1 = dist.receive {channel = 1 : i64, submesh = 1 : i64, capacity = 2 : i64, mailbox = 64 : i64, dist.storage = array<i64: 4>} : () -> tensor<2x2xf32>
      %2 = nn.matmul %0, %1 {dist.storage = array<i64: 2>} : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
      return %2 : tensor<2x2xf32>
    }
  }
  module @submesh1 attributes {dist.mesh = #dist.mesh<"dp=1,micro=2">, dist.actions = #dist.actions<init = [], step = []>, dist.storages = [], dist.regions = []} {}
}

// -----

module attributes {dist.mesh = #dist.mesh<"dp=1,micro=2">, dist.submeshes = array<i64: 0, 1>, dist.schedule = "gpipe", dist.virtual = 1 : i64} {
  module @submesh0 attributes {dist.mesh = #dist.mesh<"dp=1,micro=2">, dist.actions = #dist.actions<init = [], step = [@forward 0, @forward 1]>,
      dist.storages = [#dist.storage<memory = input, bytes = 16, label = "x", offset = 0>,
        #dist.storage<memory = input, bytes = 16, label = "y", offset = 64>,
        #dist.storage<memory = activation, bytes = 16, label = "a", offset = 0, ring = 1>,
        #dist.storage<memory = transient, bytes = 80, label = "t", offset = 0>,
        #dist.storage<memory = transient, bytes = 16, label = "u", offset = 128>],
      dist.regions = [#dist.region<memory = input, bytes = 128, max_live = 128, lower_bound = 128>,
        #dist.region<memory = activation, bytes = 0, max_live = 0, lower_bound = 0>,
        #dist.region<memory = activation, bytes = 64, max_live = 64, lower_bound = 64, ring = 1, slots = 2>,
        #dist.region<memory = transient, bytes = 192, max_live = 192, lower_bound = 192>,
        #dist.region<memory = workspace, bytes = 2097152, max_live = 0, lower_bound = 0>,
        #dist.region<memory = mailbox, bytes = 192, max_live = 192, lower_bound = 192>]} {
    func.func @forward(%x: tensor<2x2xf32> {dist.value = "x", dist.memory = #dist.memory<input>, dist.storage = 0 : i64}, %y: tensor<2x2xf32> {dist.value = "y", dist.memory = #dist.memory<input>, dist.storage = 1 : i64})
        -> (tensor<2x2xf32> {dist.value = "a", dist.memory = #dist.memory<activation>}) attributes {dist.kind = "forward"} {
      // expected-error @+1 {{the mailbox lies with 32 bytes at -1; it should be inside of the 192 bytes of mailbox, at a multiple of 64}}
      %0 = dist.receive {channel = 0 : i64, submesh = 1 : i64, capacity = 2 : i64, dist.storage = array<i64: 3>} : () -> tensor<2x2xf32>
      %1 = dist.receive {channel = 1 : i64, submesh = 1 : i64, capacity = 2 : i64, mailbox = 64 : i64, dist.storage = array<i64: 4>} : () -> tensor<2x2xf32>
      %2 = nn.matmul %0, %1 {dist.storage = array<i64: 2>} : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
      return %2 : tensor<2x2xf32>
    }
  }
  module @submesh1 attributes {dist.mesh = #dist.mesh<"dp=1,micro=2">, dist.actions = #dist.actions<init = [], step = []>, dist.storages = [], dist.regions = []} {}
}

// -----

module attributes {dist.mesh = #dist.mesh<"dp=1,micro=2">, dist.submeshes = array<i64: 0, 1>, dist.schedule = "gpipe", dist.virtual = 1 : i64} {
  module @submesh0 attributes {dist.mesh = #dist.mesh<"dp=1,micro=2">, dist.actions = #dist.actions<init = [], step = [@forward 0, @forward 1]>,
      dist.storages = [#dist.storage<memory = input, bytes = 16, label = "x", offset = 0>,
        #dist.storage<memory = input, bytes = 16, label = "y", offset = 64>,
        #dist.storage<memory = activation, bytes = 16, label = "a", offset = 0, ring = 1>,
        #dist.storage<memory = transient, bytes = 80, label = "t", offset = 0>,
        #dist.storage<memory = transient, bytes = 16, label = "u", offset = 128>],
      dist.regions = [#dist.region<memory = input, bytes = 128, max_live = 128, lower_bound = 128>,
        #dist.region<memory = activation, bytes = 0, max_live = 0, lower_bound = 0>,
        #dist.region<memory = activation, bytes = 64, max_live = 64, lower_bound = 64, ring = 1, slots = 2>,
        #dist.region<memory = transient, bytes = 192, max_live = 192, lower_bound = 192>,
        #dist.region<memory = workspace, bytes = 2097152, max_live = 0, lower_bound = 0>,
        #dist.region<memory = mailbox, bytes = 192, max_live = 192, lower_bound = 192>]} {
    func.func @forward(%x: tensor<2x2xf32> {dist.value = "x", dist.memory = #dist.memory<input>, dist.storage = 0 : i64}, %y: tensor<2x2xf32> {dist.value = "y", dist.memory = #dist.memory<input>, dist.storage = 1 : i64})
        -> (tensor<2x2xf32> {dist.value = "a", dist.memory = #dist.memory<activation>}) attributes {dist.kind = "forward"} {
      %0 = dist.receive {channel = 0 : i64, submesh = 1 : i64, capacity = 2 : i64, mailbox = 0 : i64, dist.storage = array<i64: 3>} : () -> tensor<2x2xf32>
      // expected-error @+1 {{the mailbox lies with 32 bytes at 192; it should be inside of the 192 bytes of mailbox}}
      %1 = dist.receive {channel = 1 : i64, submesh = 1 : i64, capacity = 2 : i64, mailbox = 192 : i64, dist.storage = array<i64: 4>} : () -> tensor<2x2xf32>
      %2 = nn.matmul %0, %1 {dist.storage = array<i64: 2>} : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
      return %2 : tensor<2x2xf32>
    }
  }
  module @submesh1 attributes {dist.mesh = #dist.mesh<"dp=1,micro=2">, dist.actions = #dist.actions<init = [], step = []>, dist.storages = [], dist.regions = []} {}
}

// -----

module attributes {dist.mesh = #dist.mesh<"dp=1,micro=2">, dist.submeshes = array<i64: 0, 1>, dist.schedule = "gpipe", dist.virtual = 1 : i64} {
  module @submesh0 attributes {dist.mesh = #dist.mesh<"dp=1,micro=2">, dist.actions = #dist.actions<init = [], step = [@forward 0, @forward 1]>,
      dist.storages = [#dist.storage<memory = input, bytes = 16, label = "x", offset = 0>,
        #dist.storage<memory = input, bytes = 16, label = "y", offset = 64>,
        #dist.storage<memory = activation, bytes = 16, label = "a", offset = 0, ring = 1>,
        #dist.storage<memory = transient, bytes = 80, label = "t", offset = 0>,
        #dist.storage<memory = transient, bytes = 16, label = "u", offset = 128>],
      dist.regions = [#dist.region<memory = input, bytes = 128, max_live = 128, lower_bound = 128>,
        #dist.region<memory = activation, bytes = 0, max_live = 0, lower_bound = 0>,
        #dist.region<memory = activation, bytes = 64, max_live = 64, lower_bound = 64, ring = 1, slots = 2>,
        #dist.region<memory = transient, bytes = 192, max_live = 192, lower_bound = 192>,
        #dist.region<memory = workspace, bytes = 2097152, max_live = 0, lower_bound = 0>,
        #dist.region<memory = mailbox, bytes = 192, max_live = 192, lower_bound = 192>]} {
    func.func @forward(%x: tensor<2x2xf32> {dist.value = "x", dist.memory = #dist.memory<input>, dist.storage = 0 : i64}, %y: tensor<2x2xf32> {dist.value = "y", dist.memory = #dist.memory<input>, dist.storage = 1 : i64})
        -> (tensor<2x2xf32> {dist.value = "a", dist.memory = #dist.memory<activation>}) attributes {dist.kind = "forward"} {
      %0 = dist.receive {channel = 0 : i64, submesh = 1 : i64, capacity = 2 : i64, mailbox = 0 : i64, dist.storage = array<i64: 3>} : () -> tensor<2x2xf32>
      // expected-error @+1 {{the mailbox of 32 bytes at 0 overlaps another}}
      %1 = dist.receive {channel = 1 : i64, submesh = 1 : i64, capacity = 2 : i64, mailbox = 0 : i64, dist.storage = array<i64: 4>} : () -> tensor<2x2xf32>
      %2 = nn.matmul %0, %1 {dist.storage = array<i64: 2>} : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
      return %2 : tensor<2x2xf32>
    }
  }
  module @submesh1 attributes {dist.mesh = #dist.mesh<"dp=1,micro=2">, dist.actions = #dist.actions<init = [], step = []>, dist.storages = [], dist.regions = []} {}
}

// -----

// The calls are those of both functions, but in an order in which the second reads nothing.
module attributes {dist.mesh = #dist.mesh<"dp=1,micro=1">, dist.actions = #dist.actions<init = [], step = [@backward 0, @forward 0]>,
    dist.storages = [#dist.storage<memory = input, bytes = 16, label = "x", offset = 0>,
      #dist.storage<memory = activation, bytes = 16, label = "a", offset = 0>,
      #dist.storage<memory = transient, bytes = 16, label = "t", offset = 0>],
    dist.regions = [#dist.region<memory = input, bytes = 64, max_live = 64, lower_bound = 64>,
      #dist.region<memory = activation, bytes = 64, max_live = 64, lower_bound = 64>,
      #dist.region<memory = transient, bytes = 64, max_live = 64, lower_bound = 64>]} {
  func.func @forward(%x: tensor<2x2xf32> {dist.value = "x", dist.memory = #dist.memory<input>, dist.storage = 0 : i64})
      -> (tensor<2x2xf32> {dist.value = "a", dist.memory = #dist.memory<activation>}) attributes {dist.kind = "forward"} {
    %0 = nn.tanh %x {dist.storage = array<i64: 1>} : (tensor<2x2xf32>) -> tensor<2x2xf32>
    return %0 : tensor<2x2xf32>
  }
  // expected-error @+1 {{@backward for micro-batch 0 reads activation 'a', which no call before it writes for micro-batch 0}}
  func.func @backward(%a: tensor<2x2xf32> {dist.value = "a", dist.memory = #dist.memory<activation>, dist.storage = 1 : i64})
      attributes {dist.kind = "backward"} {
    %0 = nn.neg %a {dist.storage = array<i64: 2>} : (tensor<2x2xf32>) -> tensor<2x2xf32>
    return
  }
}
