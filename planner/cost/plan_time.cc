#include "planner/cost/plan_time.h"

#include <algorithm>
#include <optional>

#include "kernels/describe/kernel_spec.h"
#include "planner/cost/prices.h"
#include "planner/cost/shared_cores.h"
#include "planner/decisions.h"
#include "planner/graph/flops.h"
#include "planner/machine/times.h"
#include "planner/schedule/simulate.h"
#include "planner/stage_table.h"
#include "runtime/base/status.h"
#include "runtime/plan/plan_file.h"
#include "runtime/plan/statistics.h"

namespace weft {

namespace {

// Nothing overlaps in a plan that is compiled.
FunctionTime functionTime(const plan::Plan& submesh, const plan::Function& function, const Machine& machine) {
  double computation = 0;
  double communication = 0;
  for (const plan::Instruction& instruction : function.instructions()) {
    (instruction.has_collective() ? communication : computation) += secondsOf(submesh, instruction, machine);
  }
  FunctionTime time = {.kind = function.kind(), .stage = function.stage()};
  time.computation = picosecondsOf(std::max(computation, 0.0));
  time.communication = picosecondsOf(std::max(communication, 0.0));  // whatever a file says
  time.total = time.computation + time.communication;
  return time;
}

void addFunction(const plan::Plan& submesh, const plan::Function& function, const Machine& machine,
                 schedule::Times& times) {
  double seconds = 0;
  for (const plan::Instruction& instruction : function.instructions()) {
    seconds += secondsOf(submesh, instruction, machine);
  }
  schedule::StageTimes& stage = times.stages[function.stage()];
  switch (function.kind()) {
    case plan::FORWARD:
      stage.f = seconds;
      break;
    case plan::BACKWARD:
      stage.b = seconds;
      break;
    case plan::INPUT_GRAD:
      stage.i = seconds;
      break;
    case plan::WEIGHT_GRAD:
      stage.w = seconds;
      break;
    default:
      break;
  }
}

// Of each micro-batch.
std::vector<const plan::Instruction*> sendsOf(const plan::Plan& submesh) {
  std::vector<const plan::Instruction*> sends;
  for (const plan::Function& function : submesh.functions()) {
    for (const plan::Instruction& instruction : function.instructions()) {
      if (instruction.has_transfer() && function.kind() != plan::UPDATE && instruction.transfer().send()) {
        sends.push_back(&instruction);
      }
    }
  }
  return sends;
}

// Of the functions of a kind that runs once in a step.
double secondsOf(const plan::Plan& submesh, plan::FunctionKind kind, const Machine& machine) {
  double seconds = 0;
  for (const plan::Function& function : submesh.functions()) {
    for (const plan::Instruction& instruction : function.instructions()) {
      seconds += function.kind() == kind ? secondsOf(submesh, instruction, machine) : 0;
    }
  }
  return seconds;
}

}  // namespace

absl::StatusOr<Machine> machineOf(const plan::Plan& plan) {
  return Machine::parse(plan.machine());
}

std::vector<Machine> machinesOf(const plan::Plan& plan, const Machine& machine) {
  std::vector<Machine> machines;
  int64_t firstRank = 0;
  for (const plan::Plan* submesh : submeshesOf(plan)) {
    machines.push_back(machine.of(firstRank, submesh->ranks()));
    firstRank += submesh->ranks();
  }
  return machines;
}

KernelWork workOf(const plan::Plan& submesh, const plan::Instruction& instruction) {
  const auto bufferOf = [&](const plan::Operand& operand) -> const plan::Buffer& {
    return submesh.buffers(static_cast<int>(operand.buffer()));
  };
  KernelWork work = {.flops = static_cast<double>(instruction.flops()), .kernel = instruction.kernel()};
  std::vector<DType> types;
  for (const plan::Operand& operand : instruction.inputs()) {
    types.push_back(dtypeOf(bufferOf(operand).type()));
    work.bytes += bufferOf(operand).bytes();
  }
  for (const plan::Operand& operand : instruction.outputs()) {
    work.bytes += bufferOf(operand).bytes();
  }
  const bool makes = !instruction.outputs().empty();
  work.type = arithmeticType(types, makes ? dtypeOf(bufferOf(instruction.outputs(0)).type()) : DType::kF32);
  if (instruction.has_product()) {
    const plan::Product& product = instruction.product();
    const auto size = [](int64_t read) { return std::max<int64_t>(1, read); };  // whatever a file says
    work.product = {size(product.batch()), size(product.m()), size(product.n()), size(product.k())};
  }
  if (instruction.kernel() == kContractAccumulateKernel && !instruction.inputs().empty()) {
    work.kernel = kContractKernel;
    work.sum = {bufferOf(instruction.inputs(0)).bytes(), kContractAccumulateKernel};
    work.bytes -= work.sum->bytes;
  }
  return work;
}

double secondsOf(const plan::Plan& submesh, const plan::Instruction& instruction, const Machine& machine) {
  if (instruction.has_collective()) {
    return instruction.collective().cost();
  }
  if (instruction.has_transfer()) {
    return 0;
  }
  return inSeconds(kernelTime(machine, workOf(submesh, instruction)));
}

double transferSeconds(const plan::Plan& plan, const plan::Plan& submesh, const plan::Instruction& instruction,
                       const Machine& machine) {
  const plan::Operand& carried = instruction.transfer().send() ? instruction.inputs(0) : instruction.outputs(0);
  return inSeconds(transferTime(machine.of(0, plan.ranks()), plan.ranks(),
                                submesh.buffers(static_cast<int>(carried.buffer())).bytes()));
}

absl::StatusOr<StepTimes> stepTimes(const plan::Plan& plan, const Machine& machine) {
  WEFT_ASSIGN_OR_RETURN(const Decisions decisions, parseDecisions(plan.decisions()));
  StepTimes step;
  step.times.stages.resize(decisions.schedule.submeshes.size(), {0, 0, 0, std::nullopt});
  const std::vector<const plan::Plan*> submeshes = submeshesOf(plan);
  const std::vector<Machine> machines = machinesOf(plan, machine);
  for (size_t s = 0; s < submeshes.size(); ++s) {
    const plan::Plan& submesh = *submeshes[s];
    std::vector<FunctionTime>& functions = step.functions.emplace_back();
    for (const plan::Function& function : submesh.functions()) {
      addFunction(submesh, function, machines[s], step.times);
      functions.push_back(functionTime(submesh, function, machines[s]));
    }
    for (const plan::Instruction* send : sendsOf(submesh)) {
      step.times.comm = std::max(step.times.comm, transferSeconds(plan, submesh, *send, machine));
    }
    step.before.push_back(secondsOf(submesh, plan::PROLOGUE, machines[s]));
    step.after.push_back(secondsOf(submesh, plan::UPDATE, machines[s]));
  }
  return step;
}

absl::StatusOr<double> stepSeconds(const plan::Plan& plan, const Machine& machine) {
  WEFT_ASSIGN_OR_RETURN(const Decisions decisions, parseDecisions(plan.decisions()));
  WEFT_ASSIGN_OR_RETURN(const StepTimes step, stepTimes(plan, machine));
  WEFT_ASSIGN_OR_RETURN(const schedule::Table table, stageTable(decisions.schedule, plan.micro_batches(), true));
  std::vector<int64_t> ranks;
  for (const plan::Plan* submesh : submeshesOf(plan)) {
    ranks.push_back(submesh->ranks());
  }
  const SharedCores cores(machine, ranks);
  WEFT_ASSIGN_OR_RETURN(const double makespan, cores.makespan(table, step.times));
  return cores.once(step.before) + makespan + cores.once(step.after);
}

}  // namespace weft
