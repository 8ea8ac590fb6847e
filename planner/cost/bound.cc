#include "planner/cost/bound.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "planner/cost/kept_values.h"
#include "planner/cost/least_work.h"
#include "planner/cost/pipeline_idle.h"
#include "planner/cost/shared_cores.h"
#include "planner/graph/graph_view.h"
#include "runtime/base/status.h"

namespace weft {

namespace {

// Bounds are found up to this part of what a plan is known to take. None is above that unless there is a defect, which
// is then seen.
constexpr double kAboveKnown = 1.05;
// Sums of many rounded figures may be above those that a plan adds up in another order.
constexpr double kRounding = 1e-9;

// How one micro-batch passes through the program, in picoseconds, without what may be done for all of them before.
struct Passage {
  std::vector<double> begins;  // of each operator, at the earliest
  double end = 0;              // of the last
};

// The terms of a sum may be added in another order, in which one waits for fewer of them.
Passage passageOf(const GraphView& view, const LeastWork& work, const LeastWork::Times& times) {
  Passage passage;
  std::vector<double> ends(view.values(), 0);  // of each value: on the longest path to it
  for (int op = 0; op < view.operators(); ++op) {
    double end = 0;
    for (unsigned i = 0; i < view.op(op).operands.size(); ++i) {
      end = std::max(end, ends[view.operandOf(op, i)]);
    }
    const bool isSum = view.op(op).facts.isSum;
    const bool waits = !isSum && work.runs(op) != WorkRuns::kWholeBatch;
    passage.begins.push_back(waits ? end : 0);
    end += waits ? static_cast<double>(times.delays[op]) : 0;
    for (unsigned r = 0; r < view.op(op).results.size(); ++r) {
      ends[view.resultOf(op, r)] = end;
    }
    passage.end = std::max(passage.end, end);
  }
  return passage;
}

// What no micro-batch begins before some time is all done after it, shared by the ranks that can work at a time: the
// longest of all times.
double timeWithWaits(const Passage& passage, const std::vector<std::vector<int>>& families,
                     const LeastWork::Times& times, double atWork) {
  std::vector<std::pair<double, double>> waiting;  // begin and work
  for (size_t op = 0; op < passage.begins.size(); ++op) {
    if (times.ofOperator[op] > 0) {
      waiting.emplace_back(passage.begins[op], times.ofOperator[op]);
    }
  }
  // What families take beyond their operators is left where none of these has begun.
  for (size_t family = 0; family < families.size(); ++family) {
    double begin = std::numeric_limits<double>::infinity();
    for (const int op : families[family]) {
      begin = std::min(begin, passage.begins[op]);
    }
    waiting.emplace_back(begin, times.ofFamily[family]);
  }
  std::sort(waiting.rbegin(), waiting.rend());
  double longest = passage.end;
  double after = 0;
  for (const auto& [begin, ofRanks] : waiting) {
    after += ofRanks;
    longest = std::max(longest, begin + after / atWork);
  }
  return longest;
}

// Of submeshes of which some traded ranks: with half of those that they had, with as many, with half as many more.
struct TradedTimes {
  LeastWork::Times smallest, alike, largest;

  // What holds of operators wherever they are.
  LeastWork::Times anywhere() const {
    LeastWork::Times times = smallest;
    for (size_t op = 0; op < times.delays.size(); ++op) {
      times.delays[op] = std::min(alike.delays[op], largest.delays[op]);
    }
    return times;
  }

  // The smallest submeshes have no more than a quarter of all ranks together: `part` of those that can work at a time.
  // So with a price on each second of theirs, all ranks pay for that part of their time at the most, and operators that
  // gain less than the price there gain nothing.
  LeastWork::Times withPrice(double price, double part, const std::vector<std::vector<int>>& families) const {
    LeastWork::Times times = anywhere();
    const auto least = [&](double half, double same, double more) {
      return std::min({half * (1 + price), same, more}) / (1 + price * part);
    };
    times.ofRanks = 0;
    for (size_t op = 0; op < times.ofOperator.size(); ++op) {
      times.ofOperator[op] = least(smallest.ofOperator[op], alike.ofOperator[op], largest.ofOperator[op]);
      times.ofRanks += times.ofOperator[op];
    }
    for (size_t family = 0; family < families.size(); ++family) {
      const auto allOf = [&](const LeastWork::Times& of) {
        double sum = of.ofFamily[family];
        for (const int op : families[family]) {
          sum += of.ofOperator[op];
        }
        return sum;
      };
      const double together = least(allOf(smallest), allOf(alike), allOf(largest));
      times.ofFamily[family] = 0;
      times.ofFamily[family] = std::max(0.0, together - allOf(times));
      times.ofRanks += times.ofFamily[family];
    }
    return times;
  }
};

// The least step of each pair of a submesh's ranks and a number of micro-batches, in picoseconds.
class LeastSteps {
 public:
  // `atWork`: ranks that can work at the same time.
  LeastSteps(const GraphView& view, const LeastWork& work, const BoundedPlans& plans, int64_t atWork)
      : view_(view),
        work_(work),
        plans_(plans),
        atWork_(static_cast<double>(atWork)),
        least_(kAboveKnown * static_cast<double>(plans.known)) {
    const bool trains = view.graph().trains();
    if (plans.areAlike && plans.memoryLimit > 0 && trains) {
      kept_.emplace(
          view, work,
          KeptValues::Memory{
              .ranks = plans.ranks, .atWork = atWork, .limit = plans.memoryLimit, .statesLeave = plans.statesLeave});
    }
    if (plans.areAlike && trains && plans.mostVirtual > 0 && plans.mostVirtual <= PipelineIdle::kMostVirtual) {
      idle_.emplace(view, work, plans.blockOf);
    }
  }

  // Of submeshes that all have so many ranks: their work, and where they are alike the way of a micro-batch.
  double atLeast(const WorkGrid& grid) const {
    const LeastWork::Times times = work_.times(grid);
    const double passage = plans_.areAlike ? passageOf(view_, work_, times).end : 0;
    return std::max(times.ofRanks / atWork_, passage);
  }

  // Considers them.
  void consider(const WorkGrid& grid) {
    const LeastWork::Times times = work_.times(grid);
    double step = stepOf(grid, times);
    if (idle_ && step < least_) {
      step = idle_->leastStep(pipelineOf(grid, plans_.mostVirtual, step), grid, times);
    }
    if (plans_.areAlike && step < least_) {
      step = withMemory(grid, times, step);
    }
    least_ = std::min(least_, step);
  }

  // Considers those of which some traded ranks.
  void considerTrades(const WorkGrid& grid) {
    const WorkGrid smallest = {grid.ranks / 2, grid.microBatches};
    if (grid.ranks % 2 != 0 || grid.ranks >= plans_.ranks || plans_.ranks / grid.ranks > plans_.mostTrading) {
      return;
    }
    LeastWork::Times ofSmallest = work_.times(smallest);
    if (ofSmallest.ofRanks >= least_ * atWork_) {
      return;
    }
    const TradedTimes traded = {std::move(ofSmallest), work_.times(grid),
                                work_.times({3 * smallest.ranks, grid.microBatches})};
    const LeastWork::Times anywhere = traded.anywhere();
    double step = stepOf(smallest, anywhere);
    const double ofSmallestRanks = std::min(1.0, static_cast<double>(plans_.ranks) / 4 / atWork_);
    for (const double price : {0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64}) {
      if (step < least_) {
        step = std::max(step, timeOfWork(traded.withPrice(price, ofSmallestRanks, work_.families().operators())));
      }
    }
    if (kept_ && step < least_) {
      FamilyTimes::OnGrid families(work_.families(), smallest, anywhere.ofOperator,
                                   {FamilyTimes::Nodes::kAnywhere, bordersOf(smallest)});
      step = std::max(step, kept_->leastStep(smallest, anywhere, families, least_).time);
    }
    if (idle_ && step < least_) {
      step = idle_->leastStepOfTrades(pipelineOf(grid, 1, step), grid,
                                      {traded.smallest, traded.alike, traded.largest, anywhere.delays});
    }
    least_ = std::min(least_, step);
  }

  double least() const { return least_; }

 private:
  PipelineIdle::Pipeline pipelineOf(const WorkGrid& grid, int64_t virtualStages, double atLeast) const {
    return {plans_.ranks / grid.ranks, virtualStages, atLeast, least_};
  }

  // Between stages, at most.
  int64_t bordersOf(const WorkGrid& grid) const {
    const int64_t submeshes = plans_.ranks / grid.ranks;
    return plans_.mostVirtual > 0 ? submeshes * plans_.mostVirtual - 1 : std::numeric_limits<int64_t>::max();
  }

  // Without what submeshes wait for the first micro-batch, and without a limit of memory.
  double stepOf(const WorkGrid& grid, const LeastWork::Times& times) const {
    double step = times.ofRanks / atWork_;
    if (plans_.areAlike && step < least_) {
      step = std::max(step, timeOfWork(times));
    }
    return step;
  }

  // With what nodes ask for and updates; where memory is limited also with that, at the price of bytes for which what
  // is kept makes the step longest, and there with what submeshes wait: none of them has more than its memory.
  double withMemory(const WorkGrid& grid, const LeastWork::Times& times, double step) const {
    FamilyTimes::OnGrid families(work_.families(), grid, times.ofOperator,
                                 {FamilyTimes::Nodes::kInOrder, bordersOf(grid)});
    if (!kept_) {
      return std::max(step, work_.priced(times, families, 0).ofRanks / atWork_);
    }
    const auto [time, bytePrice, items] = kept_->leastStep(grid, times, families, least_);
    step = std::max(step, time);
    for (const double factor : {1.0, 0.5}) {
      if (idle_ && plans_.isMemoryAlike && grid.ranks < plans_.ranks && step < least_) {
        const double price = factor * bytePrice;
        const double memory = price * static_cast<double>(plans_.memoryLimit);
        PipelineIdle::Pipeline pipeline = pipelineOf(grid, plans_.mostVirtual, step + memory);
        pipeline.atMost += memory;
        step = idle_->leastStep(pipeline, grid, kept_->priced(items, times, families, plans_.blockOf, price)) - memory;
      }
    }
    return step;
  }

  double timeOfWork(const LeastWork::Times& times) const {
    return timeWithWaits(passageOf(view_, work_, times), work_.families().operators(), times, atWork_);
  }

  const GraphView& view_;
  const LeastWork& work_;
  const BoundedPlans& plans_;
  double atWork_;
  std::optional<KeptValues> kept_;
  std::optional<PipelineIdle> idle_;
  double least_;
};

}  // namespace

absl::StatusOr<Picoseconds> leastTime(const ProgramGraph& graph, const Machine& machine, const BoundedPlans& plans) {
  const GraphView view(graph);
  absl::StatusOr<LeastWork> work = LeastWork::of(view, machine, {true, plans.hidesCollectives, plans.blockOf});
  std::vector<int64_t> microBatches = plans.microBatches;
  if (!work.ok()) {
    // What cannot be cut into micro-batches has one.
    WEFT_ASSIGN_OR_RETURN(work, LeastWork::of(view, machine, {false, plans.hidesCollectives, plans.blockOf}));
    microBatches = {1};
  }
  // Those with the shortest steps first: where others take more than the step of one, nothing else is asked of them.
  LeastSteps steps(view, *work, plans, ranksAtWork(machine, plans.ranks));
  std::vector<std::pair<double, WorkGrid>> grids;
  for (const int64_t ranks : plans.submeshRanks) {
    for (const int64_t count : microBatches) {
      const WorkGrid grid = {ranks, count};
      grids.emplace_back(steps.atLeast(grid), grid);
    }
  }
  std::ranges::stable_sort(grids, {}, [](const auto& grid) { return grid.first; });
  for (const auto& [atLeast, grid] : grids) {
    if (atLeast >= steps.least()) {
      break;
    }
    steps.consider(grid);
  }
  for (const auto& [atLeast, grid] : grids) {
    steps.considerTrades(grid);
  }
  const double seconds = steps.least() * (1 - kRounding) / kPicosecondsPerSecond;
  return picosecondsOf(seconds);
}

}  // namespace weft
