#include "tools/measure/measure_plan.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

#include "kernels/kernel.h"
#include "planner/cost/plan_time.h"
#include "planner/machine/times.h"
#include "runtime/base/status.h"
#include "runtime/exec/executor.h"
#include "runtime/plan/statistics.h"

namespace weft::tools {
namespace {

// The instructions of what runs in steps, initial values apart.
std::map<const plan::Instruction*, KernelWork> worksOf(const plan::Plan& plan) {
  std::map<const plan::Instruction*, KernelWork> works;
  for (const plan::Plan* submesh : submeshesOf(plan)) {
    for (const plan::Function& function : submesh->functions()) {
      for (const plan::Instruction& instruction : function.instructions()) {
        if (function.kind() != plan::INIT && !instruction.has_collective() && !instruction.has_transfer()) {
          works.emplace(&instruction, workOf(*submesh, instruction));
        }
      }
    }
  }
  return works;
}

// What a profile says of a call, without its seconds.
KernelProfile callOf(const KernelWork& work) {
  KernelProfile call = {
      .kernel = std::string(work.kernel), .type = work.type, .flops = std::llround(work.flops), .bytes = work.bytes};
  if (work.product) {
    call.m = work.product->batch * work.product->m;
    call.n = work.product->n;
    call.k = work.product->k;
  }
  return call;
}

double medianOf(std::vector<double>& seconds) {
  const auto middle = seconds.begin() + static_cast<int64_t>(seconds.size() / 2);
  std::nth_element(seconds.begin(), middle, seconds.end());
  return *middle;
}

}  // namespace

absl::Status KernelMeasurement::add(const plan::Plan& plan, int64_t steps) {
  WEFT_ASSIGN_OR_RETURN(const std::unique_ptr<Executor> executor,
                        Executor::create(plan, cpuKernels(), {.profile = true}));
  WEFT_RETURN_IF_ERROR(executor->runInit());
  keepZeroInputs(*executor);
  for (int64_t step = 0; step < steps; ++step) {
    WEFT_RETURN_IF_ERROR(executor->runStep());
  }
  const std::map<const plan::Instruction*, KernelWork> works = worksOf(executor->plan());
  for (int64_t rank = 0; rank < plan.ranks(); ++rank) {
    WEFT_ASSIGN_OR_RETURN(const std::vector<ExecutedInstruction> executed, executor->executedInstructions(rank));
    std::map<const plan::Instruction*, std::vector<double>> seconds;
    for (const ExecutedInstruction& each : executed) {
      if (works.count(each.instruction) > 0) {
        seconds[each.instruction].push_back(each.seconds);
      }
    }
    for (auto& [instruction, each] : seconds) {
      addCalls(callOf(asOneKernel(works.at(instruction))), std::move(each));
    }
  }
  return absl::OkStatus();
}

void KernelMeasurement::addCalls(const KernelProfile& call, std::vector<double> seconds) {
  Calls& alike = calls_[{call.kernel, call.type, call.flops, call.bytes, call.m, call.n, call.k}];
  alike.call = call;
  alike.seconds += static_cast<double>(seconds.size()) * medianOf(seconds);
  alike.count += static_cast<int64_t>(seconds.size());
}

std::vector<KernelProfile> KernelMeasurement::profiles() const {
  constexpr double kShortest = 1e-9;  // a clock may see none of a call
  std::vector<KernelProfile> profiles;
  for (const auto& [work, alike] : calls_) {
    profiles.push_back(alike.call);
    profiles.back().seconds = std::max(kShortest, alike.seconds / static_cast<double>(alike.count));
  }
  return profiles;
}

}  // namespace weft::tools
