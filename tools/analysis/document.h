// All that the page of `weft view` shows, as one JSON document. Times are seconds, sizes bytes.
//
//   program    name, program, mesh, ranks, micro-batches, stages, schedule {kind, virtual}, zero (a text where
//   parameters have levels of their own), regather, recomputed, conflicts machine    the figures behind predicted times
//   predicted  step, prologue, micro-batches, update, bubble, peak_bytes, flops, collectives sources    "file:line",
//   the other parts name them by number; -1: unknown submeshes per submesh: ranks, stages, peak_bytes, regions,
//   buffers, functions with their operators, the calls
//              of one simulated step, the curve of its memory, and what fills the peak
//   frontier   where the record has one: plans for less and less memory, peak_bytes, step_seconds, plan
//   tensors    what the host knows by name: shapes, layout, the ranks' slices
//   executed   with a profile: the calls of one recorded step per rank; operators then have `measured`, the mean time
//   of
//              a call without waits (tools/analysis/plan_profile.h)
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "absl/status/statusor.h"
#include "planner/machine/machine.h"
#include "runtime/plan/plan.pb.h"
#include "tools/analysis/executed_step.h"
#include "tools/analysis/plan_profile.h"
#include "tools/analysis/simulate_plan.h"

namespace weft::tools {

// A recorded run of the plan.
struct ViewProfile {
  ExecutedStep step;
  PlanProfile means;
  schedule::PlanSimulation simulated;  // with the mean times
};

struct ViewInput {
  std::string name;  // of the program, for people
  const plan::Plan* plan = nullptr;
  Machine machine;
  const ViewProfile* profile = nullptr;  // null: none was given
};

// Errors: decisions that cannot be read; those of simulatePlan.
absl::StatusOr<nlohmann::ordered_json> viewDocument(const ViewInput& input);

// The name under which an operator is folded, "" for none: the first part of its label that ends in a number and is not
// the last, and what stands before a part that is only a number. "h0.qkv" and "update.h0.fc.bias" give "h0",
// "submeshes.3.fc" gives "submeshes.3".
std::string foldName(const std::string& label);

}  // namespace weft::tools
