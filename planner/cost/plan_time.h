// How long a plan's step takes on a machine, predicted.
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "planner/cost/time_parts.h"
#include "planner/machine/machine.h"
#include "planner/machine/times.h"
#include "planner/schedule/simulate.h"
#include "runtime/plan/plan.pb.h"

namespace weft {

// The machine that a plan was compiled for. Error: its text is none.
absl::StatusOr<Machine> machineOf(const plan::Plan& plan);

// What each submesh of a plan runs on, in their order.
std::vector<Machine> machinesOf(const plan::Plan& plan, const Machine& machine);

// What a kernel's instruction does. `submesh`: the plan whose buffers it names.
KernelWork workOf(const plan::Plan& submesh, const plan::Instruction& instruction);

// One instruction, on the machine of its submesh: a kernel by its arithmetic and the bytes it touches, a collective by
// its price, a transfer 0 (it runs beside the computation). `submesh`: the plan whose buffers it names.
double secondsOf(const plan::Plan& submesh, const plan::Instruction& instruction, const Machine& machine);

// From the end of a stage's action to the arrival of what this transfer of a submesh of the plan carries.
double transferSeconds(const plan::Plan& plan, const plan::Plan& submesh, const plan::Instruction& instruction,
                       const Machine& machine);

// What a step consists of, in seconds.
struct StepTimes {
  schedule::Times times;              // of the stages, for each micro-batch
  std::vector<double> before, after;  // of each submesh: what runs once, before and after the micro-batches
  std::vector<std::vector<FunctionTime>> functions;  // of each submesh
};
absl::StatusOr<StepTimes> stepTimes(const plan::Plan& plan, const Machine& machine);

// Seconds of one step: instructions as above, the micro-batches by the schedule's simulation, before and after them
// what runs once, each of the slowest submesh; longer where ranks share cores (shared_cores.h).
absl::StatusOr<double> stepSeconds(const plan::Plan& plan, const Machine& machine);

}  // namespace weft
