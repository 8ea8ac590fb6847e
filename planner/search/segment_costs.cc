#include "planner/search/segment_costs.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

#include "planner/check_request.h"
#include "planner/cost/step_model.h"
#include "planner/derive/derive.h"
#include "planner/derive/recompute_scopes.h"
#include "runtime/base/status.h"

namespace weft {
namespace {

Picoseconds timeOf(const schedule::StageTimes& stage) {
  return static_cast<Picoseconds>(std::llround(stage.f + stage.b.value_or(stage.i + stage.w)));
}

SegmentCost costOf(const SubmeshNeeds& needs, const schedule::StageTimes& times) {
  SegmentCost cost;
  cost.time = timeOf(times);
  cost.forwardTime = static_cast<Picoseconds>(std::llround(times.f));
  cost.onceTime = needs.before + needs.after;
  for (const StepRegion& region : needs.regions) {
    switch (region.memory) {
      case plan::ACTIVATION:
        cost.activationBytes += region.bytes;
        break;
      case plan::TRANSIENT:
      case plan::WORKSPACE:
      case plan::MAILBOX:
        cost.passingBytes += region.bytes;
        break;
      default:
        cost.heldBytes += region.bytes;
        break;
    }
  }
  return cost;
}

std::vector<SegmentCost> costsOf(const StepNeeds& needs) {
  std::vector<SegmentCost> costs;
  for (size_t s = 0; s < needs.submeshes.size(); ++s) {
    costs.push_back(costOf(needs.submeshes[s], needs.times.stages[s]));
  }
  return costs;
}

// The record with everything recomputed that can be.
Decisions withAllRecomputed(const StepModel& model) {
  Decisions record = model.record();
  std::vector<int64_t> stages;
  for (const OperatorDecision& op : record.operators) {
    stages.push_back(op.stage);
  }
  const std::vector<bool> all = recomputedOps(model.view(), stages, "full");
  for (size_t op = 0; op < record.operators.size(); ++op) {
    record.operators[op].recompute = all[op];
  }
  return record;
}

}  // namespace

SegmentCost& SegmentCost::operator+=(const SegmentCost& more) {
  time += more.time;
  forwardTime += more.forwardTime;
  onceTime += more.onceTime;
  heldBytes += more.heldBytes;
  activationBytes += more.activationBytes;
  passingBytes = std::max(passingBytes, more.passingBytes);
  return *this;
}

SegmentCosts together(const SegmentCosts& costs) {
  SegmentCosts sum = {{SegmentCost()}, {SegmentCost()}, costs.transfer};
  for (size_t s = 0; s < costs.kept.size(); ++s) {
    sum.kept[0] += costs.kept[s];
    sum.recomputed[0] += costs.recomputed[s];
  }
  return sum;
}

double memoryPrice(Picoseconds stepTime, int64_t limit) {
  return std::exp2(std::round(std::log2(static_cast<double>(stepTime) / static_cast<double>(limit))));
}

absl::StatusOr<SegmentCosts> segmentCosts(const ProgramGraph& staged, const CompileOptions& asked, double bytePrice,
                                          ReshardMemo& memo) {
  CompileOptions request = asked;
  request.schedule = "1f1b";
  request.virtualStages = 1;
  request.memoryLimit = 0;
  WEFT_ASSIGN_OR_RETURN(Machine machine, machineOf(request));
  machine.nodes = 0;  // as many as there are segments
  request.machine = machine.print();
  ProgramGraph graph = staged;
  WEFT_ASSIGN_OR_RETURN(Derivation derived, deriveDecisions(graph, request, {.bytePrice = bytePrice, .memo = &memo}));
  WEFT_ASSIGN_OR_RETURN(const std::unique_ptr<StepModel> model,
                        StepModel::create(std::move(graph), std::move(derived.decisions), machine, {}));
  WEFT_ASSIGN_OR_RETURN(const StepNeeds needs, model->needs(model->record(), 1));
  SegmentCosts costs;
  costs.kept = costs.recomputed = costsOf(needs);
  costs.transfer = static_cast<Picoseconds>(std::llround(needs.times.comm));
  if (request.recompute == "auto" && model->view().graph().trains()) {
    WEFT_ASSIGN_OR_RETURN(const StepNeeds least, model->needs(withAllRecomputed(*model), 1));
    costs.recomputed = costsOf(least);
  }
  return costs;
}

}  // namespace weft
