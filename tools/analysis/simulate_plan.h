// How long a step of a plan takes: the plan's own instructions, rank by rank.
//
// simulate.h knows a schedule as a table, with one time for each kind of action; it serves to compare schedules. Here a
// whole plan is played: prologue, micro-batches, update. A rank takes its instructions one after another. A kernel
// lasts its time; a receive goes on when its message has been sent, a send when the mailbox has room; a collective
// begins when its last rank is there. So it is seen that a gradient is sent before the function that made it ends, that
// a value of the update crosses between submeshes, that a mailbox is full.
//
//   PlanTimes times = predictedTimes(plan, Machine());         // or measured: tools/analysis/plan_profile.h
//   absl::StatusOr<PlanSimulation> run = simulatePlan(plan, times);
//
// Not modeled: ranks that share cores, caches or memory bandwidth run as fast as they would alone, unless the given
// times were measured so.
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "planner/machine/machine.h"
#include "planner/schedule/simulate.h"
#include "runtime/plan/plan.pb.h"

namespace weft::schedule {

// Seconds.
struct PlanTimes {
  // [submesh][function][instruction]; of a collective, from when its last rank is there; of a transfer, the copy.
  std::vector<std::vector<std::vector<double>>> instructions;
  double wake = 0;    // wake-up latency of a rank that waits for a channel
  double start = 0;   // from the host's call of a step until the ranks begin
  double finish = 0;  // from the end of the last rank until the host goes on
  // Measured times of one executed step, a time for each call; where given they replace `instructions` and `start`.
  std::vector<std::vector<std::vector<double>>> calls;  // [rank][action][instruction]
  std::vector<double> starts;                           // [rank]
};

// Kernels by arithmetic and bytes touched at the machine's figures, collectives by their prices; a message by its copy,
// and waking by the link's latency.
PlanTimes predictedTimes(const plan::Plan& plan, const Machine& machine);

// Sum over a function's instructions, without waits: one entry per stage.
std::vector<StageTimes> stageTimes(const plan::Plan& plan, const PlanTimes& times);

struct RankRun {
  std::vector<double> starts;  // of each action of the step
  std::vector<double> ends;
  double busy = 0;  // seconds in instructions, waits left out
};

struct PlanSimulation {
  std::vector<RankRun> ranks;
  double seconds = 0;      // of a step, the host's part included
  double bubbleRatio = 0;  // ranks' time outside of instructions / (ranks x seconds)
};

// Plays one step of a valid plan. Errors: times of other instructions than the plan's; ranks that wait for each other
// for ever.
absl::StatusOr<PlanSimulation> simulatePlan(const plan::Plan& plan, const PlanTimes& times);

}  // namespace weft::schedule
