// `weft strategy`: what a strategy means for one operator.
#pragma once

namespace weft::tools {

// weft strategy OPERATOR --shapes 16,32:32,16 --strategy '(2,1),(1,4)' --devices 8 [--out-strategy S] [--attr
// NAME=VALUE ...]
int strategyCommand(int argc, char** argv);

}  // namespace weft::tools
