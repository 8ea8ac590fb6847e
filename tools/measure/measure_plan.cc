#include "tools/measure/measure_plan.h"

#include <algorithm>
#include <cmath>
#include <memory>

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
    for (const ExecutedInstruction& each : executed) {
      if (const auto work = works.find(each.instruction); work != works.end()) {
        const KernelProfile call = callOf(asOneKernel(work->second));
        auto& [profile, seconds] = calls_[{call.kernel, call.type, call.flops, call.bytes, call.m, call.n, call.k}];
        profile = call;
        seconds.push_back(each.seconds);
      }
    }
  }
  return absl::OkStatus();
}

std::vector<KernelProfile> KernelMeasurement::profiles() const {
  constexpr double kShortest = 1e-9;  // a clock may see none of a call
  std::vector<KernelProfile> profiles;
  for (const auto& [key, call] : calls_) {
    std::vector<double> seconds = call.second;
    std::nth_element(seconds.begin(), seconds.begin() + seconds.size() / 2, seconds.end());
    profiles.push_back(call.first);
    profiles.back().seconds = std::max(kShortest, seconds[seconds.size() / 2]);
  }
  return profiles;
}

}  // namespace weft::tools
