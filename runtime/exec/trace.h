// Profiles as files that trace viewers read.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "runtime/exec/rank.h"

namespace weft {

// Chrome's trace event format (chrome://tracing, Perfetto): one row per rank, times in microseconds from the first
// event. Error: unwritable file (path, reason).
absl::Status writeChromeTrace(const std::vector<std::unique_ptr<Rank>>& ranks, const std::string& path);

}  // namespace weft
