#include "planner/search/choose_recompute.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "planner/recompute/intervals.h"
#include "planner/recompute/knapsack.h"
#include "planner/search/block_program.h"
#include "planner/search/budget_search.h"
#include "planner/search/forward_graphs.h"
#include "runtime/base/status.h"

namespace weft {
namespace {

using Json = nlohmann::ordered_json;
using recompute::Outcome;
using recompute::Selection;

constexpr int kRounds = 8;  // budgets tried before the sweep
constexpr int kSwept = 12;  // parts of the range of budgets that the sweep tries
// Where recomputation makes a step longer by less than this part of it, a better one is not looked for.
constexpr Picoseconds kTooLittle = 500;
// So many operators are tried to be kept after all.
constexpr size_t kMostKept = 8;
// Whole intervals that are expected to make a step longer than what is known by this part of it are not tried.
constexpr Picoseconds kFarWorse = 8;

// An operator of the forward pass: its stage, and its place there.
using StageOperator = std::pair<size_t, size_t>;

// What is recomputed: by the selection of each submesh, but for single operators that are kept after all.
struct Chosen {
  std::vector<std::optional<Selection>> selections;
  std::vector<StageOperator> kept = {};
};

// The choices of all stages, and what a selection of them says in the record.
class Choices {
 public:
  // The knapsack of one submesh. Its items are the intervals of each stage, equal ones together; the bytes of their
  // points are those of all micro-batches that the stage holds at the most.
  struct Group {
    struct Items {
      int stage = 0;
      int intervalClass = 0;
      std::vector<int> members = {};  // indices of intervals, in order
    };
    std::vector<Items> items;
    std::vector<recompute::IntervalClass> classes;  // of each of the items

    int64_t savedByEach(size_t c) const { return classes[c].points.front().bytes - classes[c].points.back().bytes; }

    // The class whose intervals save most bytes together; -1 where nothing may be recomputed.
    int mostSaving() const {
      std::map<int, int64_t> saved;
      for (size_t c = 0; c < items.size(); ++c) {
        saved[items[c].intervalClass] += classes[c].count * savedByEach(c);
      }
      const auto most = std::max_element(saved.begin(), saved.end(),
                                         [](const auto& a, const auto& b) { return a.second < b.second; });
      return most == saved.end() ? -1 : most->first;
    }
    int64_t countOf(int intervalClass) const {
      int64_t count = 0;
      for (size_t c = 0; c < items.size(); ++c) {
        count += items[c].intervalClass == intervalClass ? classes[c].count : 0;
      }
      return count;
    }

    // Of that class the first `count` intervals keep least, everything else all.
    Selection whole(int64_t count) const {
      const int most = mostSaving();
      Selection selection;
      for (size_t c = 0; c < items.size(); ++c) {
        const recompute::IntervalClass& each = classes[c];
        const int64_t filled = items[c].intervalClass == most ? std::min(count, each.count) : 0;
        count -= filled;
        std::vector<int>& points = selection.points.emplace_back(each.count, 0);
        std::fill_n(points.begin(), filled, static_cast<int>(each.points.size()) - 1);
        selection.bytes += filled * each.points.back().bytes + (each.count - filled) * each.points.front().bytes;
        selection.time += filled * each.points.back().time + (each.count - filled) * each.points.front().time;
      }
      return selection;
    }
    // Of that class, how many intervals must keep least to save so many bytes; one more than there are: too few.
    int64_t fewestToSave(int64_t bytes) const {
      const int most = mostSaving();
      int64_t fewest = 0;
      for (size_t c = 0; c < items.size(); ++c) {
        for (int64_t i = 0; items[c].intervalClass == most && i < classes[c].count && bytes > 0; ++i) {
          bytes -= savedByEach(c);
          ++fewest;
        }
      }
      return bytes > 0 ? fewest + 1 : fewest;
    }
  };

  // `needs`: of the record as it is.
  Choices(const Decisions& record, std::vector<ForwardGraph> stages, const std::vector<SubmeshNeeds>& needs,
          const StepModel& model, recompute::KnownFronts& fronts)
      : record_(record), stages_(std::move(stages)), model_(model), groups_(needs.size()) {
    std::vector<recompute::Graph> plain;
    for (const ForwardGraph& stage : stages_) {
      plain.push_back(stage.graph);
    }
    intervals_ = recompute::cutIntoIntervals(plain);
    for (size_t i = 0; i < intervals_.intervals.size(); ++i) {
      const recompute::Interval& interval = intervals_.intervals[i];
      std::vector<Group::Items>& items = groups_[record.schedule.submeshes[interval.stage]].items;
      const auto isAlike = [&](const Group::Items& each) {
        return each.stage == interval.stage && each.intervalClass == interval.intervalClass;
      };
      auto alike = std::find_if(items.begin(), items.end(), isAlike);
      if (alike == items.end()) {
        alike = items.insert(items.end(), {interval.stage, interval.intervalClass});
      }
      alike->members.push_back(static_cast<int>(i));
    }
    for (size_t g = 0; g < groups_.size(); ++g) {
      for (const Group::Items& items : groups_[g].items) {
        const int64_t slots = needs[g].slotsOf(items.stage);
        std::vector<recompute::Point> held = fronts.of(intervals_.classes[items.intervalClass]);
        for (recompute::Point& point : held) {
          point.bytes *= slots;
        }
        groups_[g].classes.push_back({std::move(held), static_cast<int64_t>(items.members.size())});
      }
    }
  }

  const std::vector<Group>& groups() const { return groups_; }

  // The record with the selection of each submesh; nothing is recomputed where there is none.
  Decisions realize(const Chosen& chosen, int64_t limit) const {
    const std::vector<std::vector<bool>> keep = keptWith(chosen);
    Decisions made = record_;
    Json summary = {{"limit", limit}, {"stages", Json::array()}};
    for (size_t stage = 0; stage < stages_.size(); ++stage) {
      if (!keep[stage].empty()) {
        recordStage(stage, keep[stage], made, summary["stages"]);
      }
    }
    made.recomputeSummary = summary.dump();
    return made;
  }

  // What runs again, the longest first.
  std::vector<StageOperator> repeatedWith(const Chosen& chosen) const {
    const std::vector<std::vector<bool>> keep = keptWith(chosen);
    std::vector<std::pair<Picoseconds, StageOperator>> found;
    for (size_t stage = 0; stage < stages_.size(); ++stage) {
      const recompute::Graph& graph = stages_[stage].graph;
      const std::vector<bool> repeated = keep[stage].empty() ? std::vector<bool>(graph.operators.size(), false)
                                                             : outcomeOf(graph, keep[stage]).repeated;
      for (size_t op = 0; op < repeated.size(); ++op) {
        if (repeated[op] && graph.operators[op].mayKeep) {
          found.push_back({graph.operators[op].time, {stage, op}});
        }
      }
    }
    std::ranges::stable_sort(found, std::greater<>(), [](const auto& each) { return each.first; });
    std::vector<StageOperator> operators;
    for (const auto& [time, op] : found) {
      operators.push_back(op);
    }
    return operators;
  }

 private:
  // Of each stage: its operators that are kept; none where the choice says nothing of it.
  std::vector<std::vector<bool>> keptWith(const Chosen& chosen) const {
    std::vector<std::vector<bool>> keep;
    for (const ForwardGraph& stage : stages_) {
      keep.emplace_back(stage.ops.size(), false);
    }
    std::vector<bool> changed(stages_.size(), false);
    for (size_t g = 0; g < groups_.size(); ++g) {
      if (chosen.selections[g]) {
        take(groups_[g], *chosen.selections[g], keep, changed);
      }
    }
    for (const auto& [stage, op] : chosen.kept) {
      keep[stage][op] = true;
    }
    for (size_t stage = 0; stage < stages_.size(); ++stage) {
      if (!changed[stage]) {
        keep[stage].clear();
      }
    }
    return keep;
  }

  void take(const Group& group, const Selection& selection, std::vector<std::vector<bool>>& keep,
            std::vector<bool>& changed) const {
    for (size_t c = 0; c < group.items.size(); ++c) {
      const Group::Items& items = group.items[c];
      for (size_t i = 0; i < items.members.size(); ++i) {
        const recompute::Interval& interval = intervals_.intervals[items.members[i]];
        const int chosen = selection.points[c][i];
        changed[interval.stage] = changed[interval.stage] || chosen > 0;
        for (int op = interval.first; op < interval.last; ++op) {
          const bool kept = group.classes[c].points[chosen].keep[op - interval.first];
          const bool mayRepeat = intervals_.classes[items.intervalClass].operators[op - interval.first].mayRepeat;
          keep[interval.stage][op] = kept || !mayRepeat;
        }
      }
    }
  }

  // Writes which operators and reshards of a stage run again, with what that saves and costs.
  void recordStage(size_t stage, const std::vector<bool>& keep, Decisions& made, Json& summary) const {
    const recompute::Graph& graph = stages_[stage].graph;
    const Outcome before = outcomeOf(graph, std::vector<bool>(graph.operators.size(), true));
    const Outcome after = outcomeOf(graph, keep);
    std::vector<bool> occupied(graph.values.size(), false);
    for (size_t v = 0; v < graph.values.size(); ++v) {
      const int storage = graph.storageOf(static_cast<int>(v));
      occupied[storage] = occupied[storage] || after.kept[v];
    }
    const std::vector<std::vector<int>> results = graph.results();
    for (size_t op = 0; op < graph.operators.size(); ++op) {
      if (!graph.operators[op].mayKeep) {
        continue;  // the user's own
      }
      RecomputePrice price = {0, after.repeated[op] ? graph.operators[op].time : 0};
      bool kept = false;
      for (const int value : results[op]) {
        kept = kept || after.kept[value];
        price.bytes += before.kept[value] && !occupied[graph.storageOf(value)] ? graph.values[value].bytes : 0;
      }
      const std::vector<int>& inputs = graph.operators[op].inputs;
      const int maker = inputs.empty() ? -1 : graph.values[inputs[0]].op;
      const bool follows = maker >= 0 && after.repeated[maker];
      record(stages_[stage].ops[op], after.repeated[op], kept && follows, price, made);
    }
    summary.push_back({{"stage", stage},
                       {"kept_bytes", after.bytes},
                       {"kept_bytes_otherwise", before.bytes},
                       {"seconds", inSeconds(after.time - before.time)}});
  }

  // A reshard needs an entry where it runs again, or is kept though what it changes runs again.
  void record(int index, bool repeated, bool keptAlone, const RecomputePrice& price, Decisions& made) const {
    const AnnotatedOp& op = model_.step().ops[index];
    if (op.movesOrFills() && (repeated || keptAlone)) {
      ReshardDecision entry = reshardEntry(model_.view(), record_, model_.step(), index);
      entry.label = model_.view().labelOf(model_.step().values[op.results[0]].source);
      entry.recompute = repeated;
      entry.recomputePrice = price;
      made.reshards.push_back(std::move(entry));
    } else if (op.kind == AnnotatedOp::Kind::kOperator && repeated) {
      made.operators[op.op].recompute = true;
      made.operators[op.op].recomputePrice = price;
    }
  }

  const Decisions& record_;
  std::vector<ForwardGraph> stages_;
  const StepModel& model_;
  recompute::Intervals intervals_;
  std::vector<Group> groups_;  // by submesh
};

}  // namespace

absl::StatusOr<Attempt> asItIs(const MemoryLimits& limits, const Decisions& record, StepModel& model) {
  WEFT_ASSIGN_OR_RETURN(StepNeeds needs, model.needs(record));
  Attempt made;
  made.peakBytes = needs.peakBytes();
  made.time = made.fastest = needs.stepTime();
  made.decisions = record;
  made.submeshes = std::move(needs.submeshes);
  for (const schedule::StageTimes& stage : needs.times.stages) {
    made.stageTimes.push_back(static_cast<Picoseconds>(std::llround(stage.f + stage.b.value_or(stage.i + stage.w))));
  }
  Prediction& prediction = made.decisions.prediction.emplace();
  prediction.time = made.time;
  for (const SubmeshNeeds& submesh : made.submeshes) {
    prediction.peakBytes.push_back(submesh.peakBytes);
  }
  made.fits = limits.hold(record.meshes(), prediction.peakBytes);
  return made;
}

namespace {

class RecomputeSearch {
 public:
  RecomputeSearch(const Attempt& base, const Choices& choices, const MemoryLimits& limits, StepModel& model)
      : base_(base), choices_(choices), limits_(limits), model_(model), least_(base) {
    for (const int64_t limit : limits.ofSubmeshes(base.decisions.meshes())) {
      limitOf_.push_back(limit > 0 ? limit : std::numeric_limits<int64_t>::max());
    }
    const Picoseconds little = base.time / kTooLittle / base.decisions.mesh.microBatches();
    for (size_t g = 0; g < choices.groups().size(); ++g) {
      searches_.emplace_back(std::make_shared<const recompute::Knapsack>(choices.groups()[g].classes), little)
          .start(base.submeshes[g], limitOf_[g]);
    }
    expected_ = firstExpected();
  }

  Picoseconds expected() const { return expected_; }

  // With the first selections: each submesh works as much longer as what it runs again takes, and the longest decides.
  // kAnyTime: it cannot fit.
  Picoseconds firstExpected() const {
    for (size_t g = 0; g < searches_.size(); ++g) {
      if (searches_[g].leastPeak(base_.submeshes[g]) > limitOf_[g]) {
        return kAnyTime;
      }
    }
    return expectedWith(selectionsOf(searches_));
  }

  Picoseconds expectedWith(const std::vector<std::optional<Selection>>& selections) const {
    const std::vector<int64_t>& submeshes = base_.decisions.schedule.submeshes;
    std::vector<Picoseconds> work(selections.size(), 0);
    for (size_t stage = 0; stage < submeshes.size(); ++stage) {
      work[submeshes[stage]] += base_.stageTimes[stage];
    }
    const Picoseconds before = *std::max_element(work.begin(), work.end());
    for (size_t g = 0; g < selections.size(); ++g) {
      work[g] += selections[g] ? selections[g]->time : 0;
    }
    const Picoseconds after = *std::max_element(work.begin(), work.end());
    return base_.time + (after - before) * base_.decisions.mesh.microBatches();
  }

  // Of a tiny program a plan that is known is no reason to give up what fits by the last bytes.
  bool triesAll(Picoseconds useless) const { return useless == kAnyTime || (isTiny(graph()) && base_.time < useless); }

  // Gives up on what takes `useless` or longer.
  absl::StatusOr<Attempt> run(Picoseconds useless) {
    WEFT_ASSIGN_OR_RETURN(Tried best, bestSelections(useless));
    return isTiny(graph()) && best.attempt.fits ? withMoreKept(std::move(best)) : std::move(best.attempt);
  }

 private:
  struct Tried {
    std::vector<std::optional<Selection>> selections;
    Attempt attempt;
  };

  const ProgramGraph& graph() const { return model_.view().graph(); }

  // Whole intervals may take less than what is expected.
  absl::StatusOr<Tried> bestSelections(Picoseconds useless) {
    if (expected_ < useless || triesAll(useless)) {
      WEFT_RETURN_IF_ERROR(aim(useless));
    }
    if (triesAll(useless)) {
      WEFT_RETURN_IF_ERROR(sweep());
    }
    Tried best = {{}, least_};
    best.attempt.fits = false;
    if (allFit()) {
      for (BudgetSearch& search : searches_) {
        search.finish();
      }
      best.selections = selectionsOf(searches_);
      WEFT_ASSIGN_OR_RETURN(best.attempt, attempt({best.selections}));
      const Picoseconds little = base_.time / kTooLittle;
      if (best.attempt.time < base_.time + little || best.attempt.time < expected_ + little) {
        return best;
      }
    }
    WEFT_ASSIGN_OR_RETURN(std::optional<Tried> whole, wholeIntervals(best.attempt.fits ? best.attempt.time : useless));
    if (!best.attempt.fits) {
      return std::move(whole).value_or(std::move(best));
    }
    return whole && whole->attempt.time < best.attempt.time ? *std::move(whole) : std::move(best);
  }

  // Without the recomputation of single operators as long as it fits: selections are made by sums of bytes, and what
  // lies where in memory leaves gaps.
  absl::StatusOr<Attempt> withMoreKept(Tried tried) {
    Chosen chosen = {std::move(tried.selections)};
    Attempt best = std::move(tried.attempt);
    size_t left = kMostKept;
    for (const StageOperator& op : choices_.repeatedWith(chosen)) {
      if (left == 0 || best.time - base_.time <= base_.time / kTooLittle) {
        break;
      }
      --left;
      chosen.kept.push_back(op);
      WEFT_ASSIGN_OR_RETURN(Attempt made, attempt(chosen));
      if (made.fits && made.time < best.time) {
        best = std::move(made);
      } else {
        chosen.kept.pop_back();
      }
    }
    return best;
  }

  bool allFit() const {
    return std::all_of(searches_.begin(), searches_.end(), [](const BudgetSearch& search) { return search.fits(); });
  }
  bool allDone() const {
    return std::all_of(searches_.begin(), searches_.end(), [](const BudgetSearch& search) { return search.done(); });
  }

  absl::Status aim(Picoseconds useless) {
    for (int round = 0; round < kRounds && !allDone(); ++round) {
      WEFT_ASSIGN_OR_RETURN(const Attempt made, attempt({selectionsOf(searches_)}));
      if (useless != kAnyTime && !made.fits && made.time >= useless) {
        break;  // it takes less memory still, and so more time
      }
      for (size_t g = 0; g < searches_.size(); ++g) {
        searches_[g].learn(made.submeshes[g], limitOf_[g]);
      }
      if (made.fits && made.time - base_.time < base_.time / kTooLittle) {
        break;
      }
    }
    return absl::OkStatus();
  }

  absl::Status sweep() {
    for (int part = 0; part <= kSwept && !allFit(); ++part) {
      std::vector<BudgetSearch> swept = searches_;
      for (BudgetSearch& search : swept) {
        if (!search.fits()) {
          search.sweep(part, kSwept);
        }
      }
      WEFT_ASSIGN_OR_RETURN(const Attempt made, attempt({selectionsOf(swept)}));
      for (size_t g = 0; g < searches_.size(); ++g) {
        if (!searches_[g].fits()) {
          searches_[g] = swept[g];
          searches_[g].learnSwept(made.submeshes[g], limitOf_[g]);
        }
      }
    }
    return absl::OkStatus();
  }

  // The fewest whole intervals of the class that saves most, the first ones, on each submesh that needs any: what users
  // write by hand. The budgets leave this out where the sum of times is a poor guide: where the halves of a cut
  // backward pass, or the longest stage, decide how long a step takes. Nothing: they do not fit, or take `useless`.
  absl::StatusOr<std::optional<Tried>> wholeIntervals(Picoseconds useless) {
    std::vector<int64_t> low, high;
    for (size_t g = 0; g < searches_.size(); ++g) {
      low.push_back(fewestWhole(g));
      const Choices::Group& group = choices_.groups()[g];
      high.push_back(low[g] == 0 ? 0 : group.countOf(group.mostSaving()));
      if (low[g] > high[g]) {
        return std::nullopt;
      }
    }
    if (useless < kAnyThatFits && expectedWith(wholeOf(low)) > useless + useless / kFarWorse) {
      return std::nullopt;
    }
    // What runs again needs memory too, so that some more than the fewest may be needed: few, so they come first.
    std::vector<int64_t> counts = low;
    for (int64_t more = 1; low != high; more *= 2) {
      WEFT_ASSIGN_OR_RETURN(const Attempt made, attempt({wholeOf(counts)}));
      if (!made.fits && made.time >= useless) {
        return std::nullopt;  // more of them take longer
      }
      for (size_t g = 0; g < searches_.size(); ++g) {
        const bool fits = made.submeshes[g].peakBytes <= limitOf_[g];
        if (!fits && counts[g] == high[g]) {
          return std::nullopt;
        }
        low[g] = fits ? low[g] : counts[g] + 1;
        high[g] = fits ? counts[g] : high[g];
        counts[g] = std::min(low[g] + more, (low[g] + high[g]) / 2);
      }
    }
    Tried fewest = {wholeOf(high), {}};
    WEFT_ASSIGN_OR_RETURN(fewest.attempt, attempt({fewest.selections}));
    return fewest.attempt.fits ? std::optional(std::move(fewest)) : std::nullopt;
  }

  // With fewer whole intervals a submesh cannot fit; 0: it fits as it is.
  int64_t fewestWhole(size_t g) const {
    const int64_t over = base_.submeshes[g].peakBytes - limitOf_[g];
    return over <= 0 ? 0 : choices_.groups()[g].fewestToSave(over);
  }

  std::vector<std::optional<Selection>> wholeOf(const std::vector<int64_t>& counts) const {
    std::vector<std::optional<Selection>> selections;
    for (size_t g = 0; g < counts.size(); ++g) {
      selections.push_back(choices_.groups()[g].whole(counts[g]));
    }
    return selections;
  }

  static std::vector<std::optional<Selection>> selectionsOf(const std::vector<BudgetSearch>& searches) {
    std::vector<std::optional<Selection>> selections;
    for (const BudgetSearch& search : searches) {
      selections.push_back(search.selection());
    }
    return selections;
  }

  absl::StatusOr<Attempt> attempt(const Chosen& chosen) {
    WEFT_ASSIGN_OR_RETURN(Attempt made, asItIs(limits_, choices_.realize(chosen, limits_.least()), model_));
    Json summary = Json::parse(made.decisions.recomputeSummary);
    summary["step_seconds"] = inSeconds(made.time);
    summary["step_seconds_otherwise"] = inSeconds(base_.time);
    made.decisions.recomputeSummary = summary.dump();
    if (made.peakBytes < least_.peakBytes) {
      least_ = made;
    }
    return made;
  }

  const Attempt& base_;
  const Choices& choices_;
  const MemoryLimits& limits_;
  std::vector<int64_t> limitOf_;  // of each submesh
  StepModel& model_;
  std::vector<BudgetSearch> searches_;  // by submesh
  Picoseconds expected_ = 0;
  Attempt least_;  // of the base and those tried, the one with the least peak
};

}  // namespace

bool isBetter(const Attempt& a, const Attempt& b) {
  if (a.fits != b.fits) {
    return a.fits;
  }
  return a.fits ? std::tie(a.time, a.peakBytes) < std::tie(b.time, b.peakBytes) : a.peakBytes < b.peakBytes;
}

namespace {

class PreparedRecomputation : public Recomputation {
 public:
  PreparedRecomputation(const MemoryLimits& limits, Attempt base, std::vector<ForwardGraph> stages, StepModel& model,
                        recompute::KnownFronts& fronts)
      : base_(std::move(base)),
        choices_(base_.decisions, std::move(stages), base_.submeshes, model, fronts),
        search_(base_, choices_, limits, model) {}

  const Attempt& base() const override { return base_; }
  Picoseconds expected() const override { return search_.expected(); }

  absl::StatusOr<Attempt> run(Picoseconds useless) const override {
    if (expected() == kAnyTime && !search_.triesAll(useless)) {
      return base_;
    }
    WEFT_ASSIGN_OR_RETURN(Attempt made, RecomputeSearch(search_).run(useless));
    return made.fits || made.peakBytes < base_.peakBytes ? made : base_;
  }

 private:
  const Attempt base_;
  const Choices choices_;
  const RecomputeSearch search_;  // nothing is tried yet
};

}  // namespace

absl::StatusOr<std::unique_ptr<Recomputation>> Recomputation::of(const MemoryLimits& limits, Attempt base,
                                                                 StepModel& model, recompute::KnownFronts& fronts) {
  WEFT_ASSIGN_OR_RETURN(std::vector<ForwardGraph> stages, forwardGraphs(base.decisions, model));
  return std::make_unique<PreparedRecomputation>(limits, std::move(base), std::move(stages), model, fronts);
}

}  // namespace weft
