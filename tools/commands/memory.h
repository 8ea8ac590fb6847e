// `weft memory`: packs a table of lifetimes, or shows the memory of a plan.
#pragma once

namespace weft::tools {

// weft memory LIFETIMES.csv [--json] [--alignment N] [--effort N]
// weft memory PLAN [--json]
int memoryCommand(int argc, char** argv);

}  // namespace weft::tools
