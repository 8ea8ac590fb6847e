// Profiles as files that trace viewers read.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "runtime/exec/rank.h"

namespace weft {

// What the host waited for: "init" or "step".
struct HostEvent {
  const char* name = "";
  std::chrono::steady_clock::time_point begin;
  std::chrono::steady_clock::time_point end;
};

// Chrome's trace event format (chrome://tracing, Perfetto): one row per rank and one of the host, times in microseconds
// from the first event. On a rank's row an event of category "action" spans each call of a function (args: function,
// micro-batch), and inside stand its instructions, of category "kernel", "collective" or "transfer" (args: function and
// index in the rank's plan, micro-batch, kernel, flops). Events of category "step" stand on the host's row. `weft
// schedule --profile` reads such a file. Error: unwritable file (path, reason).
absl::Status writeChromeTrace(const std::vector<std::unique_ptr<Rank>>& ranks, const std::vector<HostEvent>& host,
                              const std::string& path);

}  // namespace weft
