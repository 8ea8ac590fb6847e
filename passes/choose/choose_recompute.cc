#include "passes/choose/choose_recompute.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "absl/strings/str_cat.h"
#include "ir/program/decision_attributes.h"
#include "ir/program/program.h"
#include "mlir/IR/Builders.h"
#include "passes/choose/choose_schedule.h"
#include "passes/choose/kept_values.h"
#include "passes/partition/recompute.h"
#include "passes/partition/submesh_program.h"
#include "planner/cost/plan_time.h"
#include "planner/machine/machine.h"
#include "planner/recompute/intervals.h"
#include "planner/recompute/knapsack.h"
#include "runtime/base/status.h"
#include "runtime/plan/statistics.h"

namespace weft {

namespace {

using Json = nlohmann::ordered_json;
using recompute::Knapsack;
using recompute::Outcome;
using recompute::Selection;

// Memory of one submesh in a compiled plan.
struct Measured {
  int64_t peakBytes = 0;
  int64_t slots = 1;  // of the ring of activations that has most
};

std::vector<Measured> measure(const plan::Plan& plan) {
  std::vector<Measured> out;
  for (const plan::Plan* submesh : submeshesOf(plan)) {
    Measured& measured = out.emplace_back();
    measured.peakBytes = submesh->memory().peak_bytes();
    for (const plan::Region& region : submesh->memory().regions()) {
      measured.slots =
          region.memory() == plan::ACTIVATION ? std::max<int64_t>(region.slots(), measured.slots) : measured.slots;
    }
  }
  return out;
}

// The budget of one submesh, narrowed by what was measured.
class BudgetSearch {
 public:
  explicit BudgetSearch(Knapsack knapsack) : knapsack_(std::move(knapsack)), high_(knapsack_.most()) {}

  // To begin with: the plan without recomputation.
  void start(const Measured& base, int64_t limit) {
    least_ = base.peakBytes;
    done_ = fits_ = base.peakBytes <= limit;
    if (!done_) {
      aim(high_ - over(base, limit));
    }
  }

  bool done() const { return done_; }
  bool fits() const { return fits_; }
  int64_t least() const { return least_; }
  // The selection to compile next; once the search is done, the best that fits. nullopt: nothing is recomputed.
  const std::optional<Selection>& selection() const { return done_ ? best_ : next_; }

  void learn(const Measured& measured, int64_t limit) {
    least_ = std::min(least_, measured.peakBytes);
    if (done_) {
      return;
    }
    if (measured.peakBytes <= limit) {
      fits_ = true;
      best_ = next_;
      low_ = next_->bytes;
      aim(low_ + (limit - measured.peakBytes) / measured.slots);
    } else {
      high_ = next_->bytes;
      aim(high_ - over(measured, limit));
    }
  }

  void finish() { done_ = true; }

  // After failure: any choice between, as what runs again needs memory too.
  void sweep(int part, int parts) {
    next_ = knapsack_.solve(knapsack_.least() + (knapsack_.most() - knapsack_.least()) * part / parts);
    done_ = false;
  }
  void learnSwept(const Measured& measured, int64_t limit) {
    least_ = std::min(least_, measured.peakBytes);
    if (measured.peakBytes <= limit && (!fits_ || next_->seconds < best_->seconds)) {
      fits_ = true;
      best_ = next_;
    }
    done_ = true;
  }

 private:
  static int64_t over(const Measured& measured, int64_t limit) {
    return (measured.peakBytes - limit + measured.slots - 1) / measured.slots;
  }

  // Next comes the best within `budget`, kept between what is known to fit and known not to.
  void aim(int64_t budget) {
    const bool between = budget > low_ && budget < high_;
    budget = between ? budget : low_ < 0 ? knapsack_.least() : low_ + (high_ - low_) / 2;
    next_ = knapsack_.solve(std::min(std::max(budget, knapsack_.least()), high_ - 1));
    const bool known = !next_ || next_->bytes <= low_ || next_->bytes >= high_;
    done_ = known || (fits_ && next_->seconds >= best_->seconds);
  }

  Knapsack knapsack_;
  int64_t low_ = -1;  // kept bytes that fit
  int64_t high_;      // kept bytes that do not
  std::optional<Selection> next_;
  std::optional<Selection> best_;
  int64_t least_ = 0;
  bool fits_ = false;
  bool done_ = false;
};

}  // namespace

struct RecomputeSearch::Impl {
  explicit Impl(const CompilerHalves& compiler) : halves(compiler) {}

  // The intervals owned by one submesh, grouped into classes of identical ones: the knapsack's items.
  struct Group {
    std::vector<recompute::IntervalClass> classes;
    std::vector<std::vector<int>> members;  // of each class: indices of intervals, in order
  };

  absl::Status begin(mlir::ModuleOp from);
  absl::Status analyze();
  absl::StatusOr<plan::Plan> compile(const Decisions& record);
  absl::StatusOr<Attempt> attempt(const std::vector<BudgetSearch>& searches, int64_t limit, std::vector<Measured>* out);
  Decisions realize(const std::vector<BudgetSearch>& searches, int64_t limit) const;
  void recordStage(size_t stage, const std::vector<bool>& keep, Decisions& record, Json& summary) const;

  CompilerHalves halves;
  mlir::OwningOpRef<mlir::ModuleOp> module;  // annotated
  Decisions record;                          // without recomputation
  Attempt base;
  std::vector<Measured> baseMemory;
  std::vector<StageGraph> stages;
  recompute::Intervals intervals;
  std::vector<Group> groups;  // by submesh
};

absl::Status RecomputeSearch::Impl::begin(mlir::ModuleOp from) {
  module = mlir::OwningOpRef<mlir::ModuleOp>(from.clone());
  WEFT_RETURN_IF_ERROR(halves.annotate(*module));
  record = *decisionsOf(*module);
  WEFT_ASSIGN_OR_RETURN(const plan::Plan plan, compile(record));
  WEFT_ASSIGN_OR_RETURN(base.seconds, simulatedSeconds(plan, halves.machine));
  base.decisions = record;
  base.peakBytes = plan.memory().peak_bytes();
  baseMemory = measure(plan);
  return absl::OkStatus();
}

absl::Status RecomputeSearch::Impl::analyze() {
  if (!stages.empty()) {
    return absl::OkStatus();
  }
  mlir::FailureOr<std::vector<StageGraph>> graphs = stageGraphs(*module, record, halves.machine);
  if (mlir::failed(graphs)) {
    return absl::InternalError("recompute: the stages' graphs cannot be read; see the diagnostics");
  }
  stages = *std::move(graphs);
  std::vector<recompute::Graph> plain;
  for (const StageGraph& stage : stages) {
    plain.push_back(stage.graph);
  }
  intervals = recompute::cutIntoIntervals(plain);
  std::vector<std::vector<recompute::Point>> points;
  for (const recompute::Graph& graph : intervals.classes) {
    points.push_back(recompute::paretoPoints(graph));
  }
  groups.resize(baseMemory.size());
  for (Group& group : groups) {
    group.members.resize(intervals.classes.size());
  }
  for (size_t b = 0; b < intervals.intervals.size(); ++b) {
    const int64_t owner = groups.size() == 1 ? 0 : record.schedule.submeshes[intervals.intervals[b].stage];
    groups[owner].members[intervals.intervals[b].intervalClass].push_back(static_cast<int>(b));
  }
  for (Group& group : groups) {
    for (size_t c = 0; c < points.size(); ++c) {
      group.classes.push_back({points[c], static_cast<int64_t>(group.members[c].size())});
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<plan::Plan> RecomputeSearch::Impl::compile(const Decisions& with) {
  mlir::OwningOpRef<mlir::ModuleOp> copy(module->clone());
  markRecomputed(stepFunction(*copy), with);
  setDecisions(*copy, with);
  return halves.finish(*copy);
}

absl::StatusOr<Attempt> RecomputeSearch::Impl::attempt(const std::vector<BudgetSearch>& searches, int64_t limit,
                                                       std::vector<Measured>* out) {
  Decisions with = realize(searches, limit);
  WEFT_ASSIGN_OR_RETURN(const plan::Plan plan, compile(with));
  Attempt made;
  WEFT_ASSIGN_OR_RETURN(made.seconds, simulatedSeconds(plan, halves.machine));
  Json summary = Json::parse(with.recomputeSummary);
  summary["step_seconds"] = made.seconds;
  summary["step_seconds_otherwise"] = base.seconds;
  with.recomputeSummary = summary.dump();
  made.decisions = std::move(with);
  made.peakBytes = plan.memory().peak_bytes();
  made.fits = made.peakBytes <= limit;
  *out = measure(plan);
  return made;
}

Decisions RecomputeSearch::Impl::realize(const std::vector<BudgetSearch>& searches, int64_t limit) const {
  std::vector<std::vector<bool>> keep;
  std::vector<bool> changed(stages.size(), false);
  for (const StageGraph& stage : stages) {
    keep.emplace_back(stage.operators.size(), false);
  }
  for (size_t g = 0; g < groups.size(); ++g) {
    const std::optional<Selection>& selection = searches[g].selection();
    for (size_t c = 0; selection && c < groups[g].classes.size(); ++c) {
      for (size_t i = 0; i < groups[g].members[c].size(); ++i) {
        const recompute::Interval& interval = intervals.intervals[groups[g].members[c][i]];
        const int chosen = selection->points[c][i];
        const recompute::Graph& graph = intervals.classes[c];
        changed[interval.stage] = changed[interval.stage] || chosen > 0;
        for (int op = interval.first; op < interval.last; ++op) {
          const bool kept = groups[g].classes[c].points[chosen].keep[op - interval.first];
          keep[interval.stage][op] = kept || !graph.operators[op - interval.first].mayRepeat;
        }
      }
    }
  }
  Decisions made = record;
  Json summary = {{"limit", limit}, {"stages", Json::array()}};
  for (size_t stage = 0; stage < stages.size(); ++stage) {
    if (changed[stage]) {
      recordStage(stage, keep[stage], made, summary["stages"]);
    }
  }
  made.recomputeSummary = summary.dump();
  return made;
}

void RecomputeSearch::Impl::recordStage(size_t stage, const std::vector<bool>& keep, Decisions& made,
                                        Json& summary) const {
  const recompute::Graph& graph = stages[stage].graph;
  const Outcome before = outcomeOf(graph, std::vector<bool>(graph.operators.size(), true));
  const Outcome after = outcomeOf(graph, keep);
  std::vector<bool> occupied(graph.values.size(), false);
  for (size_t v = 0; v < graph.values.size(); ++v) {
    const int storage = graph.storageOf(static_cast<int>(v));
    occupied[storage] = occupied[storage] || after.kept[v];
  }
  std::map<int64_t, OperatorDecision*> entries;
  for (OperatorDecision& entry : made.operators) {
    entries[entry.id] = &entry;
  }
  const std::vector<std::vector<int>> results = graph.results();
  for (size_t op = 0; op < graph.operators.size(); ++op) {
    mlir::Operation* source = stages[stage].operators[op];
    RecomputePrice price = {0, after.repeated[op] ? graph.operators[op].seconds : 0};
    bool kept = false;
    for (const int value : results[op]) {
      kept = kept || after.kept[value];
      price.bytes += before.kept[value] && !occupied[graph.storageOf(value)] ? graph.values[value].bytes : 0;
    }
    if (!graph.operators[op].mayKeep) {
      continue;  // the user's own
    }
    const std::vector<int>& inputs = graph.operators[op].inputs;
    const int maker = inputs.empty() ? -1 : graph.values[inputs[0]].op;
    const bool follows = maker >= 0 && after.repeated[maker];
    if (isReshardOrMask(source) && (after.repeated[op] || (kept && follows))) {
      ReshardDecision entry = reshardEntry(source);
      entry.label = sourceLabel(source->getResult(0));
      entry.recompute = after.repeated[op];
      entry.recomputePrice = price;
      made.reshards.push_back(std::move(entry));
    } else if (!isReshardOrMask(source) && after.repeated[op]) {
      entries.at(idOf(source))->recompute = true;
      entries.at(idOf(source))->recomputePrice = price;
    }
  }
  summary.push_back({{"stage", stage},
                     {"kept_bytes", after.bytes},
                     {"kept_bytes_otherwise", before.bytes},
                     {"seconds", after.seconds - before.seconds}});
}

absl::Status nothingFits(int64_t least, int64_t limit) {
  return absl::ResourceExhaustedError(
      absl::StrCat("whatever is recomputed, the plan needs at least ", least, " bytes on a rank, the limit is ", limit,
                   "; shard more (ZeRO, more ranks), cut the step into more micro-batches, or allow as much"));
}

RecomputeSearch::RecomputeSearch(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
RecomputeSearch::~RecomputeSearch() = default;

absl::StatusOr<std::unique_ptr<RecomputeSearch>> RecomputeSearch::create(mlir::ModuleOp module,
                                                                         const CompilerHalves& halves) {
  auto impl = std::make_unique<Impl>(halves);
  WEFT_RETURN_IF_ERROR(impl->begin(module));
  return std::unique_ptr<RecomputeSearch>(new RecomputeSearch(std::move(impl)));
}

const Attempt& RecomputeSearch::base() const {
  return impl_->base;
}

absl::StatusOr<Attempt> RecomputeSearch::under(int64_t limit) {
  Attempt best = impl_->base;
  best.fits = limit == 0 || best.peakBytes <= limit;
  if (best.fits) {
    return best;
  }
  WEFT_RETURN_IF_ERROR(impl_->analyze());
  std::vector<BudgetSearch> searches;
  for (size_t g = 0; g < impl_->groups.size(); ++g) {
    searches.emplace_back(Knapsack(impl_->groups[g].classes)).start(impl_->baseMemory[g], limit);
  }
  const auto all = [&](auto what) { return std::all_of(searches.begin(), searches.end(), what); };
  const auto fits = [](const BudgetSearch& search) { return search.fits(); };
  std::vector<Measured> memory;
  for (int round = 0; round < kRounds && !all([](const BudgetSearch& s) { return s.done(); }); ++round) {
    WEFT_ASSIGN_OR_RETURN(best, impl_->attempt(searches, limit, &memory));
    for (size_t g = 0; g < searches.size(); ++g) {
      searches[g].learn(memory[g], limit);
    }
  }
  constexpr int kSwept = 12;
  for (int part = 0; part <= kSwept && !all(fits); ++part) {
    std::vector<BudgetSearch> swept = searches;
    for (BudgetSearch& search : swept) {
      if (!search.fits()) {
        search.sweep(part, kSwept);
      }
    }
    WEFT_ASSIGN_OR_RETURN(best, impl_->attempt(swept, limit, &memory));
    for (size_t g = 0; g < searches.size(); ++g) {
      if (!searches[g].fits()) {
        searches[g] = swept[g];
        searches[g].learnSwept(memory[g], limit);
      }
    }
  }
  if (all(fits)) {
    for (BudgetSearch& search : searches) {
      search.finish();
    }
    WEFT_ASSIGN_OR_RETURN(best, impl_->attempt(searches, limit, &memory));
    return best;
  }
  best.peakBytes = 0;
  for (const BudgetSearch& search : searches) {
    best.peakBytes = std::max(best.peakBytes, search.least());
  }
  best.fits = false;
  return best;
}

}  // namespace weft
