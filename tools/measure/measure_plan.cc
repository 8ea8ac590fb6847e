#include "tools/measure/measure_plan.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/kernel.h"
#include "planner/cost/plan_time.h"
#include "planner/machine/times.h"
#include "runtime/base/status.h"
#include "runtime/exec/executor.h"
#include "runtime/plan/statistics.h"
#include "tools/measure/median.h"

namespace weft::tools {
namespace {

constexpr int64_t kTurns = 3;  // of all plans

// What an instruction does, and which one of its plan it is.
struct Numbered {
  KernelWork work;
  size_t number = 0;
};

// The instructions of what runs in steps, initial values apart.
std::map<const plan::Instruction*, Numbered> worksOf(const plan::Plan& plan) {
  std::map<const plan::Instruction*, Numbered> works;
  for (const plan::Plan* submesh : submeshesOf(plan)) {
    for (const plan::Function& function : submesh->functions()) {
      for (const plan::Instruction& instruction : function.instructions()) {
        if (function.kind() != plan::INIT && !instruction.has_collective() && !instruction.has_transfer()) {
          works.emplace(&instruction, Numbered{workOf(*submesh, instruction), works.size()});
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

absl::Status KernelMeasurement::add(const std::vector<plan::Plan>& plans, int64_t steps) {
  CallsOfTurns calls;
  for (int64_t turn = 0; turn < kTurns; ++turn) {
    const int64_t ofTurn = (turn + 1) * steps / kTurns - turn * steps / kTurns;
    for (size_t number = 0; number < plans.size() && ofTurn > 0; ++number) {
      if (const absl::Status status = addTurn(plans[number], number, ofTurn, calls); !status.ok()) {
        return absl::Status(status.code(),
                            absl::StrCat("plan ", number + 1, " of ", plans.size(), ": ", status.message()));
      }
    }
  }
  for (const auto& [instruction, each] : calls) {
    addCalls(each.call, each.seconds);
  }
  return absl::OkStatus();
}

absl::Status KernelMeasurement::addTurn(const plan::Plan& plan, size_t number, int64_t steps, CallsOfTurns& calls) {
  WEFT_ASSIGN_OR_RETURN(const std::unique_ptr<Executor> executor,
                        Executor::create(plan, cpuKernels(), {.profile = true}));
  WEFT_RETURN_IF_ERROR(executor->runInit());
  keepZeroInputs(*executor);
  for (int64_t step = 0; step < steps; ++step) {
    WEFT_RETURN_IF_ERROR(executor->runStep());
  }
  const std::map<const plan::Instruction*, Numbered> works = worksOf(executor->plan());
  for (int64_t rank = 0; rank < plan.ranks(); ++rank) {
    WEFT_ASSIGN_OR_RETURN(const std::vector<ExecutedInstruction> executed, executor->executedInstructions(rank));
    for (const ExecutedInstruction& each : executed) {
      if (const auto work = works.find(each.instruction); work != works.end()) {
        const auto [mine, isNew] = calls.try_emplace({number, rank, work->second.number});
        mine->second.call = isNew ? callOf(asOneKernel(work->second.work)) : mine->second.call;
        mine->second.seconds.push_back(each.seconds);
      }
    }
  }
  return absl::OkStatus();
}

void KernelMeasurement::addCalls(const KernelProfile& call, const std::vector<double>& seconds) {
  Calls& alike = calls_[{call.kernel, call.type, call.flops, call.bytes, call.m, call.n, call.k}];
  alike.call = call;
  alike.seconds += static_cast<double>(seconds.size()) * median(seconds);
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
