// What a trace of a plan's run says of its times.
//
// The file is what `--trace` of weft-run and the examples writes (runtime/exec/trace.h); all its whole steps but the
// first, in which caches and libraries warm up, are averaged. Waits are told from work by looking at both ends: a
// receive that began before its message was sent worked only from then on, a send only from when the mailbox had room,
// a collective only from when its last rank was there.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "runtime/plan/plan.pb.h"
#include "tools/analysis/simulate_plan.h"
#include "tools/analysis/trace_file.h"

namespace weft::tools {

struct PlanProfile {
  schedule::PlanTimes times;
  int64_t steps = 0;       // that were averaged
  double stepSeconds = 0;  // as the host saw them
  // The mean of simulations in which every call has the time it had in that step. What separates it from stepSeconds is
  // not modeled; what separates it from a simulation with mean times is that calls do not always take as long.
  double replayedSeconds = 0;
  double hostSeconds = 0;  // between two steps: inputs are written, outputs read; the median
};

// Errors: no readable trace; a trace of another plan (what differs); less than two whole steps.
absl::StatusOr<PlanProfile> profileOf(const plan::Plan& plan, const Trace& trace);
absl::StatusOr<PlanProfile> readProfile(const plan::Plan& plan, const std::string& path);

}  // namespace weft::tools
