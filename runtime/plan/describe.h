// Instructions of a plan in words.
#pragma once

#include <string>

#include "runtime/plan/plan.pb.h"

namespace weft {

// The user's line behind an instruction, "model.cc:42"; empty where the plan does not say.
std::string sourceOf(const plan::Plan& plan, const plan::Instruction& instruction);

// What an instruction does: its kernel, "ALL_REDUCE", "send to submesh 1", "receive from submesh 0".
std::string actOf(const plan::Instruction& instruction);

// Both, with the operator's name: "fc1 (mlp.cc:7), kernel add".
std::string describe(const plan::Plan& plan, const plan::Instruction& instruction);

}  // namespace weft
