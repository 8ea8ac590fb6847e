// `weft plan --ops GRAPH.json [--effort F] [--json]`: a strategy graph from elsewhere, solved.
#pragma once

#include "absl/status/status.h"
#include "tools/commands/flags.h"

namespace weft::tools {

// Of `weft plan`, for its help.
std::vector<Flag> planOpsFlags();

// Prints the choice, or with --json as an object. Errors: those of parseStrategyGraph and chooseStrategies, a bad
// effort, and that there is no choice within the limit, or none was found; the object is printed then, too.
absl::Status planOps(const Flags& flags);

}  // namespace weft::tools
