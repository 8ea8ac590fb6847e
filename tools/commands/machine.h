// weft machine [NAME|FILE]
// weft machine -o FILE [--ranks N] [--threads N] [--seconds S]
#pragma once

namespace weft::tools {

// Prints a machine, or measures the host and writes its machine file.
int machineCommand(int argc, char** argv);

}  // namespace weft::tools
