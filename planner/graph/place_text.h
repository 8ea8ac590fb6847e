// A place in the user's program behind what is said of it.
#pragma once

#include <string>

#include "planner/graph/program_graph.h"

namespace weft {

// " (model.cc:7)"; "" where none is known.
std::string placeText(const SourcePlace& line);

}  // namespace weft
