// `weft advise`: what would lower the memory of a program, and at what price.
#pragma once

namespace weft::tools {

// weft advise MODEL.mlir [--mesh M --micro N --zero L --machine FILE] [--json]
//
// MODEL.mlir is a logical module: 00-input.mlir of a dump (--dump-dir), or any that `weft compile` takes.
int adviseCommand(int argc, char** argv);

}  // namespace weft::tools
