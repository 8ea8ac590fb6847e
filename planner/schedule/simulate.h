// How long a schedule takes and how much it holds.
//
// Each rank performs its actions in order; an action starts when the one before it has ended and the neighbor stage's
// result has arrived, `comm` after its end if it comes from another rank (transfers run beside the computation and do
// not delay each other). Times have no unit; the results have that of the inputs.
//
//   Times times = Times::uniform(1, 1, 1);                  // F, I, W take 1, B takes 2
//   absl::StatusOr<Simulation> result = simulate(table, times);
//
// Idle time is counted in two ways. Up to the common end: every rank waits for the slowest before the optimizer, as
// with a global gradient norm. Inside the longest span: from a rank's first start to its last end; the papers on
// zero-bubble schedules count so, and it is what remains when every rank may go on to its next step by itself.
#pragma once

#include <optional>
#include <vector>

#include "planner/schedule/validate.h"

namespace weft::schedule {

// Duration of one action of each kind. What `b` leaves out is i + w.
struct StageTimes {
  double f = 1;
  double i = 1;
  double w = 1;
  std::optional<double> b;

  double of(ActionKind kind) const;
};

struct Times {
  std::vector<StageTimes> stages;  // one entry per stage, or a single one for all
  double comm = 0;                 // from the end of an action to the arrival of its result on another rank

  static Times uniform(double f, double i, double w, double comm = 0) { return {{{f, i, w, std::nullopt}}, comm}; }
  const StageTimes& of(int32_t stage) const { return stages.size() == 1 ? stages[0] : stages[stage]; }
};

struct Simulation {
  std::vector<std::vector<double>> starts;  // of each action: starts[rank][position]
  std::vector<std::vector<double>> ends;
  double makespan = 0;                // the last end
  double lowerBound = 0;              // no order of this work on these ranks ends before; see below
  std::vector<double> busy;           // per rank, time spent in actions
  double bubbleRatio = 0;             // idle time up to the common end / (ranks x makespan)
  double spanBubble = 0;              // idle time inside the longest span / that span
  std::vector<int32_t> peakInFlight;  // per rank, most (stage, micro-batch) pairs between F and W (or B) at once
};

// The lower bound is the greatest over the ranks of
//   head + busy                the rank cannot start before the first of its stages is reached, then it has its work
//   head + all F, I + tail     and after its last input gradient those of the earlier stages follow, at the least
//                              from its lowest stage, and the last weight gradient
// with head = the forward times and transfers before its lowest stage; a B counts as I and W, cut at will. For equal
// stages that is (p - 1)(f + comm) + m (f + i + w), which zero-bubble schedules reach at best.
//
// Errors: those of validate(); a negative or infinite time; a count of stage times that is neither 1 nor that of the
// stages.
absl::StatusOr<Simulation> simulate(const Table& table, const Times& times);

// The same for a table that is resolved already; `times` must be in order. For planners that try many times.
Simulation simulateResolved(const Table& table, const Resolved& resolved, const Times& times);

}  // namespace weft::schedule
