// The module says which phase has run; without a name there is nothing to say.
// RUN: weft-opt %s --weft-end-phase=phase=decide | FileCheck %s
// RUN: not weft-opt %s --weft-end-phase 2>&1 | FileCheck %s --check-prefix=REFUSED

// CHECK: module attributes {dist.mesh = #dist.mesh<"2">, dist.phase = "decide"}
// REFUSED: error: no phase to note; write --weft-end-phase=phase=NAME
module attributes {dist.mesh = #dist.mesh<"2">} {
}
