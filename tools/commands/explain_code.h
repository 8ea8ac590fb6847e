// `weft explain PLAN --as-code --module MODEL.mlir`: a plan's decisions as lines of the program.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "runtime/plan/plan.pb.h"

namespace weft::tools {

// A plan does not hold the program, which has the operators that the lines name: `module` is the logical module that it
// was compiled from, 00-input.mlir of a dump. Errors: a plan without decisions; a module that is no logical one, or of
// another program.
absl::Status printPlanAsCode(const plan::Plan& plan, const std::string& module);

}  // namespace weft::tools
