#include "tools/measure/measure_plan.h"

#include <algorithm>
#include <cmath>
#include <memory>

#include "kernels/kernel.h"
#include "planner/cost/plan_time.h"
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
        const KernelWork& of = work->second;
        seconds_[{std::string(of.kernel), of.type, std::llround(of.flops), of.bytes}].push_back(each.seconds);
      }
    }
  }
  return absl::OkStatus();
}

std::vector<KernelProfile> KernelMeasurement::profiles() const {
  constexpr double kShortest = 1e-9;  // a clock may see none of a call
  std::vector<KernelProfile> profiles;
  for (const auto& [work, all] : seconds_) {
    std::vector<double> seconds = all;
    std::nth_element(seconds.begin(), seconds.begin() + seconds.size() / 2, seconds.end());
    const auto& [kernel, type, flops, bytes] = work;
    profiles.push_back({kernel, type, flops, bytes, std::max(kShortest, seconds[seconds.size() / 2])});
  }
  return profiles;
}

}  // namespace weft::tools
