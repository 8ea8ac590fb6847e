#include "planner/search/segment_costs.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <map>
#include <memory>
#include <utility>

#include "planner/check_request.h"
#include "planner/derive/derive.h"
#include "planner/recompute/intervals.h"
#include "planner/recompute/pareto.h"
#include "planner/schedule/generate.h"
#include "planner/search/forward_graphs.h"
#include "planner/search/gradient_gathers.h"
#include "runtime/base/status.h"

namespace weft {
namespace {

// Of one interval so many operators are decided about one by one: each more doubles the choices to look at.
constexpr int kSavingCandidates = 9;

Picoseconds timeOf(const schedule::StageTimes& stage) {
  return static_cast<Picoseconds>(std::llround(stage.f + stage.b.value_or(stage.i + stage.w)));
}

void add(const StepRegion& region, SegmentCost& cost) {
  switch (region.memory) {
    case plan::PARAMETER:
      cost.parameterBytes += region.bytes;
      break;
    case plan::ACCUMULATOR:
      cost.gradientBytes += region.bytes;
      break;
    case plan::STATE:
      cost.stateBytes += region.bytes;
      break;
    case plan::ACTIVATION:
      break;  // by who reads them
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

SegmentCost costOf(const SubmeshNeeds& needs, const schedule::StageTimes& times) {
  SegmentCost cost;
  cost.time = timeOf(times);
  cost.onceTime = needs.before + needs.after;
  cost.activations = needs.activations;
  for (const StepRegion& region : needs.regions) {
    add(region, cost);
  }
  if (needs.offloaded) {  // of several segments there is one buffer, and with more ranks less to copy
    const FunctionTime& update = needs.functions[needs.offloaded->update];
    cost.offloadTime = update.offload;
    cost.onceTime -= update.offload;
    cost.bufferBytes = needs.offloaded->bufferBytes;
    cost.stateBytes -= needs.offloaded->bufferBytes;
  }
  return cost;
}

// Parameters of which the user says the level of ZeRO take the same at every level of the others: what they take of
// each segment is held, so that the rest follows the level that is searched (atLevel).
void holdSaid(const CompileOptions& request, const StepModel& model, std::vector<SegmentCost>& costs) {
  struct Bytes {
    double all = 0, said = 0;
  };
  using ByLevel = std::array<Bytes, kMostZeroLevel>;  // what each level shares first: states, gradients, parameters
  std::vector<ByLevel> bytes(costs.size());
  const Decisions& record = model.record();
  const std::vector<GraphArgument>& arguments = model.view().graph().arguments;
  for (size_t i = 0; i < arguments.size() && !request.zeroOf.empty(); ++i) {
    if (arguments[i].kind != ArgumentKind::kParameter) {
      continue;
    }
    const ArgumentDecision& decision = record.arguments[i];
    const int64_t parts = partsOf(dataParallelAxes(record.meshes().ofStage(decision.stage)));
    const bool isSaid = zeroLevelOf(request.zeroOf, arguments[i].name, kFindZero) != kFindZero;
    for (int level = 1; level <= kMostZeroLevel; ++level) {
      Bytes& here = bytes[decision.stage][level - 1];
      const bool shared = decision.zero.value_or(record.zero) >= level;
      const double mine = static_cast<double>(arguments[i].type.bytes()) / static_cast<double>(shared ? parts : 1);
      here.all += mine;
      here.said += isSaid ? mine : 0;
    }
  }
  for (size_t s = 0; s < costs.size(); ++s) {
    int64_t* const kinds[] = {&costs[s].stateBytes, &costs[s].gradientBytes, &costs[s].parameterBytes};
    for (int level = 1; level <= kMostZeroLevel; ++level) {
      const auto& [all, said] = bytes[s][level - 1];
      int64_t& mine = *kinds[level - 1];
      const auto held = said > 0 ? std::llround(static_cast<double>(mine) * said / all) : 0;
      mine -= held;
      costs[s].heldBytes += held;
    }
  }
}

// The lower convex hull of the points, which lie by falling bytes: what each of its edges saves.
void addHull(const std::vector<recompute::Point>& points, std::vector<Saving>& savings) {
  std::vector<Saving> hull;
  for (size_t i = 1; i < points.size(); ++i) {
    Saving edge = {points[i - 1].bytes - points[i].bytes, points[i].time - points[i - 1].time};
    while (!hull.empty() && isCheaper(edge, hull.back())) {
      edge = {edge.bytes + hull.back().bytes, edge.time + hull.back().time};
      hull.pop_back();
    }
    hull.push_back(edge);
  }
  savings.insert(savings.end(), hull.begin(), hull.end());
}

// What recomputation saves of each segment, by its intervals (planner/recompute/).
absl::Status addSavings(const Decisions& record, StepModel& model, recompute::KnownFronts& fronts,
                        std::vector<SegmentCost>& costs) {
  WEFT_ASSIGN_OR_RETURN(const std::vector<ForwardGraph> graphs, forwardGraphs(record, model));
  std::vector<recompute::Graph> plain;
  for (const ForwardGraph& stage : graphs) {
    plain.push_back(stage.graph);
  }
  const recompute::Intervals cut = recompute::cutIntoIntervals(plain);
  for (const recompute::Interval& interval : cut.intervals) {
    addHull(fronts.of(cut.classes[interval.intervalClass], kSavingCandidates), costs[interval.stage].savings);
  }
  for (SegmentCost& cost : costs) {
    std::stable_sort(cost.savings.begin(), cost.savings.end(), isCheaper);
  }
  return absl::OkStatus();
}

// With the record's kind of schedule, which decides whether the backward pass is cut; without savings.
absl::StatusOr<std::vector<SegmentCost>> keepingAll(const Decisions& record, const CompileOptions& request,
                                                    StepModel& model, Picoseconds& transfer) {
  WEFT_ASSIGN_OR_RETURN(const StepNeeds needs, model.needs(record, 1));
  std::vector<SegmentCost> costs;
  for (size_t s = 0; s < needs.submeshes.size(); ++s) {
    costs.push_back(costOf(needs.submeshes[s], needs.times.stages[s]));
  }
  holdSaid(request, model, costs);
  transfer = static_cast<Picoseconds>(std::llround(needs.times.comm));
  return costs;
}

absl::StatusOr<std::vector<SegmentCost>> costsUnder(const Decisions& record, const CompileOptions& request,
                                                    StepModel& model, recompute::KnownFronts& fronts,
                                                    Picoseconds& transfer) {
  WEFT_ASSIGN_OR_RETURN(std::vector<SegmentCost> costs, keepingAll(record, request, model, transfer));
  if (request.recompute == "auto" && model.view().graph().trains()) {
    WEFT_RETURN_IF_ERROR(addSavings(record, model, fronts, costs));
  }
  return costs;
}

bool mayCutBackward(const CompileOptions& request) {
  const absl::StatusOr<schedule::Kind> kind = schedule::parseKind(request.schedule);
  return kind.ok() ? schedule::cutsBackward(*kind) : request.schedule == "auto";
}

}  // namespace

bool isCheaper(const Saving& a, const Saving& b) {
  return static_cast<double>(a.time) * static_cast<double>(b.bytes) <
         static_cast<double>(b.time) * static_cast<double>(a.bytes);
}

SegmentCost& SegmentCost::operator+=(const SegmentCost& more) {
  time += more.time;
  onceTime += more.onceTime;
  parameterBytes += more.parameterBytes;
  gradientBytes += more.gradientBytes;
  stateBytes += more.stateBytes;
  offloadTime += more.offloadTime;
  bufferBytes = std::max(bufferBytes, more.bufferBytes);
  heldBytes += more.heldBytes;
  activations += more.activations;
  passingBytes = std::max(passingBytes, more.passingBytes);
  std::vector<Saving> both;
  std::merge(savings.begin(), savings.end(), more.savings.begin(), more.savings.end(), std::back_inserter(both),
             isCheaper);
  savings.clear();
  for (const Saving& each : both) {  // equal prices as one
    if (savings.empty() || isCheaper(savings.back(), each)) {
      savings.push_back(each);
    } else {
      savings.back().bytes += each.bytes;
      savings.back().time += each.time;
    }
  }
  return *this;
}

SegmentCosts together(const SegmentCosts& costs) {
  SegmentCosts sum = {{SegmentCost()}, {}, costs.transfer};
  for (const SegmentCost& each : costs.segments) {
    sum.segments[0] += each;
  }
  return sum;
}

double memoryPrice(Picoseconds stepTime, int64_t limit) {
  return std::exp2(std::round(std::log2(static_cast<double>(stepTime) / static_cast<double>(limit))));
}

namespace {

struct PaddedCosts {
  SegmentCosts costs;
  std::map<unsigned, Shape> evenPads;  // with which more splits would divide
};

// `request`: what of `asked` counts for segments.
absl::StatusOr<PaddedCosts> costsWith(const ProgramGraph& staged, const CompileOptions& asked,
                                      const CompileOptions& request, const OpenChoices& choices,
                                      recompute::KnownFronts& fronts) {
  WEFT_ASSIGN_OR_RETURN(const Machine machine, machineOf(request));
  ProgramGraph graph = staged;
  WEFT_ASSIGN_OR_RETURN(Derivation derived, deriveDecisions(graph, request, choices));
  WEFT_ASSIGN_OR_RETURN(const std::unique_ptr<StepModel> model,
                        StepModel::create(std::move(graph), std::move(derived.decisions), machine, {}));
  SegmentCosts costs;
  WEFT_ASSIGN_OR_RETURN(costs.segments, costsUnder(model->record(), request, *model, fronts, costs.transfer));
  if (mayCutBackward(asked) && costs.segments.size() > 1 && model->view().graph().trains()) {
    Decisions record = model->record();
    record.schedule.kind = schedule::kindName(schedule::Kind::kZbH1);
    WEFT_ASSIGN_OR_RETURN(costs.cutSegments, costsUnder(record, request, *model, fronts, costs.transfer));
    WEFT_ASSIGN_OR_RETURN(const std::optional<Decisions> gathering, withGathersAgain(record, *model));
    if (gathering) {
      WEFT_ASSIGN_OR_RETURN(costs.gatheringSegments, keepingAll(*gathering, request, *model, costs.transfer));
      for (size_t s = 0; s < costs.segments.size(); ++s) {  // of the forward pass as much may be recomputed
        costs.gatheringSegments[s].savings = costs.cutSegments[s].savings;
      }
    }
  }
  return PaddedCosts{std::move(costs), std::move(derived.evenPads)};
}

Picoseconds stepTimeOf(const SegmentCosts& costs, int64_t microBatches) {
  const SegmentCost all = together(costs).segments[0];
  return all.time * microBatches + all.onceTime;
}

}  // namespace

absl::StatusOr<SegmentCosts> segmentCosts(const ProgramGraph& staged, const CompileOptions& asked, double bytePrice,
                                          PlanningMemo& memo) {
  CompileOptions request = asked;
  request.schedule = schedule::kindName(schedule::Kind::k1F1B);
  request.virtualStages = 1;
  request.memoryLimit = 0;
  WEFT_ASSIGN_OR_RETURN(Machine machine, machineOf(request));
  machine.nodes = 0;       // as many as there are segments
  machine.hostMemory = 0;  // it is what all segments of a stage share
  request.machine = machine.print();
  OpenChoices choices = {.bytePrice = bytePrice, .memo = &memo.reshards, .slack = kSlackOfSketches};
  WEFT_ASSIGN_OR_RETURN(PaddedCosts plain, costsWith(staged, asked, request, choices, memo.fronts));
  if (!plain.evenPads.empty()) {
    choices.pads = std::move(plain.evenPads);
    absl::StatusOr<PaddedCosts> padded = costsWith(staged, asked, request, choices, memo.fronts);
    const int64_t micro = asked.microBatches();
    if (padded.ok() && stepTimeOf(padded->costs, micro) < stepTimeOf(plain.costs, micro)) {
      return std::move(padded->costs);
    }
  }
  return std::move(plain.costs);
}

}  // namespace weft
