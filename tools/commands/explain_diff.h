// `weft explain --diff A B`: what differs between two plans.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "tools/commands/flags.h"

namespace weft::tools {

// Each file is a plan, or decisions as `weft plan -o` writes them. Prints a table or, with the flag `json`, an object.
// Errors: a file that is neither.
absl::Status printDiff(const std::string& pathOfA, const std::string& pathOfB, const Flags& flags);

}  // namespace weft::tools
