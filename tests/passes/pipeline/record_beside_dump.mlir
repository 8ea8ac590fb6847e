// A dump keeps the decisions record beside its modules; weft-opt reads it from there.
// RUN: rm -rf %t && weft compile %s -o %t.plan --dump-dir %t
// RUN: FileCheck %s --check-prefix=FILE --input-file %t/05-assign-layouts.mlir
// RUN: weft-opt %t/05-assign-layouts.mlir | FileCheck %s --check-prefix=WHOLE
// RUN: weft-opt %t/04-decide.mlir --weft-compile=from=decide | FileCheck %s --check-prefix=RESUMED
// RUN: not weft-opt < %t/04-decide.mlir 2>&1 | FileCheck %s --check-prefix=INPUT
// RUN: rm %t/decisions.json && not weft-opt %t/04-decide.mlir 2>&1 | FileCheck %s --check-prefix=MISSING

// FILE-NOT: dist.decisions =
// FILE: dist.decisions_file = "decisions.json"
// WHOLE-NOT: dist.decisions_file
// WHOLE: dist.decisions = #dist.decisions<"{
// RESUMED: func.func @forward
// INPUT: error: the module keeps its decisions record in 'decisions.json' beside its file, and the standard input has no folder
// INPUT-NOT: see current operation
// MISSING: error: {{.*}}04-decide.mlir: cannot read '{{.*}}decisions.json', the decisions record of the module; copy decisions.json
module attributes {dist.mesh = #dist.mesh<"dp=2">} {
  func.func @step(%x: tensor<4x3xf32> {nn.kind = "input", nn.name = "x"})
      -> (tensor<4x3xf32> {nn.kind = "output", nn.name = "y"}) {
    %y = nn.exp %x : (tensor<4x3xf32>) -> tensor<4x3xf32>
    return %y : tensor<4x3xf32>
  }
}
