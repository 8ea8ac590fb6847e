// `weft operators`: the operators of the dialect, and what each says of itself.
#pragma once

namespace weft::tools {

// weft operators [--json]
int operatorsCommand(int argc, char** argv);

}  // namespace weft::tools
