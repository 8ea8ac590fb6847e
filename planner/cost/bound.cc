#include "planner/cost/bound.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "planner/cost/kept_values.h"
#include "planner/cost/least_work.h"
#include "planner/graph/graph_view.h"
#include "runtime/base/status.h"

namespace weft {

namespace {

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

// What no micro-batch begins before some time is all done after it, shared by all ranks: the longest of all times.
double timeWithWaits(const Passage& passage, const LeastWork::Times& times, int64_t ranks) {
  std::vector<std::pair<double, double>> waiting;  // begin and work
  for (size_t op = 0; op < passage.begins.size(); ++op) {
    waiting.emplace_back(passage.begins[op], times.ofOperator[op]);
  }
  std::sort(waiting.rbegin(), waiting.rend());
  double longest = passage.end;
  double after = 0;
  for (const auto& [begin, ofRanks] : waiting) {
    after += ofRanks;
    longest = std::max(longest, begin + after / static_cast<double>(ranks));
  }
  return longest;
}

// On submeshes of which some traded ranks: `smallest` has half of those that it had, `alike` are the times before.
LeastWork::Times traded(const LeastWork& work, const WorkGrid& smallest, const LeastWork::Times& alike) {
  LeastWork::Times times = work.times(smallest);
  const LeastWork::Times largest = work.times({3 * smallest.ranks, smallest.microBatches});
  for (size_t op = 0; op < times.delays.size(); ++op) {
    times.delays[op] = std::min(alike.delays[op], largest.delays[op]);
  }
  return times;
}

}  // namespace

absl::StatusOr<Picoseconds> leastTime(const ProgramGraph& graph, const Machine& machine, const BoundedPlans& plans) {
  const GraphView view(graph);
  absl::StatusOr<LeastWork> work = LeastWork::of(view, machine, {true, plans.hidesCollectives});
  std::vector<int64_t> microBatches = plans.microBatches;
  if (!work.ok()) {
    // What cannot be cut into micro-batches has one.
    WEFT_ASSIGN_OR_RETURN(work, LeastWork::of(view, machine, {false, plans.hidesCollectives}));
    microBatches = {1};
  }
  std::optional<KeptValues> kept;
  if (plans.areAlike && plans.memoryLimit > 0 && graph.trains()) {
    kept.emplace(view, *work, plans.statesLeave);
  }
  double least = std::numeric_limits<double>::infinity();
  const auto consider = [&](const WorkGrid& grid, const LeastWork::Times& times) {
    double step = times.ofRanks / static_cast<double>(plans.ranks);
    if (plans.areAlike && step < least) {
      step = std::max(step, timeWithWaits(passageOf(view, *work, times), times, plans.ranks));
    }
    if (kept && step < least) {
      step = std::max(step, kept->leastStep(grid, times, plans.ranks, plans.memoryLimit));
    }
    least = std::min(least, step);
  };
  for (const int64_t ranks : plans.submeshRanks) {
    for (const int64_t count : microBatches) {
      const LeastWork::Times times = work->times({ranks, count});
      consider({ranks, count}, times);
      if (ranks % 2 == 0 && ranks < plans.ranks && plans.ranks / ranks <= plans.mostTrading) {
        const WorkGrid smallest = {ranks / 2, count};
        consider(smallest, traded(*work, smallest, times));
      }
    }
  }
  const double seconds = least * (1 - kRounding) / kPicosecondsPerSecond;
  return picosecondsOf(seconds);
}

}  // namespace weft
