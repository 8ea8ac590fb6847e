// A plan in a few figures, for people and for other programs: what each stage has, how the classes of weights lie, the
// choices, time and memory, and how far from the best it can be at most.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "planner/cost/step_model.h"
#include "planner/cost/time_parts.h"
#include "planner/decisions.h"
#include "planner/graph/program_graph.h"
#include "planner/zero_levels.h"
#include "runtime/plan/plan.pb.h"

namespace weft {

struct StageSummary {
  std::vector<std::string> layers;  // the first parts of its parameters' names, "h0.qkv.weight" -> "h0", in order
  std::string mesh;
  int64_t ranks = 1;      // of its submesh
  std::string kind = {};  // of their devices, "fast", of several "fast+slow"; empty where the machine has no kinds
};

// Weights whose names differ in numbers of layers only, "h*.qkv.weight", lie alike and have the same level of ZeRO.
struct WeightClass {
  std::string name;
  std::string layout;
  int64_t zero = 0;
  int64_t count = 0;
};

// The rank with the highest peak.
struct MemorySummary {
  int64_t peakBytes = 0;
  int64_t stateBytes = 0;       // parameters, states on the device, gradients over micro-batches
  int64_t activationBytes = 0;  // from forward to backward, of all micro-batches in flight
  int64_t hostBytes = 0;        // of the state in the host's memory; not part of the peak
  std::map<std::string, int64_t> byClass;

  void add(plan::MemoryClass memory, int64_t bytes);
};

struct PlanSummary {
  std::vector<StageSummary> stages;
  std::vector<WeightClass> weights;
  int64_t microBatches = 1;
  std::string schedule;
  int64_t virtualStages = 1;
  int64_t zero = 0;            // ZeRO level, but of
  ZeroPatterns zeroOf;         // those that have their own; empty where all have one
  std::string zeroText = "0";  // "1 (h*.fc.weight 3)"
  std::string recompute;       // "none", "12 of 60 operators"
  // For how many operators of each kind an alternative stands; empty: for none.
  std::map<std::string, int64_t> alternatives;
  bool overlap = false;
  Offload offload = Offload::kNone;
  int64_t gatherBucket = 0;  // Decisions::gatherBucket
  double stepSeconds = 0;
  TimeParts time;  // of it; all 0: not known
  MemorySummary memory;
  double boundSeconds = 0;  // no plan of this program on this machine takes less; 0: not known

  // How much longer than the best it takes, at most: 0.05 is 5 %. Nothing is known of it without a bound.
  double gap() const { return boundSeconds > 0 ? stepSeconds / boundSeconds - 1 : 0; }
};

// Without memory and the parts of time; time and bound as they were predicted, 0 where nothing was. `parameters`:
// arguments that are weights.
PlanSummary summaryOf(const Decisions& decisions, const std::set<std::string>& parameters);

// Says of each stage which kind of devices of the machine it runs on.
void nameKinds(const Machine& machine, const Decisions& decisions, PlanSummary& summary);

// The whole plan in a few words: "2 stages of dp=2,tp=2, micro 4, ZeRO 1, 1f1b".
std::string planText(const Decisions& decisions);

MemorySummary memoryOf(const std::vector<SubmeshNeeds>& submeshes);

std::set<std::string> parameterNames(const ProgramGraph& graph);
std::set<std::string> parameterNames(const plan::Plan& plan);

// Of a compiled plan: memory as it is, time as its machine has it (planner/cost/plan_time.h). Errors: decisions or a
// machine that cannot be read.
absl::StatusOr<PlanSummary> summaryOf(const plan::Plan& plan);

}  // namespace weft
