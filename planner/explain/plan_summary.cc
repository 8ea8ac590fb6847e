#include "planner/explain/plan_summary.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "planner/cost/plan_time.h"
#include "planner/derive/zero_words.h"
#include "planner/graph/name_classes.h"
#include "planner/submesh_machines.h"
#include "runtime/base/arithmetic.h"
#include "runtime/base/status.h"
#include "runtime/plan/statistics.h"

namespace weft {
namespace {

std::string layerOf(const std::string& parameter) {
  return parameter.substr(0, parameter.find('.'));
}

std::string recomputeText(const Decisions& decisions) {
  int64_t forward = 0;
  int64_t recomputed = 0;
  for (const OperatorDecision& op : decisions.operators) {
    forward += op.runsIn == RunsIn::kForward ? 1 : 0;
    recomputed += op.recompute ? 1 : 0;
  }
  const std::map<int64_t, const OperatorDecision*> makers = decisionsById(decisions);
  const auto gathers = std::count_if(decisions.reshards.begin(), decisions.reshards.end(), [&](const auto& reshard) {
    const auto maker = makers.find(reshard.id);
    return reshard.recompute && maker != makers.end() && maker->second->runsIn == RunsIn::kBackward;
  });
  std::vector<std::string> parts;
  if (recomputed > 0) {
    parts.push_back(absl::StrCat(recomputed, " of ", forward, " operators"));
  }
  if (gathers > 0) {
    parts.push_back(absl::StrCat("gathers of ", gathers, " gradients"));
  }
  return parts.empty() ? "none" : absl::StrJoin(parts, ", ");
}

std::vector<WeightClass> weightClasses(const Decisions& decisions, const std::set<std::string>& parameters) {
  const StageMeshes meshes = decisions.meshes();
  std::vector<WeightClass> classes;
  for (const ArgumentDecision& argument : decisions.arguments) {
    if (parameters.count(argument.name) == 0) {
      continue;
    }
    const WeightClass mine = {layerPattern(argument.name), argument.layout.print(meshes.ofStage(argument.stage)),
                              argument.zero.value_or(decisions.zero), 0};
    const auto it = std::find_if(classes.begin(), classes.end(), [&](const WeightClass& c) {
      return c.name == mine.name && c.layout == mine.layout && c.zero == mine.zero;
    });
    (it == classes.end() ? classes.emplace_back(mine) : *it).count += 1;
  }
  return classes;
}

MemorySummary memoryOf(const plan::Plan& plan) {
  MemorySummary summary;
  const std::vector<const plan::Plan*> submeshes = submeshesOf(plan);
  const plan::Plan& most = **std::max_element(submeshes.begin(), submeshes.end(), [](const auto* a, const auto* b) {
    return a->memory().peak_bytes() < b->memory().peak_bytes();
  });
  summary.peakBytes = most.memory().peak_bytes();
  for (const plan::Region& region : most.memory().regions()) {
    summary.add(region.memory(), boundedProduct(region.bytes(), region.slots()));
  }
  return summary;
}

std::string meshText(const PlanSummary& summary) {
  const size_t stages = summary.stages.size();
  const std::string& mesh = summary.stages.front().mesh;
  const bool uniform = std::all_of(summary.stages.begin(), summary.stages.end(),
                                   [&](const StageSummary& stage) { return stage.mesh == mesh; });
  return absl::StrCat(stages > 1 ? absl::StrCat(stages, " stages of ") : "", uniform ? mesh : "several meshes");
}

}  // namespace

PlanSummary summaryOf(const Decisions& decisions, const std::set<std::string>& parameters) {
  PlanSummary summary;
  const StageMeshes meshes = decisions.meshes();
  for (size_t s = 0; s < decisions.schedule.submeshes.size(); ++s) {
    const Mesh mesh = meshes.ofStage(static_cast<int64_t>(s)).ofRanks();
    summary.stages.push_back({{}, mesh.print(), mesh.ranks()});
  }
  for (const ArgumentDecision& argument : decisions.arguments) {
    std::vector<std::string>& layers = summary.stages[argument.stage].layers;
    const std::string layer = layerOf(argument.name);
    if (parameters.count(argument.name) > 0 && std::find(layers.begin(), layers.end(), layer) == layers.end()) {
      layers.push_back(layer);
    }
  }
  summary.weights = weightClasses(decisions, parameters);
  summary.microBatches = decisions.mesh.microBatches();
  summary.schedule = decisions.schedule.submeshes.size() > 1 ? decisions.schedule.kind : "none";
  summary.virtualStages = decisions.schedule.virtualStages;
  summary.zero = decisions.zero;
  summary.zeroOf = zeroWords(decisions);
  summary.zeroText = zeroText(decisions);
  summary.recompute = recomputeText(decisions);
  for (const Rewrite& rewrite : decisions.rewrites) {
    if (rewrite.kind == Rewrite::kExpand && !rewrite.of.empty()) {
      ++summary.alternatives[rewrite.of];
    }
  }
  summary.overlap = decisions.overlap;
  summary.offload = decisions.offload;
  summary.gatherBucket = decisions.gatherBucket;
  if (decisions.prediction) {
    summary.stepSeconds = inSeconds(decisions.prediction->time);
    summary.boundSeconds = inSeconds(decisions.prediction->bound);
  }
  return summary;
}

void nameKinds(const Machine& machine, const Decisions& decisions, PlanSummary& summary) {
  if (machine.kinds.empty()) {
    return;
  }
  const SubmeshMachines machines(machine, decisions.meshes());
  for (size_t stage = 0; stage < summary.stages.size(); ++stage) {
    summary.stages[stage].kind = machines.of(decisions.schedule.submeshes[stage]).name;
  }
}

void MemorySummary::add(plan::MemoryClass memory, int64_t bytes) {
  int64_t& mine = byClass[memoryClassName(memory)];
  mine = boundedSum(mine, bytes);
  const bool isState = memory == plan::PARAMETER || memory == plan::STATE || memory == plan::ACCUMULATOR;
  stateBytes = boundedSum(stateBytes, isState ? bytes : 0);
  activationBytes = boundedSum(activationBytes, memory == plan::ACTIVATION ? bytes : 0);
}

std::string planText(const Decisions& record) {
  const PlanSummary summary = summaryOf(record, {});
  return absl::StrCat(meshText(summary), ", micro ", summary.microBatches, ", ZeRO ", summary.zeroText,
                      summary.stages.size() > 1 ? absl::StrCat(", ", summary.schedule) : "",
                      summary.offload == Offload::kNone ? "" : absl::StrCat(", offload ", offloadName(summary.offload)),
                      summary.recompute == "none" ? "" : absl::StrCat(", recomputed ", summary.recompute));
}

MemorySummary memoryOf(const std::vector<SubmeshNeeds>& submeshes) {
  MemorySummary summary;
  const auto most = std::max_element(submeshes.begin(), submeshes.end(),
                                     [](const auto& a, const auto& b) { return a.peakBytes < b.peakBytes; });
  if (most != submeshes.end()) {
    summary.peakBytes = most->peakBytes;
    summary.hostBytes = most->offloaded ? most->offloaded->hostBytes : 0;
    for (const StepRegion& region : most->regions) {
      summary.add(region.memory, boundedProduct(region.bytes, region.slots));
    }
  }
  return summary;
}

std::set<std::string> parameterNames(const ProgramGraph& graph) {
  std::set<std::string> names;
  for (const GraphArgument& argument : graph.arguments) {
    if (argument.kind == ArgumentKind::kParameter) {
      names.insert(argument.name);
    }
  }
  return names;
}

std::set<std::string> parameterNames(const plan::Plan& plan) {
  std::set<std::string> names;
  for (const plan::Plan* submesh : submeshesOf(plan)) {
    for (const plan::NamedTensor& tensor : submesh->tensors()) {
      if (tensor.kind() == plan::TENSOR_PARAMETER) {
        names.insert(tensor.name());
      }
    }
  }
  return names;
}

absl::StatusOr<PlanSummary> summaryOf(const plan::Plan& plan) {
  WEFT_ASSIGN_OR_RETURN(const Decisions decisions, parseDecisions(plan.decisions()));
  WEFT_ASSIGN_OR_RETURN(const Machine machine, machineOf(plan));
  PlanSummary summary = summaryOf(decisions, parameterNames(plan));
  nameKinds(machine, decisions, summary);
  summary.memory = memoryOf(plan);
  WEFT_ASSIGN_OR_RETURN(summary.stepSeconds, stepSeconds(plan, machine));
  WEFT_ASSIGN_OR_RETURN(const StepTimes step, stepTimes(plan, machine));
  summary.time = timeParts(step.functions, plan.micro_batches(), summary.stepSeconds);
  return summary;
}

}  // namespace weft
