#include "planner/cost/step_model.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "planner/cost/overlap_update.h"
#include "planner/cost/shared_cores.h"
#include "planner/schedule/simulate.h"
#include "planner/stage_table.h"
#include "planner/step/step_calls.h"
#include "planner/step/step_memory.h"
#include "planner/step/storage.h"
#include "runtime/base/arithmetic.h"
#include "runtime/base/status.h"

namespace weft {
namespace {

constexpr int64_t kModelEffort = 2'000'000;  // of the packer: much less than for a plan, for a few bytes more
constexpr size_t kMostLowered = 4;           // step programs that a model keeps

bool areSame(const ScheduleDecision& a, const ScheduleDecision& b) {
  return a.kind == b.kind && a.virtualStages == b.virtualStages && a.submeshes == b.submeshes && a.table == b.table;
}

// Sets the room of the mailboxes, which depends on the order in which the schedule runs the micro-batches.
void reserveMailboxes(SubmeshFunctions::Finished& submesh, int64_t number, const std::vector<int64_t>& submeshes,
                      const std::vector<int64_t>& inFlight) {
  for (const StepReceive& receive : submesh.receives) {
    StepFunction& function = submesh.program.functions[receive.function];
    function.instructions[receive.instruction].mailboxBytes =
        receive.bytes * channelCapacity(function.kind, {submeshes, inFlight, receive.sender, number});
  }
}

// Adds the time of a function to those of its stage, or to what its submesh runs once.
void addTime(const FunctionTime& function, std::vector<schedule::StageTimes>& stages, SubmeshNeeds& submesh) {
  const Picoseconds sum = function.total;
  const auto time = static_cast<double>(sum);  // the simulation has no unit; up to 2^53 it is exact
  schedule::StageTimes& stage = stages[function.stage];
  switch (function.kind) {
    case plan::PROLOGUE:
      submesh.before += sum;
      break;
    case plan::UPDATE:
      submesh.after += sum;
      break;
    case plan::FORWARD:
      stage.f += time;
      break;
    case plan::BACKWARD:
      stage.b = stage.b.value_or(0) + time;
      break;
    case plan::INPUT_GRAD:
      stage.i += time;
      break;
    case plan::WEIGHT_GRAD:
      stage.w += time;
      break;
    default:
      break;
  }
}

PassedBytes passedBytes(const StepProgram& program, const StorageAssignment& assignment,
                        const std::vector<StorageLife>& lives) {
  PassedBytes passed;
  for (size_t i = 0; i < assignment.storages.size(); ++i) {
    if (assignment.storages[i].memory != plan::ACTIVATION) {
      continue;
    }
    const auto isUsedBy = [&](plan::FunctionKind kind) {
      return std::any_of(lives[i].users.begin(), lives[i].users.end(),
                         [&](int user) { return program.functions[user].kind == kind; });
    };
    int64_t& sum = !isUsedBy(plan::WEIGHT_GRAD) ? passed.toInputs
                   : isUsedBy(plan::FORWARD)    ? passed.toWeights
                                                : passed.between;
    sum += alignUp(assignment.storages[i].bytes);
  }
  return passed;
}

// The update takes less time, and its results lie beside what the last call needs.
void take(const OverlappedUpdate& update, SubmeshNeeds& submesh) {
  submesh.functions[update.function] = update.time;
  submesh.peakBytes += update.bytes;
  for (StepRegion& region : submesh.regions) {
    region.bytes += region.memory == plan::TRANSIENT ? update.bytes : 0;
  }
}

// The state leaves the device but for two buckets, and the update waits for the copies.
void take(const OffloadedState& offloaded, bool overlaps, SubmeshNeeds& submesh) {
  const int64_t less = offloaded.freedBytes - offloaded.bufferBytes;
  submesh.functions[offloaded.update] = withCopies(submesh.functions[offloaded.update], offloaded.time, overlaps);
  submesh.peakBytes -= less;
  for (StepRegion& region : submesh.regions) {
    region.bytes -= region.memory == plan::STATE ? less : 0;
  }
  submesh.offloaded = offloaded;
}

Picoseconds rounded(double time) {
  return static_cast<Picoseconds>(std::llround(time));
}

SharedCores coresOf(const Decisions& record, const Machine& machine, const std::vector<SubmeshNeeds>& submeshes) {
  const StageMeshes meshes = record.meshes();
  std::vector<int64_t> ranks;
  for (size_t submesh = 0; submesh < submeshes.size(); ++submesh) {
    ranks.push_back(meshes.withNumber(meshes.numberOfSubmesh(static_cast<int64_t>(submesh))).ranks());
  }
  return {machine, ranks};
}

// What runs once before the micro-batches, or after them.
Picoseconds onceTime(const SharedCores& cores, const std::vector<SubmeshNeeds>& submeshes, plan::FunctionKind kind) {
  std::vector<double> times;
  for (const SubmeshNeeds& submesh : submeshes) {
    times.push_back(static_cast<double>(kind == plan::PROLOGUE ? submesh.before : submesh.after));
  }
  return rounded(cores.once(times));
}

}  // namespace

int64_t SubmeshNeeds::slotsOf(int64_t stage) const {
  int64_t most = 1;
  for (const StepRegion& region : regions) {
    const bool isOfStage = region.memory == plan::ACTIVATION && region.stage == stage;
    most = isOfStage ? std::max(most, region.slots) : most;
  }
  return most;
}

int64_t StepNeeds::peakBytes() const {
  int64_t most = 0;
  for (const SubmeshNeeds& submesh : submeshes) {
    most = std::max(most, submesh.peakBytes);
  }
  return most;
}

StepModel::StepModel(ProgramGraph graph, Decisions record, const Machine& machine, const Correction& correction)
    : graph_(std::move(graph)),
      view_(graph_),
      record_(std::move(record)),
      correction_(correction),
      prices_(view_, record_, machine) {}

absl::StatusOr<std::unique_ptr<StepModel>> StepModel::create(ProgramGraph graph, Decisions record,
                                                             const Machine& machine, const Correction& correction) {
  std::unique_ptr<StepModel> model(new StepModel(std::move(graph), std::move(record), machine, correction));
  WEFT_ASSIGN_OR_RETURN(model->step_, annotate(model->view_, model->record_));
  return model;
}

absl::StatusOr<StepNeeds> StepModel::needs(const Decisions& record, int64_t microBatches) {
  WEFT_ASSIGN_OR_RETURN(const schedule::Table table, stageTable(record.schedule, microBatches, graph_.trains()));
  const Cut cut = {record.schedule.submeshes.size() > 1 && splitsBackward(table), repeatedOps(view_, record, step_)};
  const auto known = std::find_if(known_.begin(), known_.end(), [&](const Known& each) {
    return areSame(each.schedule, record.schedule) && each.microBatches == microBatches && each.cut == cut;
  });
  if (known != known_.end()) {
    return known->needs;
  }
  WEFT_ASSIGN_OR_RETURN(LoweredStep * step, lowered(record, cut));
  WEFT_ASSIGN_OR_RETURN(StepNeeds needs, findNeeds(record, microBatches, table, *step));
  known_.push_back({record.schedule, microBatches, cut, needs});
  return needs;
}

absl::StatusOr<LoweredStep*> StepModel::lowered(const Decisions& record, const Cut& cut) {
  const auto known =
      std::find_if(lowered_.begin(), lowered_.end(), [&](const auto& each) { return each.first == cut; });
  if (known != lowered_.end()) {
    return &known->second;
  }
  const AnnotatedStep step = withCopies(step_, cut.repeated);
  WEFT_ASSIGN_OR_RETURN(LoweredStep made, lowerStep(view_, record, step, cut.splitsBackward, prices_));
  if (lowered_.size() == kMostLowered) {
    lowered_.pop_front();
  }
  return &lowered_.emplace_back(cut, std::move(made)).second;
}

// The room of the mailboxes is set anew in `lowered`.
absl::StatusOr<StepNeeds> StepModel::findNeeds(const Decisions& record, int64_t microBatches,
                                               const schedule::Table& table, LoweredStep& lowered) {
  const bool trains = graph_.trains();
  std::vector<int64_t> inFlight = inFlightOf(table);
  if (!trains) {
    inFlight.assign(inFlight.size(), 1);
  }
  StepNeeds needs;
  schedule::Times& times = needs.times;
  times.stages.resize(record.schedule.submeshes.size(), {0, 0, 0, std::nullopt});
  times.comm = static_cast<double>(lowered.transferTime);
  for (size_t s = 0; s < lowered.submeshes.size(); ++s) {
    SubmeshFunctions::Finished& submesh = lowered.submeshes[s];
    reserveMailboxes(submesh, static_cast<int64_t>(s), record.schedule.submeshes, inFlight);
    const StorageAssignment assignment = assignStorage(submesh.program);
    const std::vector<FunctionCall> calls = callsOf(submesh.program.functions, table.orders[s]);
    StepMemory memory = planStepMemory(submesh.program, assignment, calls, kModelEffort, &packings_);
    const int64_t correction = s < correction_.bytes.size() ? correction_.bytes[s] : 0;
    SubmeshNeeds& made =
        needs.submeshes.emplace_back(SubmeshNeeds{memory.peakBytes + correction, std::move(memory.regions), 0, 0, {}});
    made.activations = passedBytes(submesh.program, assignment, memory.lives);
    const Machine& machine = prices_.machines().of(static_cast<int64_t>(s));
    for (size_t f = 0; f < submesh.program.functions.size(); ++f) {
      made.functions.push_back(functionTime(submesh.program, assignment, f, machine));
    }
    if (record.overlap) {
      if (const auto update = overlapUpdate(submesh.program, assignment, calls, made.functions, machine)) {
        take(*update, made);
      }
    }
    if (record.offload == Offload::kState) {
      if (const auto offloaded = offloadedState(submesh.program, assignment, machine)) {
        take(*offloaded, record.overlap, made);
      }
    }
    for (const FunctionTime& function : made.functions) {
      addTime(function, times.stages, made);
    }
  }
  const SharedCores cores = coresOf(record, prices_.machines().all(), needs.submeshes);
  needs.onceTime = onceTime(cores, needs.submeshes, plan::PROLOGUE) + onceTime(cores, needs.submeshes, plan::UPDATE);
  if (!trains) {
    needs.time = rounded(cores.forward(record.schedule.submeshes, times, microBatches));
    return needs;
  }
  WEFT_ASSIGN_OR_RETURN(const double makespan, cores.makespan(table, times));
  needs.time = rounded(makespan);
  return needs;
}

}  // namespace weft
