// Reading a file as a whole.
#pragma once

#include <string>

#include "absl/status/statusor.h"

namespace weft {

// The contents of a file; the error names the path.
absl::StatusOr<std::string> readText(const std::string& path);

}  // namespace weft
