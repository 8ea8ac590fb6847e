// `weft reshard`: the cheapest sequence of collectives from one layout of a tensor to another.
#pragma once

namespace weft::tools {

int reshardCommand(int argc, char** argv);

}  // namespace weft::tools
