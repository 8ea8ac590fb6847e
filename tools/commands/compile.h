// `weft compile`: a logical module (or one of a later state) to a plan file.
#pragma once

namespace weft::tools {

// weft compile MODEL.mlir -o MODEL.plan [--mesh M] [--micro N] [--zero L] [--dump-dir DIR] [--decisions FILE]
// [--save-decisions FILE]
int compileCommand(int argc, char** argv);

}  // namespace weft::tools
