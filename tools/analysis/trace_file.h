// A trace of a plan's run, as runtime/exec/trace.h writes it. Times are seconds.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace weft::tools {

struct TraceSpan {
  double begin = 0;
  double end = 0;
};

struct TraceInstruction {
  TraceSpan span;
  std::string label;
  std::string kernel;
};

// A call of a function.
struct TraceCall {
  std::string function;
  int64_t microBatch = 0;
  TraceSpan span;
  std::vector<TraceInstruction> instructions;
};

struct Trace {
  std::vector<TraceSpan> steps;               // of the host
  std::vector<std::vector<TraceCall>> calls;  // of each rank, in its order
};

// For a plan of `ranks` ranks. Errors: an unreadable file, one that is no trace (what is missing), one with more ranks.
absl::StatusOr<Trace> readTrace(const std::string& path, int64_t ranks);

// The error of a trace that does not fit a plan: `why` with a remedy.
absl::Status otherPlan(const std::string& why);

}  // namespace weft::tools
