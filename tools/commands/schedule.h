// `weft schedule`: a pipeline schedule, generated or from a file, checked and simulated.
#pragma once

namespace weft::tools {

// weft schedule --kind K --stages P --micro M [--virtual V] [--times f=1,i=1,w=1,comm=0] [--csv|--json|--timeline]
// weft schedule --file TABLE.csv ...
int scheduleCommand(int argc, char** argv);

}  // namespace weft::tools
