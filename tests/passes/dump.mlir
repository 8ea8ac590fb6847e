// The module is written to the file, with the lines it came from, and stays as it is.
// RUN: weft-opt %s --weft-dump=file=%t.folder/05-decide.mlir | FileCheck %s --check-prefix=SAME
// RUN: FileCheck %s < %t.folder/05-decide.mlir
// RUN: not weft-opt %s --weft-dump=file=/dev/null/05-decide.mlir 2>&1 | FileCheck %s --check-prefix=REFUSED

// SAME: module attributes {dist.mesh = #dist.mesh<"2">} {
// SAME-NOT: loc(
// CHECK: module attributes {dist.mesh = #dist.mesh<"2">, dist.sources = {dump.mlir = "{{.*}}dump.mlir"}} {
// CHECK: loc("dump.mlir:11")
// REFUSED: error: dump of the IR: {{.*}}05-decide.mlir
module attributes {dist.mesh = #dist.mesh<"2">} {
}
