// A plan of two pipeline stages on two submeshes, written by hand for tests of its timing: it has instructions and
// schedules, but no memory, so it cannot run.
//
//   submesh 0   F: kernel, send     B: receive, kernel      update: receive
//   submesh 1   F: receive, kernel  B: kernel, send, kernel update: kernel, send
#pragma once

#include <string>
#include <vector>

#include "runtime/plan/plan.pb.h"

namespace weft::testing {

inline void addStagedFunction(plan::Plan& submesh, plan::FunctionKind kind, int64_t stage, const std::string& code,
                              uint32_t channel) {
  plan::Function* function = submesh.add_functions();
  function->set_name(plan::FunctionKind_Name(kind));
  function->set_kind(kind);
  function->set_stage(stage);
  for (const char letter : code) {
    plan::Instruction* instruction = function->add_instructions();
    if (letter == 'k') {
      instruction->set_kernel("kernel");
    } else {
      instruction->mutable_transfer()->set_send(letter == 's');
      instruction->mutable_transfer()->set_channel(channel);
      instruction->mutable_transfer()->set_capacity(1);
    }
  }
}

// `orders`: of each submesh the functions of a step, 0 forward, 1 backward, 2 update.
inline plan::Plan stagedPlan(const std::vector<std::vector<uint32_t>>& orders) {
  const std::vector<std::vector<std::string>> code = {{"ks", "rk", "r"}, {"rk", "ksk", "ks"}};
  plan::Plan plan;
  plan.set_ranks(2);
  for (size_t b = 0; b < 2; ++b) {
    plan::Plan* submesh = plan.add_submeshes();
    submesh->set_ranks(1);
    addStagedFunction(*submesh, plan::FORWARD, static_cast<int64_t>(b), code[b][0], 0);
    addStagedFunction(*submesh, plan::BACKWARD, static_cast<int64_t>(b), code[b][1], 1);
    addStagedFunction(*submesh, plan::UPDATE, 0, code[b][2], 2);
    plan::RankSchedule* schedule = submesh->add_schedules();
    for (const uint32_t function : orders[b]) {
      schedule->add_step()->set_function(function);
    }
  }
  return plan;
}

}  // namespace weft::testing
