// `weft print`: a module of any state as a table for people.
#pragma once

namespace weft::tools {

// weft print STATE.mlir [--json]
//
// STATE.mlir is a file of a dump (--dump-dir), with its decisions.json beside it, or any module that `weft compile`
// takes.
int printCommand(int argc, char** argv);

}  // namespace weft::tools
